//! Calls that linger: what comes soon returns without ending the caller's process.

use std::fs::File;

use serde_json::{Value, json};

use crate::chain::Chain;
use crate::processes::wait_until;
use crate::support::{Conversation, MessagesApi, Turn, on_every_version};

on_every_version!(
    without_a_pause_each_agent_is_started_once,
    a_child_that_pauses_parks_its_callers,
    one_place_is_enough,
    a_call_that_is_not_the_last_of_its_message_does_not_linger,
    a_person_who_is_there_answers_without_a_pause,
);

/// An agent that is told how deep it is: those above `depth` start the next, the last does this.
fn nested(depth: u32, last: &'static str) -> impl Fn(&Conversation) -> Turn + Clone {
    move |conversation| {
        let level = conversation.user_texts().find_map(|text| text.trim().strip_prefix("depth ")?.parse::<u32>().ok());
        match (conversation.results().next(), level) {
            (Some((text, _)), _) => Turn::text(text),
            (None, Some(level)) if level == depth && last.is_empty() => Turn::text("Jan 1st"),
            (None, Some(level)) if level == depth => Turn::bash(last),
            (None, Some(level)) => Turn::bash(&format!("agent-cli spawn --prompt 'depth {}'", level + 1)),
            (None, None) => Turn::text("I was told nothing."),
        }
    }
}

fn agents(chain: &Chain, root: &str) -> Vec<Value> {
    let tree = chain.json(&["tree", root, "--json"]);
    let show = |agent: &Value| chain.json(&["show", agent["id"].as_str().unwrap(), "--json"]);
    tree.as_array().unwrap().iter().map(show).collect()
}

fn sessions(agents: &[Value]) -> Vec<Value> {
    agents.iter().flat_map(|agent| agent["sessions"].as_array().unwrap().clone()).collect()
}

fn without_a_pause_each_agent_is_started_once(version: &str) {
    let chain = Chain::with_model(version, MessagesApi::start(nested(4, "")));
    assert_eq!(chain.ok(&["spawn", "--linger", "10m", "--prompt", "depth 1"]), "Jan 1st\n");
    assert_eq!(chain.api.count(), 7, "requests");
    let root = chain.json(&["ls", "--all", "--json"])[0]["id"].as_str().unwrap().to_owned();
    let agents = agents(&chain, &root);
    let lingered: Vec<_> = sessions(&agents).iter().map(|session| session["lingered"].clone()).collect();
    assert_eq!(lingered, [1, 1, 1, 0], "{agents:#?}");
    assert_eq!(chain.ok(&["fsck"]), "");
    // Nothing but the call and its result was added to the conversation.
    let requests = chain.api.requests();
    for request in &requests {
        let conversation = request.conversation();
        let results: Vec<_> = conversation.results().map(|(text, _)| text.to_owned()).collect();
        assert!(results.is_empty() || results == ["Jan 1st"], "{results:?}");
    }
}

fn a_child_that_pauses_parks_its_callers(version: &str) {
    let chain = Chain::with_model(version, MessagesApi::start(nested(4, "agent-cli ask 'When?'")));
    let root = chain.started(&["spawn", "--prompt", "depth 1"]);
    assert_eq!(chain.api.count(), 4);
    assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &root]), "Jan 1st\n");
    assert_eq!(chain.api.count(), 8);
    assert_eq!(sessions(&agents(&chain, &root)).len(), 8);
    assert_eq!(chain.ok(&["fsck"]), "");
}

fn one_place_is_enough(version: &str) {
    let chain = Chain::with_model(version, MessagesApi::start(nested(3, "")));
    assert_eq!(chain.ok(&["spawn", "--max-parallel", "1", "--prompt", "depth 1"]), "Jan 1st\n");
    let root = chain.json(&["ls", "--all", "--json"])[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(sessions(&agents(&chain, &root)).len(), 5);
}

fn a_call_that_is_not_the_last_of_its_message_does_not_linger(version: &str) {
    let model = |conversation: &Conversation| {
        let level = conversation.user_texts().find_map(|text| text.trim().strip_prefix("depth ")?.parse::<u32>().ok());
        let results: Vec<_> = conversation.results().map(|(text, _)| text.to_owned()).collect();
        match (results.len(), level) {
            (0, Some(1)) => {
                Turn::bash("agent-cli spawn --prompt 'depth 2'").and_bash("agent-cli spawn --prompt 'depth 3'")
            }
            (0, Some(level)) => Turn::text(format!("reply {level}")),
            _ => Turn::text(results.join(" and ")),
        }
    };
    let chain = Chain::with_model(version, MessagesApi::start(model));
    assert_eq!(chain.ok(&["spawn", "--prompt", "depth 1"]), "reply 2 and reply 3\n");
    // The first call parks as soon as the second one is printed, while its hook still runs.
    let root = agents(&chain, &chain.only_root()).swap_remove(0);
    assert_eq!(root["sessions"].as_array().unwrap().len(), 2, "{root:#}");
}

/// What any process holds that shows questions to a person.
fn somebody_is_there(chain: &Chain) -> File {
    let lock = File::create(chain.state().join("attending.lock")).unwrap();
    lock.try_lock_shared().unwrap();
    lock
}

/// Claude Code waits for a hook before AskUserQuestion and for its tool for approvals as long as they take.
fn a_person_who_is_there_answers_without_a_pause(version: &str) {
    let api = MessagesApi::start(|said| match said.result_texts().len() {
        0 => {
            let options = json!([{"label": "yes", "description": "so"}, {"label": "no", "description": "not so"}]);
            let ask = |text: &str| json!({"question": text, "header": "h", "options": options, "multiSelect": false});
            Turn::call("AskUserQuestion", json!({"questions": [ask("When?"), ask("Where?")]}))
        }
        1 => Turn::bash("touch made"),
        2 => Turn::bash("touch not-made"),
        _ => Turn::text(said.result_texts().join(" | ")),
    });
    let chain = Chain::with_model(version, api);
    chain.run(&["ls"]);
    let _attending = somebody_is_there(&chain);
    let spawn = chain.start(&["spawn", "--prompt", "call", "--on-permission", "ask"]);
    let asked = |count: usize| {
        wait_until("it has asked", || {
            chain.json(&["questions", "--json"]).as_array().is_some_and(|questions| questions.len() == count)
        });
        chain.json(&["questions", "--json"])
    };
    for question in asked(2).as_array().unwrap() {
        chain.ok(&["answer", question["id"].as_str().unwrap(), "yes"]);
    }
    chain.ok(&["answer", asked(1)[0]["id"].as_str().unwrap(), "allow"]);
    wait_until("the call was made", || chain.home.project().join("made").exists());
    chain.ok(&["answer", asked(1)[0]["id"].as_str().unwrap(), "deny", "too late"]);
    let said = spawn.ends();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("When?") && said.out.contains("too late"), "{said:?}");
    assert!(!chain.home.project().join("not-made").exists());
    let shown = chain.json(&["show", &chain.only_root(), "--json"]);
    assert_eq!(
        (shown["sessions"].as_array().unwrap().len(), &shown["sessions"][0]["lingered"]),
        (1, &json!(3)),
        "{shown:#}"
    );
    assert_eq!(chain.api.count(), 4);
    assert_eq!(chain.ok(&["fsck"]), "");
}
