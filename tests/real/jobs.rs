//! One-shot jobs that agents make with Claude Code's own tool CronCreate, two levels deep: the chain stays open until they were
//! due.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::chain::Chain;
use crate::processes::{Gate, wait_until};
use crate::support::extent::is_whole;
use crate::support::{
    Conversation, Item, NEWEST, Turn, on_every_version, on_every_version_of_a_whole_run, processes_of,
};
use crate::wakeups::{above, time_passes, waits_for};

on_every_version!(a_job_that_is_deleted_is_not_waited_for);

on_every_version_of_a_whole_run!(
    each_job_is_due_once_and_the_last_reply_counts, a_question_is_answered_before_the_job_is_due,
    what_recurs_or_never_comes_is_refused, a_job_of_an_agent_that_was_stopped_is_due_all_the_same
);

const FAR: &str = "59 23 31 12 *";

fn job(cron: &str, prompt: &str) -> Value {
    json!({"cron": cron, "prompt": prompt, "recurring": false})
}

/// A child that makes these calls, one after the other, and then answers each prompt with `reply`.
fn calling(version: &str, calls: Vec<(&'static str, Value)>, reply: fn(&Conversation) -> String) -> Chain {
    let is_loaded_later = version == NEWEST;
    above(version, move |said| {
        let made: Vec<&str> = said
            .items()
            .iter()
            .filter_map(|item| match item {
                Item::Call { name, .. } => Some(name.as_str()),
                _ => None,
            })
            .collect();
        let tools = made.iter().filter(|name| **name != "ToolSearch").count();
        match calls.get(tools) {
            Some(_) if is_loaded_later && made.is_empty() => Turn::load("CronCreate,CronDelete,CronList"),
            Some(("CronDelete", _)) => Turn::call("CronDelete", json!({"id": ids(said)[0]})),
            Some((tool, input)) => Turn::call(tool, input.clone()),
            None => Turn::text(reply(said)),
        }
    })
}

/// The ids of the created jobs.
fn ids(said: &Conversation) -> Vec<String> {
    let id =
        |(text, _): (&str, bool)| text.strip_prefix("Scheduled one-shot task ")?.split(' ').next().map(str::to_owned);
    said.results().filter_map(id).collect()
}

fn echo(said: &Conversation) -> String {
    format!("after: {}", said.last_user_text().unwrap_or_default())
}

/// Makes the time of one job arrive.
fn comes(chain: &Chain, prompt: &str) {
    let database = chain.database();
    let sql = "UPDATE requests SET detail = json_replace(detail, '$.wait.scheduled.at', '2026-01-01T00:00:00Z')
               WHERE json_extract(detail, '$.wait.scheduled.prompt') = ?1";
    assert_eq!(database.execute(sql, [prompt]).unwrap(), 1);
}

fn each_job_is_due_once_and_the_last_reply_counts(version: &str) {
    let calls =
        vec![("CronCreate", job(FAR, "Look at A.")), ("CronCreate", job(FAR, "Look at B.")), ("CronList", json!({}))];
    let chain = calling(version, calls, echo);
    let root = chain.started(&["spawn", "root.md"]);
    assert!(processes_of(&chain.state()).is_empty());
    let waits = waits_for(&chain, &root);
    assert_eq!(waits.as_array().map(Vec::len), Some(2), "{waits}");
    let before = chain.api.count();
    assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
    assert_eq!(chain.api.count(), before);

    comes(&chain, "Look at B.");
    chain.started(&["resume", &root]);
    assert_eq!(chain.api.requests()[before].conversation().last_user_text(), Some("Look at B."));
    assert_eq!(chain.api.count(), before + 1);
    assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
    comes(&chain, "Look at A.");
    assert_eq!(chain.ok(&["resume", &root]), "the child says: after: Look at A.\n");
    assert_eq!(chain.api.count(), before + 3);
}

fn a_job_that_is_deleted_is_not_waited_for(version: &str) {
    let calls = vec![("CronCreate", job(FAR, "Look at A.")), ("CronDelete", json!({})), ("CronList", json!({}))];
    let chain = calling(version, calls, |said| said.last_result().unwrap_or_default().to_owned());
    assert_eq!(chain.ok(&["spawn", "root.md"]), "the child says: No scheduled jobs.\n");
}

/// The job is known to Claude Code in the attempt after the pause.
fn a_question_is_answered_before_the_job_is_due(version: &str) {
    let ask = json!({"command": "agent-cli ask 'Go?'"});
    let calls = vec![("CronCreate", job(FAR, "Look at A.")), ("Bash", ask), ("CronList", json!({}))];
    let chain = calling(version, calls, |said| format!("{}|{}", said.last_result().unwrap_or_default(), echo(said)));
    let root = chain.started(&["spawn", "root.md"]);
    time_passes(&chain);
    assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n", "the agent has not ended its turn");
    let database = chain.database();
    let sql =
        "UPDATE requests SET state = '{\"state\": \"open\"}', looked = NULL, detail = json_replace(detail, '$.wait.scheduled.at', '2100-01-01T00:00:00Z')
               WHERE kind = 'wait'";
    assert_eq!(database.execute(sql, []).unwrap(), 1);
    chain.answer("yes");
    chain.started(&["resume", &root]);
    comes(&chain, "Look at A.");
    let reply = chain.ok(&["resume", &root]);
    assert!(reply.contains("(one-shot) [session-only]") && reply.ends_with("|after: Look at A.\n"), "{reply}");
}

/// It is stopped while a command is running that it has called after it created the job.
fn a_job_of_an_agent_that_was_stopped_is_due_all_the_same(version: &str) {
    let folder = tempfile::tempdir().unwrap();
    let gate = Gate::new(folder.path().join("gate"));
    let command = json!({"command": gate.wait_command()});
    let calls = vec![("CronCreate", job(FAR, "Look at A.")), ("Bash", command), ("CronList", json!({}))];
    let chain = calling(version, calls, |said| format!("{}|{}", said.last_result().unwrap_or_default(), echo(said)));
    let runner = chain.start(&["spawn", "root.md", "--permission-mode", "bypassPermissions"]);
    gate.reached();
    let root = chain.only_root();
    let frames = chain.json(&["tree", &root, "--json"]);
    let child = frames.as_array().unwrap().iter().find(|frame| !frame["parent"].is_null()).unwrap();
    let stop = chain.state().join("frames").join(child["id"].as_str().unwrap()).join("stop");
    runner.signal(Signal::INT);
    wait_until("the agent is told to stop", || stop.exists());
    gate.open();
    assert_eq!(runner.ends().code, Some(130));
    chain.started(&["resume", &root]);
    let waits = waits_for(&chain, &root);
    assert_eq!(waits[0]["wait"]["scheduled"]["prompt"], "Look at A.", "{waits}");
    assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
    comes(&chain, "Look at A.");
    let reply = chain.ok(&["resume", &root]);
    assert!(reply.ends_with("|after: Look at A.\n"), "{reply}");
}

fn what_recurs_or_never_comes_is_refused(version: &str) {
    let recurring = json!({"cron": "*/5 * * * *", "prompt": "Look."});
    let durable = json!({"cron": FAR, "prompt": "Look.", "recurring": false, "durable": true});
    let calls = vec![
        ("CronCreate", recurring),
        ("CronCreate", durable),
        ("CronCreate", job("0 0 31 2 *", "Look.")),
        ("CronCreate", job(FAR, " ")),
        ("CronList", json!({})),
    ];
    let chain = calling(version, calls, |said| said.result_texts().join("\n"));
    let reply = chain.ok(&["spawn", "root.md"]);
    assert_eq!(reply.matches("only one-shot jobs work here").count(), 2, "{reply}");
    assert!(reply.contains("agent-cli wait --until TIME"), "{reply}");
    assert!(reply.contains("does not match any calendar date") && reply.contains("the prompt is empty"), "{reply}");
    assert!(reply.ends_with("No scheduled jobs.\n"), "{reply}");
}

#[test]
fn fifty_jobs_are_the_most_of_one_agent() {
    if !is_whole() {
        return;
    }
    let chain = above(NEWEST, |said| match (said.last_result(), ids(said).len()) {
        (None, _) => Turn::load("CronCreate"),
        (Some(refused), _) if refused.contains("Too many") => Turn::text(refused),
        (_, 50) => Turn::call("CronCreate", job(FAR, "One more.")),
        _ => (0..10).fold(Turn::default(), |turn, _| turn.and_call("CronCreate", job(FAR, "Look."))),
    });
    let root = chain.started(&["spawn", "root.md"]);
    assert_eq!(waits_for(&chain, &root).as_array().map(Vec::len), Some(50));
    let refused = chain.api.last_conversation().last_result().unwrap().to_owned();
    assert!(refused.contains("Too many scheduled jobs (max 50)"), "{refused}");
}
