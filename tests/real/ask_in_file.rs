//! Questions in files: asked with a suspended call, and answered without a request.

use std::fs;

use serde_json::json;

use crate::chain::Chain;
use crate::support::{MessagesApi, Turn, on_every_version};

on_every_version!(a_question_is_answered_in_its_file, a_new_file_needs_the_right_to_write);

/// An agent that calls this command and replies its result.
fn calling(version: &str, command: &'static str) -> Chain {
    let api = MessagesApi::start(move |said| {
        let result = said.results().next();
        result.map_or_else(|| Turn::call("Bash", json!({"command": command})), |(text, _)| Turn::text(text))
    });
    let chain = Chain::with_model(version, api);
    chain.home.write("ins.md", "Do what the model does.");
    chain
}

fn a_question_is_answered_in_its_file(version: &str) {
    let chain = calling(version, "agent-cli ask --file q.md");
    chain.home.write("q.md", "When is your birthday?\n\nA:\n");
    let root = chain.started(&["spawn", "ins.md"]);
    let asked = chain.api.count();
    assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
    chain.home.write("q.md", "When is your birthday?\n\nA: Jan 1st,\n\n  \"or\" so\n---\n");
    assert_eq!(chain.ok(&["resume", &root]), "Jan 1st,\n\n  \"or\" so\n");
    assert_eq!(chain.api.count(), asked + 1, "the call returns its result with the only request");
}

fn a_new_file_needs_the_right_to_write(version: &str) {
    let chain = calling(version, "agent-cli ask --file q.md 'When?'");
    let reply = chain.ok(&["spawn", "ins.md"]);
    assert!(reply.contains("you may not write it without a permission"), "{reply}");
    assert!(!chain.home.project().join("q.md").exists());
    let root = chain.started(&["spawn", "ins.md", "--permission-mode", "acceptEdits"]);
    assert_eq!(fs::read_to_string(chain.home.project().join("q.md")).unwrap(), "When?\n\nA: \n");
    chain.home.write("q.md", "When?\n\nA: now\n---\n");
    assert_eq!(chain.ok(&["resume", &root]), "now\n");
}
