//! Calls of the agents that Claude Code itself starts inside an agent.

use serde_json::json;

use crate::session::{REQUEST, Run, Session, decision};
use crate::support::{Conversation, Item, Turn, on_every_version};

on_every_version!(
    the_hook_is_told_that_a_subagent_calls, a_deferred_call_of_a_subagent_ends_it_without_a_word,
    a_subagent_is_told_why_its_call_is_denied,
);

fn the_hook_is_told_that_a_subagent_calls(version: &str) {
    let session = Session::with_model(version, caller);
    session.decide(&decision("deny", json!({"permissionDecisionReason": "no"})));
    session.start();
    assert!(session.asked()[0]["agent_id"].is_string(), "{:?}", session.asked());
    assert_eq!(session.asked()[0]["agent_type"], "general-purpose");
    // The session is the caller's.
    assert_eq!(session.asked()[0]["session_id"], json!(session.id));
}

/// The caller is not told, and the run continues.
fn a_deferred_call_of_a_subagent_ends_it_without_a_word(version: &str) {
    let session = Session::with_model(version, caller);
    let run = session.start();
    assert_eq!((run.is_deferred(), run.code, session.asked().len()), (false, Some(0), 1));
    assert_eq!(of_subagent(&run).len(), 1);
}

fn a_subagent_is_told_why_its_call_is_denied(version: &str) {
    let session = Session::with_model(version, caller);
    session.decide(&decision("deny", json!({"permissionDecisionReason": "ask your caller"})));
    let run = session.start();
    let [_, told] = of_subagent(&run)[..] else { panic!("{run:?}") };
    assert!(told.last_result().unwrap().ends_with("ask your caller"), "{told:?}");
}

fn caller(said: &Conversation) -> Turn {
    let results = said.items().iter().any(|item| matches!(item, Item::Result { .. }));
    match (results, is_subagent(said)) {
        (true, _) => Turn::text("done"),
        (false, true) => Turn::bash(REQUEST),
        (false, false) => Turn::call(
            "Agent",
            json!({"description": "d", "prompt": "in a subagent", "subagent_type": "general-purpose"}),
        ),
    }
}

fn is_subagent(said: &Conversation) -> bool {
    said.task().contains("in a subagent")
}

fn of_subagent(run: &Run) -> Vec<&Conversation> {
    run.requests.iter().filter(|request| is_subagent(request)).collect()
}
