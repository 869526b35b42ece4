//! What a pause adds to the conversation, compared request by request: only the call and its result.

use serde_json::{Value, json};

use crate::chain::Chain;
use crate::support::{
    Conversation, Item, MessagesApi, NEWEST, ToolCall, Turn, on_every_version, on_the_newest_version,
};

on_every_version!(
    a_question_adds_its_answer_and_nothing_else, a_child_adds_its_reply_and_nothing_else,
    a_wait_adds_its_result_and_nothing_else, a_result_of_any_size_is_exact,
    what_else_there_is_to_say_stands_beside_the_result, beside_background_work_the_agent_is_told_to_continue,
    a_shell_that_has_moved_is_returned_by_a_command,
);

// In older versions, a result can only be passed to the single call of a message.
on_the_newest_version!(
    several_calls_of_a_message_add_their_results_and_nothing_else,
    a_request_in_another_directory_leaves_the_shell_where_its_agent_is_told,
);

pub(crate) const ASK: &str = "agent-cli ask 'When?'";

/// A chain whose root makes these calls, message by message, and ends. All other agents reply immediately.
pub(crate) fn chain(version: &str, messages: Vec<Vec<ToolCall>>) -> Chain {
    let model = move |said: &Conversation| {
        if !is_of_root(said) {
            return Turn::text("the child's reply");
        }
        let mut made = said.calls().count();
        for message in &messages {
            if made == 0 {
                return message.iter().cloned().fold(Turn::default(), Turn::and);
            }
            made = made.saturating_sub(message.len());
        }
        Turn::text("over")
    };
    let chain = Chain::with_model(version, MessagesApi::start(model));
    chain.home.write("ins.md", "Do what the model does.");
    chain.home.write("child.md", "Reply.");
    chain
}

fn is_of_root(said: &Conversation) -> bool {
    matches!(said.items().first(), Some(Item::User(text)) if text.contains("ins.md"))
}

/// The messages of each request of the root, without cache marks.
fn requests(chain: &Chain) -> Vec<Vec<Value>> {
    let of_root = chain.api.requests().into_iter().filter(|request| is_of_root(&request.conversation()));
    let messages = of_root.map(|request| request.body["messages"].as_array().unwrap().clone());
    messages.map(|messages| messages.iter().map(plain).collect()).collect()
}

/// A content is a text or a list of blocks, depending on the cache marks.
fn plain(message: &Value) -> Value {
    let mut message = message.clone();
    if let Some(text) = message["content"].as_str() {
        message["content"] = json!([{"type": "text", "text": text}]);
    }
    for block in message["content"].as_array_mut().unwrap() {
        block.as_object_mut().unwrap().remove("cache_control");
    }
    message
}

/// Each request is the one before it, the calls that it was answered with, and their results. The blocks of the results, as
/// those of the last message of each request after the first.
pub(crate) fn only_results_are_added(chain: &Chain) -> Vec<Vec<Value>> {
    let requests = requests(chain);
    let added = requests.windows(2).map(|pair| {
        let (before, after) = (&pair[0], &pair[1]);
        assert_eq!(&after[..before.len()], &before[..]);
        let [calls, results] = &after[before.len()..] else { panic!("{:#?}", &after[before.len()..]) };
        assert_eq!((&calls["role"], &results["role"]), (&json!("assistant"), &json!("user")));
        let made: Vec<_> = calls["content"].as_array().unwrap().iter().map(|block| &block["id"]).collect();
        let blocks = results["content"].as_array().unwrap();
        let mut answered: Vec<_> = blocks.iter().map(|block| &block["tool_use_id"]).collect();
        answered.sort_by_key(|id| made.iter().position(|made| made == id));
        assert_eq!(answered, made, "{blocks:#?}");
        blocks.clone()
    });
    added.collect()
}

fn result(block: &Value) -> (&str, bool) {
    (block["content"].as_str().unwrap_or_else(|| panic!("{block}")), block["is_error"] == true)
}

fn ask() -> ToolCall {
    ToolCall::bash(ASK)
}

fn a_question_adds_its_answer_and_nothing_else(version: &str) {
    let chain = chain(version, vec![vec![ask()], vec![ToolCall::bash("echo on")], vec![ask()]]);
    let root = chain.started(&["spawn", "ins.md"]);
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &root]), format!("SGN_PEND_STARTED ({root})\n"));
    chain.answer("Jan 2nd\n");
    assert_eq!(chain.ok(&["resume", &root]), "over\n");
    let added = only_results_are_added(&chain);
    assert_eq!(result(&added[0][0]), ("Jan 1st", false));
    assert_eq!(result(&added[2][0]), ("Jan 2nd\n", false));
    chain.nothing_runs();
}

fn a_child_adds_its_reply_and_nothing_else(version: &str) {
    let chain = chain(version, vec![vec![ToolCall::bash("agent-cli spawn child.md")]]);
    assert_eq!(chain.ok(&["spawn", "ins.md"]), "over\n");
    let added = only_results_are_added(&chain);
    assert_eq!(added.iter().map(|blocks| result(&blocks[0])).collect::<Vec<_>>(), [("the child's reply", false)]);
}

fn a_wait_adds_its_result_and_nothing_else(version: &str) {
    let chain = chain(version, vec![vec![ToolCall::bash("agent-cli wait --file ready")]]);
    let root = chain.started(&["spawn", "ins.md"]);
    chain.home.write("ready", "");
    assert_eq!(chain.ok(&["resume", &root]), "over\n");
    let added = only_results_are_added(&chain);
    assert!(!result(&added[0][0]).1);
}

fn several_calls_of_a_message_add_their_results_and_nothing_else() {
    let spawn = || ToolCall::bash("agent-cli spawn child.md");
    let run = || ToolCall::bash("echo run");
    for message in [vec![run(), ask()], vec![ask(), run()], vec![ask(), run(), spawn(), run()], vec![spawn(), spawn()]]
    {
        let asks = message.contains(&ask());
        let chain = chain(NEWEST, vec![message.clone()]);
        if asks {
            let root = chain.started(&["spawn", "ins.md"]);
            chain.answer("Jan 1st");
            assert_eq!(chain.ok(&["resume", &root]), "over\n");
        } else {
            assert_eq!(chain.ok(&["spawn", "ins.md"]), "over\n");
        }
        let added = only_results_are_added(&chain);
        let mut results: Vec<_> = added[0].iter().map(result).collect();
        let mut expected: Vec<_> = message
            .iter()
            .map(|call| match call {
                call if *call == ask() => ("Jan 1st", false),
                call if *call == run() => ("run", false),
                _ => ("the child's reply", false),
            })
            .collect();
        results.sort_unstable();
        expected.sort_unstable();
        assert_eq!(results, expected);
    }
}

fn a_result_of_any_size_is_exact(version: &str) {
    let chain = chain(version, vec![vec![ask()]]);
    let root = chain.started(&["spawn", "ins.md"]);
    let long = "0123456789abcde\n".repeat(10_000) + "the end";
    chain.answer_to("When?", &long);
    assert_eq!(chain.ok(&["resume", &root]), "over\n");
    assert_eq!(result(&only_results_are_added(&chain)[0][0]), (long.as_str(), false));
}

fn what_else_there_is_to_say_stands_beside_the_result(version: &str) {
    let chain = chain(version, vec![vec![ToolCall::new("Read", json!({"file_path": "notes"}))], vec![ask()]]);
    chain.home.write("notes", "one\n");
    let root = chain.started(&["spawn", "ins.md"]);
    chain.home.write("notes", "two\n");
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &root]), "over\n");
    let last = requests(&chain).pop().unwrap().pop().unwrap();
    let blocks = last["content"].as_array().unwrap();
    assert_eq!(result(&blocks[0]), ("Jan 1st", false));
    let beside: Vec<_> = blocks[1..].iter().map(|block| block["text"].as_str().unwrap()).collect();
    assert!(beside.iter().any(|text| text.starts_with("SGN_RESUME\n\n") && text.contains("notes")), "{beside:?}");
    let all = chain.api.last_conversation();
    assert!(!all.user_texts().any(|text| text.contains("Continue from")), "{:?}", all.items());
}

/// Background work is reported before the result could be accepted.
fn beside_background_work_the_agent_is_told_to_continue(version: &str) {
    let serves = json!({"command": "sleep 600", "description": "serves", "run_in_background": true});
    let chain = chain(version, vec![vec![ToolCall::new("Bash", serves)], vec![ask()]]);
    let root = chain.started(&["spawn", "ins.md", "--permission-mode", "bypassPermissions"]);
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &root]), "over\n");
    let said = chain.api.last_conversation();
    assert!(said.results().any(|result| result == ("Jan 1st", false)), "{:?}", said.items());
    assert!(said.user_texts().any(|text| text.contains("Continue from where you left off.")), "{:?}", said.items());
}

fn a_shell_that_has_moved_is_returned_by_a_command(version: &str) {
    let go = ToolCall::bash("mkdir sub && cd sub");
    let chain = chain(version, vec![vec![go], vec![ask()], vec![ToolCall::bash("pwd")]]);
    let root = chain.started(&["spawn", "ins.md", "--permission-mode", "bypassPermissions"]);
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &root]), "over\n");
    let said = chain.api.last_conversation();
    assert!(said.last_result().unwrap().ends_with("/sub"), "{:?}", said.items());
    assert!(said.user_texts().any(|text| text.contains("Continue from where you left off.")), "{:?}", said.items());
}

/// With a notice, no command runs that could return the shell.
fn a_request_in_another_directory_leaves_the_shell_where_its_agent_is_told() {
    for (text, by_command) in [("one\n", true), ("two\n", false)] {
        let read = ToolCall::new("Read", json!({"file_path": "notes"}));
        let there = ToolCall::bash("cd sub && agent-cli ask 'When?'");
        let chain = chain(NEWEST, vec![vec![read], vec![there], vec![ToolCall::bash("pwd")]]);
        chain.home.write("notes", "one\n");
        chain.home.write("sub/file", "");
        let root = chain.started(&["spawn", "ins.md", "--permission-mode", "bypassPermissions"]);
        chain.home.write("notes", text);
        chain.answer("Jan 1st");
        assert_eq!(chain.ok(&["resume", &root]), "over\n");
        let said = chain.api.last_conversation();
        let is_there = said.last_result().unwrap().ends_with("/sub");
        let told = format!("{:?} {}", said.items(), said.context());
        assert_eq!(is_there, by_command, "{told}");
        assert_eq!(told.contains("Continue from where you left off."), by_command, "{told}");
    }
}
