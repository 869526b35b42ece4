//! A session's surroundings besides its conversation, and what a fork keeps of them.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::session::{REQUEST, Run, Session, decision, results, run_instead};
use crate::support::{Conversation, OLDER, Turn, on_every_version_of_a_whole_run};

on_every_version_of_a_whole_run!(
    a_new_permission_mode_is_printed_before_the_call_has_its_result,
    a_fork_begins_in_the_mode_that_it_is_started_with,
    a_switch_overrules_the_permission_mode,
    in_plan_mode_a_command_needs_a_rule_besides_a_hook,
    a_transcript_tells_where_the_shell_is_and_a_fork_begins_elsewhere,
    what_a_hook_says_besides_reaches_the_model_with_the_result,
    a_skill_brings_rules_that_are_printed_and_that_a_fork_has_not,
    odd_rules_do_no_harm,
    an_entered_worktree_comes_back_in_the_session_itself_only,
);

/// A model that makes these calls, one after the other. A fork begins behind those that have results.
fn session(version: &str, calls: Vec<Turn>) -> Session {
    Session::with_model(version, move |said: &Conversation| {
        let over = said.results().count();
        calls.get(over).cloned().unwrap_or_else(|| Turn::text("done"))
    })
}

fn plan() -> Turn {
    Turn::call("EnterPlanMode", json!({}))
}

fn modes(run: &Run) -> Vec<&str> {
    run.events.iter().filter_map(|event| event["permissionMode"].as_str()).collect()
}

/// EnterPlanMode needs such a tool on older versions.
const ASKING: [&str; 2] = ["--permission-prompt-tool", "stdio"];

fn planning(version: &str, mode: &'static [&'static str], after: Vec<Turn>) -> Session {
    let mut session =
        session(version, [vec![Turn::load("EnterPlanMode"), plan(), Turn::bash(REQUEST)], after].concat());
    session.arguments = [&ASKING, mode].concat();
    session
}

fn a_new_permission_mode_is_printed_before_the_call_has_its_result(version: &str) {
    let session = planning(version, &["--permission-mode", "acceptEdits"], Vec::new());
    let run = session.start();
    assert!(run.is_deferred());
    assert_eq!(modes(&run), ["acceptEdits", "plan"]);
    let at = |is: &dyn Fn(&Value) -> bool| run.events.iter().position(is).unwrap();
    let printed = at(&|event| event["subtype"] == "status" && event["permissionMode"] == "plan");
    let result = at(&|event| event["type"] == "user" && event.to_string().contains("Entered plan mode"));
    assert!(printed < result);
    assert_eq!(session.asked().last().unwrap()["permission_mode"], "plan");
}

fn a_fork_begins_in_the_mode_that_it_is_started_with(version: &str) {
    let mut session = planning(version, &["--permission-mode", "acceptEdits"], Vec::new());
    session.start();
    session.decide(&run_instead("echo result"));
    assert_eq!(modes(&session.resume()), ["acceptEdits"]);
    session.arguments = [&ASKING, &["--permission-mode", "plan"][..]].concat();
    assert_eq!(modes(&session.resume()), ["plan"]);
}

fn a_switch_overrules_the_permission_mode(version: &str) {
    let mut session = session(version, Vec::new());
    session.arguments = vec!["--permission-mode", "plan", "--dangerously-skip-permissions"];
    assert_eq!(modes(&session.start()), ["bypassPermissions"]);
    let mut session = self::session(version, Vec::new());
    session.arguments = vec!["--permission-mode", "plan", "--allow-dangerously-skip-permissions"];
    assert_eq!(modes(&session.start()), ["plan"]);
}

/// Since 2.1.300.
fn in_plan_mode_a_command_needs_a_rule_besides_a_hook(version: &str) {
    let mut session = planning(version, &["--permission-mode", "plan"], Vec::new());
    session.start();
    let program = session.script("my program", "echo result");
    let decide = |session: &Session, before: &str| {
        session.decide(&run_instead(&format!("{before} >/dev/null 2>&1; '{program}' hook-result")));
    };
    decide(&session, "builtin cd .");
    let last = |run: &Run| {
        let (_, text, is_error) = results(run.requests.last().unwrap()).pop().unwrap();
        (text.to_owned(), is_error)
    };
    let without = last(&session.resume());
    assert_eq!(without.1, version != OLDER, "{without:?}");
    session.settings["permissions"] = json!({"allow": [format!("Bash('{program}' hook-result:*)")]});
    for (before, is_run) in [("builtin cd .", true), ("command cd .", true), ("builtin cd . || cd .", version == OLDER)]
    {
        decide(&session, before);
        let (text, is_error) = last(&session.resume());
        assert_eq!(is_error, !is_run, "{before}: {text}");
    }
}

fn a_transcript_tells_where_the_shell_is_and_a_fork_begins_elsewhere(version: &str) {
    let session = session(version, vec![Turn::bash("cd build"), Turn::bash(REQUEST), Turn::bash("pwd")]);
    let (project, build) = (session.home.project().to_owned(), session.home.project().join("build"));
    fs::create_dir(&build).unwrap();
    session.start();
    let last = session.transcript().into_iter().rfind(|line| line["uuid"].is_string()).unwrap();
    assert_eq!(last["cwd"], json!(build));
    assert_eq!(session.asked().last().unwrap()["cwd"], json!(build));
    let pwd = |run: &Run| results(run.requests.last().unwrap()).pop().unwrap().1.to_owned();
    for (command, expected) in [
        ("echo result".to_owned(), &project),
        (format!("cd '{}'; echo result", build.display()), &build),
        // Outside of the folders that it works in Claude Code leaves no shell.
        ("cd /etc; echo result".to_owned(), &project),
    ] {
        session.decide(&run_instead(&command));
        assert_eq!(pwd(&session.resume()), expected.display().to_string(), "{command}");
    }
}

fn what_a_hook_says_besides_reaches_the_model_with_the_result(version: &str) {
    let session = Session::new(version, Turn::bash(REQUEST));
    session.start();
    let more = json!({"updatedInput": {"command": "echo result"}, "additionalContext": "by the way"});
    session.decide(&decision("allow", more));
    let run = session.resume();
    assert_eq!(run.tool_result(), ("result", false));
    assert!(run.request().context().contains("PreToolUse:Bash hook additional context: by the way"));
}

fn a_skill_brings_rules_that_are_printed_and_that_a_fork_has_not(version: &str) {
    let calls = vec![
        Turn::call("Skill", json!({"skill": "tidy"})),
        Turn::bash("python3 -c 1"),
        Turn::bash(REQUEST),
        Turn::bash("python3 -c 1"),
    ];
    let mut session = session(version, calls);
    session.write("otherwise", "");
    let rules = json!(["Bash(python3:*)"]);
    session.home.write(
        ".claude/skills/tidy/SKILL.md",
        "---\nname: tidy\ndescription: tidy\nallowed-tools: Bash(python3:*)\n---\nDo it.\n",
    );
    session.arguments = [&ASKING, &["--permission-mode", "default"][..]].concat();
    session.settings["permissions"] = json!({"allow": ["Skill"]});
    let run = session.start();
    let printed = run.events.iter().find(|event| event["tool_use_result"]["commandName"] == "tidy").unwrap();
    assert_eq!(
        (&printed["tool_use_result"]["success"], &printed["tool_use_result"]["allowedTools"]),
        (&json!(true), &rules)
    );
    let is_error = |run: &Run| results(run.requests.last().unwrap()).pop().unwrap().2;
    // On older versions they did not hold in every run, for a reason that was not found.
    assert!(version == OLDER || !is_error(&run), "{:?}", results(run.requests.last().unwrap()));
    session.decide(&run_instead("echo result"));
    assert!(is_error(&session.resume()));
    session.settings["permissions"] = json!({"allow": rules});
    assert!(!is_error(&session.resume()));
}

fn odd_rules_do_no_harm(version: &str) {
    let mut session = session(version, vec![Turn::bash("touch made")]);
    session.write("otherwise", "");
    session.arguments = vec!["--permission-mode", "default"];
    let odd = ["Bash(mkdir", "Bash(a)(b)", "Foo(", "", " ", "*", "Bash(", "Bash(a:*) Read", "Bash(touch:*)"];
    session.settings["permissions"] = json!({"allow": odd});
    session.start();
    assert!(session.home.project().join("made").exists());
}

/// A fork has not entered it, under whatever id. Nor has the session itself on older versions.
fn an_entered_worktree_comes_back_in_the_session_itself_only(version: &str) {
    let calls = vec![
        Turn::load("EnterWorktree,ExitWorktree"),
        Turn::call("EnterWorktree", json!({"name": "feature"})),
        Turn::bash(REQUEST),
        Turn::bash("pwd"),
        Turn::call("ExitWorktree", json!({"action": "keep"})),
    ];
    let mut session = session(version, calls);
    session.arguments = vec!["--permission-mode", "bypassPermissions"];
    let project = session.home.project().to_owned();
    for arguments in ["init -q", "-c user.name=a -c user.email=a@localhost commit -q -m begin --allow-empty"] {
        let git: &mut Command = &mut session.home.command("git");
        assert!(git.args(arguments.split(' ')).status().unwrap().success());
    }
    session.start();
    let entered = session.transcript().into_iter().rfind(|line| line["type"] == "worktree-state").unwrap();
    let worktree = project.join(".claude/worktrees/feature");
    assert_eq!(entered["worktreeSession"]["worktreePath"], json!(worktree));
    session.decide(&run_instead("echo result"));
    let last_two = |run: &Run| {
        let mut results =
            results(run.requests.last().unwrap()).into_iter().map(|(_, text, _)| text.to_owned()).collect::<Vec<_>>();
        results.split_off(results.len() - 2)
    };
    let fork = last_two(&session.resume());
    assert_eq!(fork[0], project.display().to_string());
    assert!(fork[1].contains("No-op: there is no active EnterWorktree session"), "{fork:?}");
    let itself = last_two(&session.go_on());
    if version == OLDER {
        assert_eq!(itself[0], project.display().to_string());
    } else {
        assert_eq!(itself[0], worktree.display().to_string());
        assert!(itself[1].starts_with("Exited worktree."), "{itself:?}");
    }
}
