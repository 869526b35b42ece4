//! Waits for something outside, and questions that are posted as files.

use std::fs;

use crate::chain::Chain;
use crate::support::{Conversation, MessagesApi, Turn, on_every_version};

on_every_version!(
    conditions_are_waited_for_inside_the_call, no_rule_for_waiting_lets_a_command_run,
    a_question_is_posted_as_a_file_and_answered_by_one,
);

/// An agent that makes one call and replies what that returned.
fn calling(version: &str, command: &'static str) -> Chain {
    let model = move |said: &Conversation| match said.last_result() {
        Some(result) => Turn::text(result),
        None => Turn::bash(command),
    };
    Chain::with_model(version, MessagesApi::start(model))
}

fn conditions_are_waited_for_inside_the_call(version: &str) {
    let chain = calling(version, "agent-cli wait --file status --matches '(?m)^done$' --for 30d --any");
    let root = chain.started(&["spawn", "--prompt", "Wait."]);
    chain.home.write("status", "not\ndone?\n");
    assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
    assert_eq!(chain.api.count(), 1);
    let status = chain.home.write("status", "it is\ndone\n");
    let reply = chain.ok(&["resume", &root]);
    assert!(reply.starts_with("1 of 2 conditions is met:\n- `--file "), "{reply}");
    assert!(reply.ends_with(&format!("it matches: {}\n", status.display())), "{reply}");
    assert_eq!(chain.api.count(), 2);
}

fn no_rule_for_waiting_lets_a_command_run(version: &str) {
    for command in [
        "agent-cli wait --any --file x --command 'touch made'", "agent-cli wait --file=x --any --command='touch made'",
        "agent-cli wait --command 'touch made' --any --file x",
    ] {
        let chain = calling(version, command);
        let said = chain.run(&["spawn", "--prompt", "Wait."]);
        assert!(!chain.home.project().join("made").exists(), "{command}: {said:?}");
        assert!(chain.json(&["ls", "--all", "--json"])[0]["waiting_on"].as_array().unwrap().is_empty(), "{command}");
    }
}

fn a_question_is_posted_as_a_file_and_answered_by_one(version: &str) {
    let chain = Chain::with_model(
        version,
        MessagesApi::start(|said: &Conversation| match (said.last_user_text(), said.last_result()) {
            (Some(woken), _) if woken.contains("result of `QUESTION_POSTED:deploy`") => {
                Turn::text(woken.trim_end().lines().last().unwrap_or_default())
            }
            (_, Some(_)) => Turn::text("I ask.\n\nQUESTION_POSTED:deploy"),
            (_, None) => Turn::bash("cp question.json questions/pending/deploy.json"),
        }),
    );
    chain.home.write("question.json", include_str!("../../examples/question-files/question.json"));
    chain.home.write("questions/pending/.keep", "");
    let allowed = "--allowedTools=Bash(cp question.json questions/pending/deploy.json)";
    let root = chain.started(&["spawn", "--prompt", "Ask.", "--questions-dir", "questions", "--", allowed]);
    assert_eq!(chain.json(&["questions", "--json"])[0]["options"][1]["key"], "production");
    assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
    assert_eq!(chain.api.count(), 2);
    chain.home.write("questions/answered/deploy.json", r#"{"answer": "staging"}"#);
    assert_eq!(chain.ok(&["resume", &root]), "staging\n");
    assert_eq!(chain.api.count(), 3);
    assert!(fs::metadata(chain.home.project().join("questions/pending/deploy.json")).is_err());
}
