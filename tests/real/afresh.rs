//! A new start in a new session: `resume ID --afresh`.

use serde_json::{Value, json};

use crate::birthday::shares_its_prefix;
use crate::chain::Chain;
use crate::support::{Conversation, MessagesApi, ToolCall, Turn, on_every_version};

on_every_version!(
    a_new_session_has_the_task_the_summary_and_the_result_and_nothing_else,
    no_tool_runs_while_a_summary_is_written,
    without_hooks_there_are_no_tools_for_a_summary,
    several_results_and_a_message_reach_the_new_session_once,
);

const TASK: &str = "Find out when the birthday is.";
const SUMMARY: &str = "## Goal\nThe birthday.\n\n## Decisions\nA person knows it: I asked.\n\n## State of the files\nnotes.md: empty.\n\n## Open questions\nWhen it is.";
const BYPASS: [&str; 2] = ["--permission-mode", "bypassPermissions"];

fn wants_summary(said: &Conversation) -> bool {
    said.last_user_text().is_some_and(|text| text.contains("Reply with the summary and nothing else"))
}

fn has_summary(said: &Conversation) -> bool {
    said.user_texts().any(|text| text.contains("A person knows it"))
}

/// An agent that makes notes and asks, writes a summary if it is asked for one, and replies with what it is told then. `first`:
/// what it does when it is asked for the summary.
fn model(first: impl Fn(&Conversation) -> Turn + Send + Sync + 'static) -> MessagesApi {
    MessagesApi::start(move |said| match said.calls().count() {
        _ if wants_summary(said) => first(said),
        0 if has_summary(said) => Turn::text(format!("told: {}", said.last_user_text().unwrap_or_default())),
        0 => Turn::bash("echo a long output; touch notes.md"),
        1 => Turn::bash("agent-cli ask 'When?'"),
        _ => Turn::text(format!("returned: {}", said.last_result().unwrap_or_default())),
    })
}

fn outcomes(chain: &Chain, id: &str) -> Vec<String> {
    let shown = chain.json(&["show", id, "--json"]);
    let sessions = shown["sessions"].as_array().unwrap().iter();
    sessions.map(|session| session["outcome"].as_str().unwrap_or("running").to_owned()).collect()
}

fn a_new_session_has_the_task_the_summary_and_the_result_and_nothing_else(version: &str) {
    let chain = Chain::with_model(version, model(|_| Turn::text(SUMMARY)));
    let id = chain.started(&[&["spawn", "--prompt", TASK], &BYPASS[..]].concat());
    let before = chain.api.count();
    let old = chain.json(&["show", &id, "--json"])["session"].clone();
    assert_eq!(chain.ok(&["resume", &id, "--afresh"]), "SGN_PEND_ONGOING\n");
    assert_eq!(chain.api.count() - before, 1, "one request");
    let requests = chain.api.requests();
    shares_its_prefix(&requests[before - 1], &requests[before]);
    let asked = requests[before].conversation();
    assert!(asked.last_result().is_some_and(|text| text.starts_with("This call has no result yet.")), "{asked:?}");
    let shown = chain.json(&["show", &id, "--json"]);
    assert_eq!((shown["summary"].as_str(), shown["session"] == old), (Some(SUMMARY), false));

    chain.answer("Jan 1st");
    let reply = chain.ok(&["resume", &id]);
    assert_eq!(reply.matches("Jan 1st").count(), 1, "{reply}");
    assert_eq!(chain.api.count() - before, 2, "one more");
    let new = chain.api.last_conversation();
    assert_eq!((new.calls().count(), new.user_texts().count()), (0, 1), "{new:?}");
    assert!(new.task().starts_with(TASK) && new.task().contains(SUMMARY), "{new:?}");
    assert!(!format!("{new:?}").contains("a long output"));
    assert_eq!(outcomes(&chain, &id), ["requested", "summary", "reply"]);
    assert_eq!(chain.ok(&["fsck"]), "");
    // The conversation before can still be opened.
    let opened = chain.ok(&["open", &id, "--earlier", "--print"]);
    assert!(opened.contains(old.as_str().unwrap()), "{opened} {old}");
    chain.nothing_runs();
}

fn no_tool_runs_while_a_summary_is_written(version: &str) {
    let calls_first = |said: &Conversation| match said.last_result() {
        Some(text) if text.contains("Tools are denied now") => Turn::text(SUMMARY),
        _ => Turn::bash("touch made").and_call("Write", json!({"file_path": "/tmp/made", "content": "x"})),
    };
    let chain = Chain::with_model(version, model(calls_first));
    let id = chain.started(&[&["spawn", "--prompt", TASK], &BYPASS[..]].concat());
    chain.ok(&["resume", &id, "--afresh"]);
    assert_eq!(outcomes(&chain, &id), ["requested", "summary"]);
    assert!(!chain.home.project().join("made").exists());
    let asked = |said: &Conversation| match said.last_result() {
        _ if said.calls().count() > 9 => Turn::text(SUMMARY),
        _ => Turn::bash("agent-cli ask 'Why?'"),
    };
    // An agent that calls tools forever keeps its conversation.
    let chain = Chain::with_model(version, model(asked));
    let id = chain.started(&[&["spawn", "--prompt", TASK], &BYPASS[..]].concat());
    let said = chain.run(&["resume", &id, "--afresh"]);
    assert!(said.code == Some(1) && said.err.contains("called tools again and again"), "{said:?}");
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &id]), "returned: Jan 1st\n");
    assert_eq!(outcomes(&chain, &id), ["requested", "no_summary", "reply"]);
}

fn without_hooks_there_are_no_tools_for_a_summary(version: &str) {
    let has_tools = |body: &Value| body.as_array().is_some_and(|tools| !tools.is_empty());
    let chain = Chain::with_model(version, model(|_| Turn::text(SUMMARY)));
    let id = chain.started(&[&["spawn", "--prompt", TASK, "--no-hooks"], &BYPASS[..]].concat());
    let before = chain.api.count();
    chain.ok(&["resume", &id, "--afresh"]);
    assert_eq!(outcomes(&chain, &id).last().map(String::as_str), Some("summary"));
    let requests = chain.api.requests();
    assert!(has_tools(requests[0].tools()) && !has_tools(requests[before].tools()), "{}", requests[before].tools());
    chain.answer("Jan 1st");
    assert!(chain.ok(&["resume", &id]).contains("Jan 1st"));
    assert!(has_tools(chain.api.requests().last().unwrap().tools()));
}

/// Two calls of one message are suspended, and a message waits for the agent.
fn several_results_and_a_message_reach_the_new_session_once(version: &str) {
    let api = MessagesApi::start(|said| match said.calls().count() {
        _ if wants_summary(said) => Turn::text(SUMMARY),
        0 if has_summary(said) => Turn::text(format!("told: {}", said.last_user_text().unwrap_or_default())),
        0 => Turn::bash("agent-cli ask 'When?'").and(ToolCall::bash("agent-cli ask 'Where?'")),
        _ => Turn::text("SGN_PEND_STARTED"),
    });
    let chain = Chain::with_model(version, api);
    let id = chain.started(&["spawn", "--prompt", TASK, "--permission-mode", "acceptEdits"]);
    chain.ok(&["tell", &id, "Use the calendar."]);
    chain.ok(&["resume", &id, "--afresh"]);
    assert!(!format!("{:?}", chain.api.last_conversation()).contains("Use the calendar."));
    chain.answer_to("When?", "Jan 1st");
    chain.answer_to("Where?", "in Rome");
    let reply = chain.ok(&["resume", &id]);
    let once = ["Jan 1st", "in Rome", "Use the calendar."].map(|text| reply.matches(text).count());
    assert_eq!(once, [1, 1, 1], "{reply}");
}
