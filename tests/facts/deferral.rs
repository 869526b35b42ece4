//! A call is deferred, and asked about again.

use serde_json::json;

use crate::session::{REQUEST, Session, commands, decision, run_instead, said_at_the_end};
use crate::support::{Turn, on_every_version};

on_every_version!(
    a_deferred_call_ends_the_run_and_stays_open,
    a_resumed_call_is_asked_about_again_and_its_result_is_delivered,
    a_call_can_be_deferred_again_without_a_request,
    a_reason_for_denying_a_resumed_call_is_its_result,
    a_resumed_call_without_a_hook_is_run,
    a_session_without_a_deferred_call_needs_a_prompt,
    a_prompt_comes_after_the_deferred_call_and_costs_a_request,
);

fn a_deferred_call_ends_the_run_and_stays_open(version: &str) {
    let session = Session::new(version, Turn::bash(REQUEST));
    let run = session.start();
    assert_eq!((run.code, run.requests.len()), (Some(0), 1));
    let result = run.result();
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("success"), &json!(false)));
    assert_eq!((&result["stop_reason"], &result["result"]), (&json!("tool_deferred"), &json!("")));
    let asked = session.asked();
    let input = json!({"command": REQUEST, "description": "Run a command"});
    assert_eq!(result["deferred_tool_use"], json!({"id": asked[0]["tool_use_id"], "name": "Bash", "input": input}));
    // All that the hook of agent-cli reads.
    assert_eq!((&asked[0]["session_id"], &asked[0]["tool_name"]), (&json!(run.session), &json!("Bash")));
    assert_eq!((&asked[0]["hook_event_name"], &asked[0]["tool_input"]), (&json!("PreToolUse"), &input));
    assert_eq!(asked[0]["cwd"], json!(session.home.project()));
    assert_eq!(asked[0].get("agent_id"), None);
}

fn a_resumed_call_is_asked_about_again_and_its_result_is_delivered(version: &str) {
    let session = Session::new(version, Turn::bash(REQUEST));
    session.start();
    session.decide(&run_instead("printf '%s' \"it's $HOME\""));
    let run = session.resume();
    let asked = session.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[1]["session_id"], json!(run.session));
    for same in ["tool_use_id", "tool_name", "tool_input", "cwd"] {
        assert_eq!(asked[0][same], asked[1][same]);
    }
    // One request; the conversation has the call as the model made it, its result, and one line of Claude Code's own.
    assert_eq!(commands(run.request()), [REQUEST]);
    assert_eq!(run.tool_result(), (format!("it's {}", session.home.home().display()).as_str(), false));
    assert_eq!(said_at_the_end(run.request()), ["Continue from where you left off."]);
    assert_eq!((run.code, &run.result()["result"]), (Some(0), &json!("done")));
}

fn a_call_can_be_deferred_again_without_a_request(version: &str) {
    let session = Session::new(version, Turn::bash(REQUEST));
    session.start();
    let again = session.resume();
    assert!(again.is_deferred());
    assert_eq!((again.code, again.requests.len()), (Some(0), 0));
    // Such a fork can itself be resumed, and so can the session that it was made from.
    session.decide(&run_instead("echo later"));
    for checkpoint in [again.session, session.id.clone()] {
        assert_eq!(session.resume_from(&checkpoint, "").tool_result(), ("later", false));
    }
}

fn a_reason_for_denying_a_resumed_call_is_its_result(version: &str) {
    let session = Session::new(version, Turn::bash(REQUEST));
    session.start();
    session.decide(&decision("deny", json!({"permissionDecisionReason": "not\n'now'\n"})));
    let prefix = if version == crate::support::NEWEST { "PreToolUse:Bash hook error: " } else { "" };
    assert_eq!(session.resume().tool_result(), (format!("{prefix}not\n'now'\n").as_str(), true));
}

/// So a frame must not be resumed without a prompt when its hook cannot be given.
fn a_resumed_call_without_a_hook_is_run(version: &str) {
    let mut session = Session::new(version, Turn::bash(REQUEST));
    session.start();
    session.settings = json!({"permissions": {"allow": ["Bash(agent-cli:*)"]}});
    let run = session.resume();
    let (text, is_error) = run.tool_result();
    // Each shell has a different message for a command that it does not find.
    assert!(is_error && text.starts_with("Exit code 127\n") && text.contains("agent-cli"), "{text}");
}

fn a_session_without_a_deferred_call_needs_a_prompt(version: &str) {
    let session = Session::new(version, Turn::text("done"));
    session.start();
    let run = session.resume();
    assert_eq!((run.code, run.requests.len(), run.events.len()), (Some(1), 0, 0));
    assert!(run.err.starts_with("Error: No deferred tool marker found in the resumed session."), "{}", run.err);
}

/// So a result is not delivered by a prompt as long as the marker is in the transcript.
fn a_prompt_comes_after_the_deferred_call_and_costs_a_request(version: &str) {
    let session = Session::new(version, Turn::bash(REQUEST));
    session.start();
    session.decide(&run_instead("echo result"));
    let run = session.resume_from(&session.id, "prompt");
    assert_eq!(run.requests.len(), 2);
    assert_eq!(said_at_the_end(&run.requests[0]), ["Continue from where you left off."]);
    assert_eq!(said_at_the_end(&run.requests[1]), ["Continue from where you left off.", "model: done", "prompt"]);
    assert_eq!(run.events.iter().filter(|event| event["type"] == "result").count(), 2);
}
