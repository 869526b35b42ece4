//! What agents may do when nobody gave them a permission.

use serde_json::json;

use crate::chain::{Chain, TEMPLATE};
use crate::support::{Conversation, Item, MessagesApi, NEWEST, OLDER, Turn, follow};

/// The text and kind of every result so far.
fn results(conversation: &Conversation) -> Vec<(String, bool)> {
    let result = |item: &Item| match item {
        Item::Result { text, is_error, .. } => Some((text.clone(), *is_error)),
        _ => None,
    };
    conversation.items().iter().filter_map(result).collect()
}

/// A model that makes these calls, one a turn, and replies with a list: whether each came back as an error.
fn caller(commands: &'static [&'static str]) -> MessagesApi {
    MessagesApi::start(|conversation| {
        let results = results(conversation);
        match commands.get(results.len()) {
            Some(command) => Turn::bash(command),
            None => Turn::text(json!(results.iter().map(|(_, denied)| denied).collect::<Vec<_>>()).to_string()),
        }
    })
}

#[test]
fn a_chain_works_with_no_permission_at_all_on_the_newest_version() {
    a_chain_works_with_no_permission_at_all(NEWEST);
}

#[test]
fn a_chain_works_with_no_permission_at_all_on_an_older_version() {
    a_chain_works_with_no_permission_at_all(OLDER);
}

/// The instructions of the root lie outside the project, where a person may point to; those of its child as well, where
/// an agent may not.
fn a_chain_works_with_no_permission_at_all(version: &str) {
    let chain = Chain::with_model(version, MessagesApi::start(follow));
    chain.home.write("CLAUDE.md", TEMPLATE);
    let outside = chain.home.home().join("else where (1)");
    std::fs::create_dir(&outside).unwrap();
    let write = |name: &str, text: &str| std::fs::write(outside.join(name), text).unwrap();
    write("ins1.md", "1. _spawn_ `../project/inside.md`, `outside.md`.\n2. _terminate_ {the replies}.\n");
    write("outside.md", "1. _terminate_ \"a secret\".\n");
    chain.home.write("inside.md", "1. _ask_ \"When?\"\n2. _terminate_ {the answer}.\n");

    let root = chain.started(&["spawn", outside.join("ins1.md").to_str().unwrap()]);
    chain.answer("Jan 1st");
    let reply = chain.ok(&["resume", &root]);
    let replies = reply.split_once('\n').unwrap();
    assert_eq!(replies.0, "Jan 1st", "{reply}");
    assert!(replies.1.starts_with("I cannot read my instructions"), "{reply}");
}

#[test]
fn other_commands_are_denied_unless_the_user_allows_them_on_the_newest_version() {
    other_commands_are_denied_unless_the_user_allows_them(NEWEST);
}

#[test]
fn other_commands_are_denied_unless_the_user_allows_them_on_an_older_version() {
    other_commands_are_denied_unless_the_user_allows_them(OLDER);
}

fn other_commands_are_denied_unless_the_user_allows_them(version: &str) {
    let commands = &["touch made", "agent-cli answer abcd x", "mkdir made.d", "agent-cli resume none"];
    let chain = Chain::with_model(version, caller(commands));
    chain.home.write("ins.md", "Try this and that.");
    // The last is allowed, and fails because there is no such frame.
    assert_eq!(chain.ok(&["spawn", "ins.md"]), "[true,true,true,true]\n");
    assert!(!chain.home.project().join("made").exists());
    let last = chain.api.requests().pop().unwrap().conversation();
    assert!(last.last_result().unwrap().contains("error: "), "{:?}", last.last_result());

    let allowed = chain.ok(&["spawn", "ins.md", "--", "--allowedTools", "Bash(touch:*)"]);
    assert_eq!(allowed, "[false,true,true,true]\n");
    assert!(chain.home.project().join("made").exists());
    assert!(!chain.home.project().join("made.d").exists());
    let last = chain.api.requests().pop().unwrap().conversation();
    assert!(last.last_result().unwrap().contains("error: "), "the rules of requests are lost: {last:?}");
}
