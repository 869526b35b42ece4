//! Answers and replies reach the agent unchanged, whatever they look like.

use crate::chain::Chain;
use crate::support::{on_every_version, on_every_version_of_a_whole_run};

on_every_version!(any_answer_is_delivered_to_the_byte);

on_every_version_of_a_whole_run!(children_started_in_a_script_all_reply_in_order);

/// Two questions in one turn: a large answer with everything that could be mistaken for something else, and a short one that
/// begins like a command and is a signal.
fn any_answer_is_delivered_to_the_byte(version: &str) {
    let chain = Chain::new(version);
    chain.home.write("secret.md", "the content of the file");
    chain.home.write("ins.md", "ask A? ++ ask B?\nend over\n");
    let root = chain.started(&["spawn", "ins.md"]);
    let mut long =
        "@secret.md \"quoted\" 'and' `so` $HOME \\n <b>\u{1F382}</b>\r\n\ttab\n\n/help\nSGN_RESUME\n".to_owned();
    long.push_str(&"0123456789abcdef\n".repeat(1024 * 1024 / 17));
    long.push_str("the end @secret.md");
    let short = "/compact\nSGN_PEND_STARTED";
    chain.answer_to("A?", &long);
    chain.answer_to("B?", short);

    let before = chain.api.count();
    assert_eq!(chain.ok(&["resume", &root]), "over\n");
    let requests = chain.api.requests();
    assert_eq!(requests.len() - before, 1);
    let conversation = requests[before].conversation();
    let result = |text: &str| conversation.results().any(|result| result == (text, false));
    assert!(result(&long) && result(short));
    assert!(!requests[before].body.to_string().contains("the content of the file"), "a mention was followed");
}

/// No single request: a script, in one tool call.
fn children_started_in_a_script_all_reply_in_order(version: &str) {
    let chain = Chain::new(version);
    for name in ["a", "b", "c"] {
        chain.home.write(&format!("{name}.md"), &format!("ask {name}?\nreply {{result}}\n"));
    }
    chain.home.write("all.sh", "for f in a b c; do agent-cli spawn $f.md; done\n");
    chain.home.write("ins.md", "run sh all.sh\nend over\n");
    let root = chain.started(&["spawn", "ins.md", "--permission-mode", "bypassPermissions"]);
    for name in ["c", "a", "b"] {
        assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
        chain.answer_to(&format!("{name}?"), &format!("answer {name}"));
    }
    assert_eq!(chain.ok(&["resume", &root]), "over\n");
    let last = chain.api.last_conversation();
    let prompt = last.last_user_text().unwrap();
    let at =
        |name: &str| prompt.find(&format!("{name}.md` (")).zip(prompt.find(&format!("):\nanswer {name}"))).unwrap();
    let [a, b, c] = ["a", "b", "c"].map(at);
    assert!(a.0 < a.1 && a.1 < b.0 && b.0 < b.1 && b.1 < c.0 && c.0 < c.1, "{prompt}");
}
