//! Tail calls: the reply of the last agent is the reply of all that handed off to it, and none of them is woken.

use serde_json::Value;

use crate::chain::Chain;
use crate::support::extent::sample_or_all;
use crate::support::{NEWEST, on_every_version_before_a_release};

on_every_version_before_a_release!(
    an_answer_at_the_bottom_costs_one_request, a_failure_returns_like_that_of_any_call,
    a_message_makes_the_caller_continue, without_hooks_the_reply_is_handed_on_as_well,
    a_finished_caller_can_be_given_another_instruction,
);

/// A chain in which each agent hands off to the next, and the last does this.
fn handing_off(version: &str, depth: usize, last: &str) -> Chain {
    let chain = Chain::new(version);
    for level in 1..depth {
        // The steps after the call would be taken if the caller were woken.
        chain
            .home
            .write(&format!("{level}.md"), &format!("spawn --handoff {}.md\nreply woken: {{result}}\n", level + 1));
    }
    chain.home.write(&format!("{depth}.md"), last);
    chain
}

fn agents(chain: &Chain, root: &str) -> Vec<Value> {
    chain.json(&["tree", root, "--json"]).as_array().unwrap().clone()
}

/// How many attempts all agents have made.
fn attempts(chain: &Chain, root: &str) -> usize {
    let count = |agent: &Value| {
        let shown = chain.json(&["show", agent["id"].as_str().unwrap(), "--json"]);
        shown["sessions"].as_array().unwrap().len()
    };
    agents(chain, root).iter().map(count).sum()
}

fn an_answer_at_the_bottom_costs_one_request(version: &str) {
    const DEEP: [usize; 2] = [4, 50];
    let depth = if version == NEWEST { sample_or_all(DEEP[0], DEEP[1]) } else { DEEP[0] };
    let chain = handing_off(version, depth, "ask When?\nreply {result}\n");
    let root = chain.started(&["spawn", "1.md"]);
    let to_the_pause = chain.api.count();
    assert_eq!(to_the_pause, 2 * depth, "each reads its file and makes its call");
    let ids: Vec<_> = agents(&chain, &root).iter().map(|agent| agent["id"].clone()).collect();
    let successors: Vec<_> = agents(&chain, &root).iter().map(|agent| agent["handed_off_to"].clone()).collect();
    assert_eq!(successors, [&ids[1..], &[Value::Null]].concat());
    assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
    assert_eq!(chain.api.count(), to_the_pause);

    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &root]), "Jan 1st\n");
    assert_eq!(chain.api.count() - to_the_pause, 1, "only the last replies");
    assert_eq!(attempts(&chain, &root), depth + 1);
    for agent in agents(&chain, &root) {
        assert_eq!(agent["status"], "done");
        let shown = chain.json(&["show", agent["id"].as_str().unwrap(), "--json"]);
        assert_eq!(shown["reply"], "Jan 1st");
    }
    let drawn = chain.ok(&["tree", &root]);
    let second = &ids[1].as_str().unwrap()[..8];
    assert!(drawn.lines().next().unwrap().ends_with(&format!("handed off to {second}")), "{drawn}");
    let shown = chain.ok(&["show", &root]);
    assert!(shown.contains("handed off to") && shown.contains("ended its turn: handoff, done"), "{shown}");
    assert_eq!(chain.ok(&["fsck"]), "");
}

fn a_failure_returns_like_that_of_any_call(version: &str) {
    let chain = handing_off(version, 3, "ask When?\nreply {result}\n");
    let root = chain.started(&["spawn", "1.md"]);
    let last = agents(&chain, &root)[2]["id"].as_str().unwrap().to_owned();
    chain.ok(&["stop", &last]);
    let reply = chain.ok(&["resume", &root]);
    // The second agent gets a message; its reply is the first one's.
    assert!(reply.starts_with("woken: ") && reply.contains("stopped") && !reply.contains("woken: woken"), "{reply}");
    assert_eq!(attempts(&chain, &root), 4);
}

fn a_message_makes_the_caller_continue(version: &str) {
    let chain = handing_off(version, 2, "ask When?\nreply {result}\n");
    let root = chain.started(&["spawn", "1.md"]);
    chain.ok(&["tell", &root, "Say more than that."]);
    assert_eq!(agents(&chain, &root)[0]["handed_off_to"], Value::Null);
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &root]), "woken: Jan 1st\n");
    assert!(chain.api.last_conversation().user_texts().any(|text| text.contains("Say more than that.")));
}

fn without_hooks_the_reply_is_handed_on_as_well(version: &str) {
    let chain = handing_off(version, 3, "ask When?\nreply {result}\n");
    let root = chain.started(&["spawn", "1.md", "--no-hooks"]);
    let to_the_pause = chain.api.count();
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &root]), "Jan 1st\n");
    assert_eq!(chain.api.count() - to_the_pause, 1);
}

fn a_finished_caller_can_be_given_another_instruction(version: &str) {
    let chain = handing_off(version, 2, "reply Jan 1st\n");
    assert_eq!(chain.ok(&["spawn", "1.md"]), "Jan 1st\n");
    let root = chain.json(&["ls", "--all", "--json"])[0]["id"].as_str().unwrap().to_owned();
    // In a fork its call is closed, and in its own conversation it returns. Neither makes it again.
    let fork = chain.ok(&["spawn", "--fork-from", &root, "--prompt", "Say it again."]);
    assert!(fork.contains("the conversation that yours began with"), "{fork}");
    let id = chain.json(&["ls", "--all", "--json"])[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(agents(&chain, &id).len(), 1);
    assert_eq!(chain.ok(&["resume", &root, "--prompt", "Say it again."]), "woken: Jan 1st\n");
    assert_eq!(agents(&chain, &root).len(), 2);
}

/// A person has no reply that another agent's could be.
#[test]
fn a_person_cannot_hand_off() {
    let chain = handing_off(NEWEST, 1, "reply x\n");
    let said = chain.run(&["spawn", "--handoff", "1.md"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("only an agent can hand off"), "{said:?}");
}
