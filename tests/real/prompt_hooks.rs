//! Hooks of the user that decide on prompts: each continuation is one to Claude Code.

use std::fs;

use serde_json::json;

use crate::chain::Chain;
use crate::support::{NEWEST, on_every_version};

on_every_version!(
    a_prompt_hook_that_blocks_a_continuation_takes_nothing_away,
    a_prompt_hook_that_blocks_is_no_reply_for_a_parent,
);

/// A hook that lets nothing pass but first prompts, which name a file.
fn block(chain: &Chain, decision: &str) {
    let command = format!("case $(cat) in *'.md'*) ;; *) {decision} ;; esac");
    let hook = json!({"hooks": [{"type": "command", "command": command}]});
    let folder = chain.home.home().join(".claude");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("settings.json"), json!({"hooks": {"UserPromptSubmit": [hook]}}).to_string()).unwrap();
}

fn unblock(chain: &Chain) {
    fs::remove_file(chain.home.home().join(".claude/settings.json")).unwrap();
}

const DECISIONS: [&str; 3] = [
    r#"echo '{"decision": "block", "reason": "no ticket"}'"#,
    "echo no ticket >&2; exit 2",
    r#"echo '{"continue": false, "stopReason": "no ticket"}'"#,
];

fn a_prompt_hook_that_blocks_a_continuation_takes_nothing_away(version: &str) {
    for (decision, questions) in DECISIONS.iter().zip(["ask When?", "ask When? ++ run echo x", "ask When?"]) {
        let chain = Chain::new(version);
        block(&chain, decision);
        chain.home.write("ins.md", &format!("{questions}\nreply {{result}}\n"));
        let root = chain.started(&["spawn", "ins.md"]);
        let requests = chain.api.count();
        chain.answer("Jan 1st");
        for _ in 0..2 {
            let said = chain.run(&["resume", &root, "--now"]);
            assert!(!said.out.contains("no ticket") && said.err.contains("no ticket"), "{said:?}");
        }
        assert_eq!(chain.api.count(), requests, "{decision}");
        unblock(&chain);
        let reply = chain.ok(&["resume", &root, "--now"]);
        assert!(reply.contains("Jan 1st\n") || reply == "x\n", "{reply}");
        assert!(chain.last_results().contains(&("Jan 1st".to_owned(), false)), "{decision}");
        // The hook was asked about an empty prompt: the result came by standard input.
        let said = chain.api.last_conversation();
        let is_told_to_continue = version != NEWEST && questions.contains("++");
        assert_eq!(said.user_texts().any(|text| text.contains("Continue from")), is_told_to_continue, "{decision}");
    }
}

fn a_prompt_hook_that_blocks_is_no_reply_for_a_parent(version: &str) {
    let chain = Chain::new(version);
    block(&chain, DECISIONS[0]);
    chain.home.write("ins.md", "spawn child.md\nreply the child says {result}\n");
    chain.home.write("child.md", "ask When?\nreply {result}\n");
    let root = chain.started(&["spawn", "ins.md"]);
    chain.answer("Jan 1st");
    let said = chain.run(&["resume", &root]);
    assert!(!said.out.contains("no ticket") && said.err.contains("no ticket"), "{said:?}");
    unblock(&chain);
    assert_eq!(chain.ok(&["resume", &root, "--now"]), "the child says Jan 1st\n");
}
