//! The built-in ScheduleWakeup and CronCreate.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::session::Session;
use crate::support::extent::is_whole;
use crate::support::{Item, NEWEST, OLDER, Turn, on_every_version_of_a_whole_run};

on_every_version_of_a_whole_run!(a_one_shot_job_is_known_to_a_fork_and_ends_no_later_run, what_a_hook_is_told_of_a_job,);

/// A model that makes these calls one after the other in each run, and then says `done`.
fn calling(version: &'static str, calls: Vec<(&'static str, Value)>) -> Session {
    let loads = version == NEWEST;
    Session::with_model(version, move |said| {
        // The calls since the last prompt.
        let items = said.items();
        let from = items
            .iter()
            .rposition(|item| matches!(item, Item::User(text) if ["go", "again"].contains(&text.as_str())))
            .unwrap_or(0);
        let made = items[from..].iter().filter(|item| matches!(item, Item::Call { .. })).count();
        match made.checked_sub(usize::from(loads)) {
            None => Turn::load("CronCreate,CronDelete,CronList"),
            Some(made) => {
                calls.get(made).map_or_else(|| Turn::text("done"), |(tool, input)| Turn::call(tool, input.clone()))
            }
        }
    })
}

const FAR: &str = "59 23 31 12 *";

fn a_one_shot_job_is_known_to_a_fork_and_ends_no_later_run(version: &'static str) {
    let job = json!({"cron": FAR, "prompt": "Look.", "recurring": false});
    let session = calling(version, vec![("CronCreate", job), ("CronList", json!({}))]);
    let run = session.start();
    assert_eq!((run.code, &run.result()["result"]), (Some(0), &json!("done")), "it is not waited for");
    let fork = session.resume_from(&session.id, "again");
    let listed = fork.requests.last().unwrap().last_result().unwrap();
    assert_eq!(listed.lines().filter(|line| line.contains("(one-shot) [session-only]")).count(), 2, "{listed}");
}

fn what_a_hook_is_told_of_a_job(version: &'static str) {
    let job = json!({"cron": FAR, "prompt": "Look.", "recurring": false});
    let mut session = calling(version, vec![("CronCreate", job)]);
    let hook = session.script("after", "cat >> after.told\n");
    session.settings["hooks"]["PostToolUse"] =
        json!([{"matcher": "CronCreate", "hooks": [{"type": "command", "command": hook}]}]);
    session.start();
    let told: Value = serde_json::from_str(&session.read("after.told")).unwrap();
    let made = &told["tool_response"];
    assert_eq!((&made["recurring"], &made["durable"]), (&json!(false), &json!(false)));
    assert!(made["id"].is_string(), "{told}");
    assert_eq!(made["nextFireAt"].is_i64(), version == NEWEST, "{told}");
}

/// So the interim result of such a process is not the last word.
#[test]
fn the_newest_lives_on_after_an_interim_result_until_the_wakeup() {
    let input = json!({"delaySeconds": 3600, "reason": "a build runs", "prompt": "Look.", "noop": false});
    let session = Session::new(NEWEST, Turn::call("ScheduleWakeup", input));
    let mut command = session.command();
    command.args(["--permission-mode", "bypassPermissions", "go"]);
    let mut claude = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(claude.stdout.take().unwrap()).lines();
    let mut events = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let result = events.find(|event| event["type"] == "result").unwrap();
    assert_eq!(
        (&result["subtype"], &result["is_error"], &result["result"]),
        (&json!("success"), &json!(false), &json!("done"))
    );
    assert!(claude.try_wait().unwrap().is_none());
    claude.kill().unwrap();
    claude.wait().unwrap();
    let last = session.api.last_conversation();
    let last = last.last_result().unwrap();
    assert!(
        last.starts_with("Next wakeup scheduled for ") && last.contains("If you owe the user a status update"),
        "{last}"
    );
}

#[test]
fn an_older_one_schedules_no_wakeup_by_itself() {
    if !is_whole() {
        return;
    }
    let input = json!({"delaySeconds": 3600, "reason": "a build runs", "prompt": "Look."});
    let run = Session::new(OLDER, Turn::call("ScheduleWakeup", input)).start();
    let last = run.requests.last().unwrap().last_result().unwrap();
    assert!(last.starts_with("Wakeup not scheduled."), "{last}");
}
