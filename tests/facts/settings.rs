//! Which hooks run, and their input.

use serde_json::{Value, json};

use crate::session::{REQUEST, Session};
use crate::support::{NEWEST, Turn, on_every_version_of_a_whole_run};

on_every_version_of_a_whole_run!(
    a_condition_keeps_the_hook_from_being_started_for_other_commands,
    a_condition_does_not_see_what_a_shell_reads,
    a_hook_of_the_session_start_tells_a_start_from_a_resume,
    hooks_are_given_the_environment_of_claude,
    bare_switches_the_hooks_of_the_command_line_off,
    disable_all_hooks_of_a_project_switches_the_hooks_of_the_command_line_off,
);

fn a_condition_keeps_the_hook_from_being_started_for_other_commands(version: &str) {
    let commands =
        ["echo agent", "\"/x y/agent-cli\" ls", "cd / && $PWD/agent-cli ls | cat", "agent-cli ask 'a\nb (\"c\")'"];
    let turn = commands[1..].iter().fold(Turn::bash(commands[0]), |turn, command| turn.and_bash(command));
    let mut session = Session::new(version, turn);
    session.settings["hooks"]["PreToolUse"][0]["hooks"][0]["if"] = json!("Bash(*agent-cli*)");
    session.start();
    let mut asked: Vec<Value> = session.asked().iter().map(|call| call["tool_input"]["command"].clone()).collect();
    asked.sort_by_key(|asked| commands.iter().position(|command| asked == command));
    assert_eq!(asked, commands[1..]);
}

fn a_condition_does_not_see_what_a_shell_reads(version: &str) {
    let commands = ["bash <<'E'\necho agent-cli\nE", "sh -s <<< 'echo agent-cli'"];
    for (condition, expected) in
        [("Bash(*agent-cli*)", &[][..]), ("Bash(*sh)", &commands[..1]), ("Bash(*sh -*)", &commands[1..])]
    {
        let mut session = Session::new(version, Turn::bash(commands[0]).and_bash(commands[1]));
        session.settings["hooks"]["PreToolUse"][0]["hooks"][0]["if"] = json!(condition);
        session.start();
        let asked: Vec<Value> = session.asked().iter().map(|call| call["tool_input"]["command"].clone()).collect();
        assert_eq!(asked, expected, "{condition}");
    }
}

/// On the older version a fork is named by the session that it is made from: a mark goes by the environment.
fn a_hook_of_the_session_start_tells_a_start_from_a_resume(version: &str) {
    let mut session = Session::new(version, Turn::bash(REQUEST));
    let hook = session.script("start", "cat >> started; echo >> started\n");
    session.settings["hooks"]["SessionStart"] = json!([{"hooks": [{"type": "command", "command": hook}]}]);
    session.start();
    let fork = session.resume().session;
    let started = session.read("started");
    let started = started.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap());
    let told = |input: Value| (input["source"].clone(), input["session_id"].clone());
    let (again, id) = if version == NEWEST { ("fork", &fork) } else { ("resume", &session.id) };
    let expected = [(json!("startup"), json!(session.id)), (json!(again), json!(id))];
    assert_eq!(started.map(told).collect::<Vec<_>>(), expected);
}

fn hooks_are_given_the_environment_of_claude(version: &str) {
    let session = Session::new(version, Turn::bash(REQUEST));
    let output = session.command().env("AGENT_CLI_AGENT_ID", "a frame").arg("go").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let environment = session.read("environment");
    assert!(environment.lines().any(|line| line == "AGENT_CLI_AGENT_ID=a frame"), "{environment}");
}

fn bare_switches_the_hooks_of_the_command_line_off(version: &str) {
    let mut session = Session::new(version, Turn::bash(REQUEST));
    session.arguments = vec!["--bare"];
    assert!(!session.start().is_deferred());
    assert_eq!(session.asked().len(), 0);
}

fn disable_all_hooks_of_a_project_switches_the_hooks_of_the_command_line_off(version: &str) {
    let mut session = Session::new(version, Turn::bash(REQUEST));
    session.home.write(".claude/settings.json", r#"{"disableAllHooks": true}"#);
    assert!(!session.start().is_deferred());
    assert_eq!(session.asked().len(), 0);
    // The command line could overrule it.
    session.settings["disableAllHooks"] = json!(false);
    session.id = uuid::Uuid::new_v4().to_string();
    assert!(session.start().is_deferred());
}
