//! `--native-agents`: how many agents Claude Code's own tools may start.

use serde_json::json;

use crate::chain::Chain;
use crate::support::{Conversation, MessagesApi, Turn, on_every_version};

on_every_version!(agents_beyond_the_limit_are_denied_over_all_attempts, without_agents_no_tool_starts_one);

const BYPASS: [&str; 2] = ["--permission-mode", "bypassPermissions"];

fn greets() -> Turn {
    let input = json!({"description": "greet", "prompt": "say hello", "subagent_type": "general-purpose", "run_in_background": false});
    Turn::call("Agent", input)
}

fn agents_beyond_the_limit_are_denied_over_all_attempts(version: &str) {
    let model = |said: &Conversation| match (said.task().contains("ins.md"), said.result_texts().len()) {
        (false, _) => Turn::text("hello"),
        (true, 1) => Turn::bash("agent-cli ask 'When?'"),
        (true, 0 | 2 | 3) => greets(),
        (true, _) => {
            let denied = |text: &&&str| text.contains("as many agents of Claude Code's own as you may (2)");
            Turn::text(said.result_texts().iter().filter(denied).count().to_string())
        }
    };
    let chain = Chain::with_model(version, MessagesApi::start(model));
    chain.home.write("ins.md", "Do what the model does.");
    let root = chain.started(&[&["spawn", "ins.md", "--native-agents", "2"], &BYPASS[..]].concat());
    chain.answer("now");
    assert_eq!(chain.ok(&["resume", &root]), "1\n", "the third was denied");
}

fn without_agents_no_tool_starts_one(version: &str) {
    let model = |said: &Conversation| match said.result_texts().len() {
        0 => Turn::bash("agent-cli ask 'When?'"),
        1 => greets(),
        _ => Turn::text("over"),
    };
    let chain = Chain::with_model(version, MessagesApi::start(model));
    chain.home.write("ins.md", "Do what the model does.");
    let root = chain.started(&[&["spawn", "ins.md", "--native-agents", "off"], &BYPASS[..]].concat());
    chain.answer("now");
    assert_eq!(chain.ok(&["resume", &root]), "over\n");
    let requests = chain.api.requests();
    for request in &requests {
        let tools = request.tools().to_string();
        assert!(["\"Agent\"", "\"Task\"", "\"Workflow\""].iter().all(|name| !tools.contains(name)), "{tools}");
        assert_eq!(request.tools(), requests[0].tools(), "the prefix is the same in each attempt");
    }
}
