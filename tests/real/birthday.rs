//! The main job: four agents deep, one question at the leaf.

use serde_json::Value;

use crate::chain::Chain;
use crate::support::{
    Conversation, Item, MessagesApi, RecordedRequest, Turn, on_every_version, on_every_version_of_a_whole_run,
};

on_every_version!(a_chain_pauses_is_polled_and_resumes,);

on_every_version_of_a_whole_run!(with_prompts_each_agent_takes_one_request_to_the_pause_and_one_to_the_end,);

/// An agent that is told how deep it is: the first three start the next one, the fourth asks.
fn told_in_words(conversation: &Conversation) -> Turn {
    let depth = conversation.user_texts().find_map(|text| text.trim().strip_prefix("depth ")?.parse::<u32>().ok());
    match (conversation.results().next(), depth) {
        (Some((text, _)), _) => Turn::text(text),
        (None, Some(4)) => Turn::bash("agent-cli ask 'When?'"),
        (None, Some(depth)) => Turn::bash(&format!("agent-cli spawn --prompt 'depth {}'", depth + 1)),
        (None, None) => Turn::text("I was told nothing."),
    }
}

fn with_prompts_each_agent_takes_one_request_to_the_pause_and_one_to_the_end(version: &str) {
    let chain = Chain::with_model(version, MessagesApi::start(told_in_words));
    let root = chain.started(&["spawn", "--prompt", "depth 1"]);
    assert_eq!(chain.api.count(), 4);
    assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &root]), "Jan 1st\n");
    assert_eq!(chain.api.count(), 8);
}

fn a_chain_pauses_is_polled_and_resumes(version: &str) {
    let chain = Chain::new(version).without_lingering();
    chain.birthday();

    let root = chain.started(&["spawn", "ins1.md"]);
    let to_the_pause = chain.api.count();
    assert_eq!(to_the_pause, 8, "requests to the pause");
    let transcripts = chain.home.transcripts();
    assert_eq!(transcripts.len(), 4);

    for _ in 0..3 {
        assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
    }
    assert_eq!(chain.api.count(), to_the_pause, "a poll made a request");
    assert_eq!(chain.home.transcripts(), transcripts, "a poll left a transcript behind");

    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &root]), "Jan 1st\n");
    let requests = chain.api.requests();
    assert_eq!(requests.len() - to_the_pause, 4, "requests from the answer to the end");
    assert_eq!(chain.ok(&["resume", &root]), "Jan 1st\n");
    assert_eq!(chain.api.count(), requests.len(), "a finished chain made a request");

    for request in &requests {
        assert!(!speaks_of_signals(request), "{:?}", request.conversation().items());
    }
    assert_eq!(chain.attempts_one_after_the_other(&root), 8);
    let (before, after) = requests.split_at(to_the_pause);
    for first_after in after {
        let last_before = before.iter().rfind(|request| is_continued_by(request, first_after)).unwrap();
        shares_its_prefix(last_before, first_after);
    }
}

/// Whether a prompt or an answer of the model contains a signal. The convention that the model has read mentions them.
fn speaks_of_signals(request: &RecordedRequest) -> bool {
    request.conversation().items().iter().any(|item| match item {
        Item::User(text) | Item::Assistant(text) | Item::Result { text, .. } => {
            text.contains("SGN_PEND") || text.contains("SGN_RESUME")
        }
        Item::Call { .. } => false,
    })
}

/// Whether `after` continues the conversation of `before`: they begin with the same task.
fn is_continued_by(before: &RecordedRequest, after: &RecordedRequest) -> bool {
    without_cache_marks(&before.messages()[0]) == without_cache_marks(&after.messages()[0])
}

/// Everything that the last request before a pause sent comes first in the first request after it, with the same bytes.
pub(crate) fn shares_its_prefix(before: &RecordedRequest, after: &RecordedRequest) {
    assert_eq!(before.model(), after.model());
    assert_eq!(before.tools().to_string(), after.tools().to_string());
    assert_eq!(before.system().to_string(), after.system().to_string());
    let (sent, resent) = (before.messages(), after.messages());
    assert!(resent.len() > sent.len());
    for (at, (sent, resent)) in sent.iter().zip(resent).enumerate() {
        assert_eq!(without_cache_marks(sent).to_string(), without_cache_marks(resent).to_string(), "message {at}");
    }
}

/// The positions of the cache marks move with the end of the conversation; the cached part does not change.
fn without_cache_marks(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, _)| *key != "cache_control");
            kept.map(|(key, value)| (key.clone(), without_cache_marks(value))).collect::<serde_json::Map<_, _>>().into()
        }
        // A text that bears a mark is a block, and without one it may be the text alone.
        Value::Array(items) => match items.as_slice() {
            [Value::Object(block)] if block.get("type").is_some_and(|kind| kind == "text") => block["text"].clone(),
            items => items.iter().map(without_cache_marks).collect(),
        },
        other => other.clone(),
    }
}
