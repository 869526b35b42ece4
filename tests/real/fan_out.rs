//! One `spawn` for several agents, and agents that begin with a conversation that was held before.

use std::fs;

use jiff::Timestamp;
use serde_json::Value;

use crate::birthday::shares_its_prefix;
use crate::chain::{Chain, TEMPLATE};
use crate::support::extent::{is_whole, some_of};
use crate::support::{
    Hold, Item, MessagesApi, NEWEST, Turn, claude, follow, on_every_version, on_every_version_of_a_whole_run,
};

on_every_version!(
    an_agent_fans_out_and_one_asks_and_one_fails, forks_share_the_prefix_of_their_baseline, a_prompt_is_text,
);

on_every_version_of_a_whole_run!(
    an_agent_tells_its_child_in_words_and_cannot_fork_itself, a_fork_of_a_suspended_conversation_leaves_its_call_to_it,
    a_foreign_session_is_forked,
);

fn an_agent_fans_out_and_one_asks_and_one_fails(version: &str) {
    let chain = Chain::new(version);
    chain.home.write("ins.md", "spawn mid.md\nreply {result}\n");
    chain.home.write("mid.md", "run agent-cli spawn a.md b.md c.md\nend over\n");
    chain.home.write("a.md", "end A\n");
    chain.home.write("b.md", "ask B?\nreply {result}\n");
    chain.home.write("c.md", "end SGN_UNHANDLED\n");
    let root = chain.started(&["spawn", "ins.md"]);
    let paused = chain.api.count();
    assert_eq!(paused, 10, "two each for those who spawn, ask, reply or fail");
    assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
    assert_eq!(chain.api.count(), paused);
    chain.answer("be");
    assert_eq!(chain.ok(&["resume", &root]), "over\n");
    assert_eq!(chain.api.count(), paused + 3, "the one that asked, and those above it");

    let requests = chain.api.requests();
    let mid = requests.iter().rev().nth(1).unwrap().conversation();
    let (text, is_error) = mid.results().next_back().unwrap();
    assert!(is_error && text.contains("3 agents: 2 done, 1 failed."), "{text}");
    for (at, part) in ["1 of 3: a.md", "2 of 3: b.md", "3 of 3: c.md"].iter().enumerate() {
        let said = [": done\nA\n\n", ": done\nbe\n\n", ": failed\nthe agent ended with SGN_UNHANDLED"][at];
        let (_, after) = text.split_once(part).unwrap();
        assert!(after.split_once(')').unwrap().1.starts_with(said), "{text}");
    }
    for item in mid.items() {
        assert!(!matches!(item, Item::Assistant(text) | Item::User(text) if text.contains("SGN_")), "{item:?}");
    }
}

#[test]
fn siblings_share_three_processes() {
    if !is_whole() {
        return;
    }
    let hold = Hold::new();
    let model = {
        let hold = hold.clone();
        move |conversation: &_| follow(conversation).held(&hold)
    };
    let chain = Chain::with_model(NEWEST, MessagesApi::start(model));
    chain.home.write("CLAUDE.md", TEMPLATE);
    chain.home.write("child.md", "end ok\n");
    let count = 20;
    let files = vec!["child.md"; count];
    let spawn = chain.start(&[&["spawn", "--max-parallel", "3"], files.as_slice()].concat());
    chain.api.wait_until(|requests| requests.len() == 3);
    assert_eq!(spawn.children(), 3);
    hold.release();
    let said = spawn.ends();
    assert_eq!((said.code, said.out.matches(": done\nok").count()), (Some(0), count), "{said:?}");
    let group = chain.only_root();
    assert_eq!(most_at_a_time(&chain, &group), 3);
}

fn an_agent_tells_its_child_in_words_and_cannot_fork_itself(version: &str) {
    let chain = Chain::new(version);
    let steps = "run agent-cli spawn --prompt \"Say 'hi', please\"\n\
        run sh fork.sh\n\
        reply {result}\n";
    chain.home.write("ins.md", steps);
    chain.home.write("a.md", "end A\n");
    chain.home.write("fork.sh", "agent-cli spawn a.md --fork-from $AGENT_CLI_AGENT_ID\n");
    let said = chain.ok(&["spawn", "ins.md", "--permission-mode", "bypassPermissions"]);
    let replies = chain.last_results();
    assert_eq!(replies[1], ("I have no instructions.".to_owned(), false), "the scripted child's reply");
    // Its own conversation is incomplete.
    assert!(said.contains("is running: its conversation can be forked when its turn has ended"), "{said}");
}

/// The most attempts that ran at the same time. An attempt is recorded before its process starts, and its end after.
fn most_at_a_time(chain: &Chain, root: &str) -> usize {
    let mut edges: Vec<(Timestamp, i32)> = Vec::new();
    for frame in chain.json(&["tree", root, "--json"]).as_array().unwrap() {
        for session in chain.json(&["show", frame["id"].as_str().unwrap(), "--json"])["sessions"].as_array().unwrap() {
            let time = |value: &Value| value.as_str().unwrap().parse::<Timestamp>().unwrap();
            edges.extend([(time(&session["began"]), 1), (time(&session["ended"]), -1)]);
        }
    }
    edges.sort();
    let running = edges.iter().scan(0, |running, (_, change)| {
        *running += change;
        Some(*running)
    });
    usize::try_from(running.max().unwrap()).unwrap()
}

/// What the only session of a frame cost, for each token that it read or wrote.
fn price_of_a_token(chain: &Chain, frame: &str) -> f64 {
    let shown = chain.json(&["show", frame, "--json"]);
    assert_eq!(shown["sessions"].as_array().unwrap().len(), 1);
    let tokens: f64 = shown["usage"].as_object().unwrap().values().map(|tokens| tokens.as_f64().unwrap()).sum();
    shown["cost_usd"].as_f64().unwrap() / tokens
}

fn forks_share_the_prefix_of_their_baseline(version: &str) {
    let chain = Chain::new(version);
    chain.home.write("base.md", "run agent-cli ls\nend base\n");
    assert_eq!(chain.ok(&["spawn", "base.md", "--permission-mode", "bypassPermissions"]), "base\n");
    let base = chain.only_root();
    let baseline = chain.api.requests().pop().unwrap();
    let transcript = chain.home.transcript(&base).unwrap();
    let before = fs::read(&transcript).unwrap();

    let files = ["a.md", "b.md", "c.md"];
    files.iter().for_each(|name| drop(chain.home.write(name, "end fork\n")));
    let from = ["--fork-from", &base, "--permission-mode", "bypassPermissions", "--json"];
    let told = chain.json(&[&["spawn"], files.as_slice(), &from].concat());
    let requests = chain.api.requests();
    let firsts: Vec<_> = requests
        .iter()
        .filter(|request| {
            request.conversation().last_user_text().is_some_and(|text| files.iter().any(|name| text.contains(name)))
                && matches!(request.conversation().items().last(), Some(Item::User(_)))
        })
        .collect();
    assert_eq!(firsts.len(), 3);
    for first in firsts {
        shares_its_prefix(&baseline, first);
    }
    assert_eq!(fs::read(&transcript).unwrap(), before, "the source was written to");
    let a_token = price_of_a_token(&chain, &base);
    for member in told["members"].as_array().unwrap() {
        let of_fork = price_of_a_token(&chain, member["id"].as_str().unwrap());
        assert!((of_fork / a_token - 1.0).abs() < 0.05, "a fork counts what its source had cost: {of_fork}, {a_token}");
    }
}

fn a_fork_of_a_suspended_conversation_leaves_its_call_to_it(version: &str) {
    let chain = Chain::new(version);
    chain.home.write("base.md", "ask When? ++ ask Where?\nreply {result}\n");
    chain.home.write("fork.md", "end fork\n");
    let base = chain.started(&["spawn", "base.md"]);
    let baseline = chain.api.requests().pop().unwrap();
    assert_eq!(chain.ok(&["spawn", "fork.md", "--fork-from", &base]), "fork\n");
    assert_eq!(chain.json(&["questions", "--json"]).as_array().unwrap().len(), 2, "nothing is asked anew");
    let requests = chain.api.requests();
    assert_eq!(requests.len(), 4);
    shares_its_prefix(&baseline, &requests[2]);
    let closed = chain.last_results().into_iter().filter(|(text, _)| text.starts_with("This call belongs to")).count();
    assert_eq!(closed, 2);
    chain.answer_to("When?", "now");
    chain.answer_to("Where?", "here");
    assert_eq!(chain.ok(&["resume", &base]), "now\nhere\n");
}

fn a_foreign_session_is_forked(version: &str) {
    let chain = Chain::new(version);
    let session = "0193e7b0-1c2d-4abc-8def-0123456789ff";
    chain.home.write("base.md", "end base\n");
    chain.home.write("fork.md", "end fork\n");
    let mut command = chain.home.command(claude(version));
    // Without a model an older version uses one whose full name is not in the transcript (`[1m]`).
    let model = if version == NEWEST { "claude-opus-5-5" } else { "claude-opus-4-8" };
    command.args(["-p", "--model", model, "--session-id", session]);
    command.arg(format!("Read {} and follow its instructions.", chain.home.project().join("base.md").display()));
    assert!(command.output().unwrap().status.success());
    let before = fs::read(chain.home.transcript(session).unwrap()).unwrap();
    let baseline = chain.api.requests().pop().unwrap();
    let told = chain.json(&["spawn", "fork.md", "--fork-from", session, "--json"]);
    let requests = chain.api.requests();
    shares_its_prefix(&baseline, &requests[2]);
    assert_eq!(fs::read(chain.home.transcript(session).unwrap()).unwrap(), before, "the source was written to");
    let of_fork = price_of_a_token(&chain, told["id"].as_str().unwrap());
    chain.ok(&["spawn", "fork.md", "--model", model]);
    let fresh = chain.json(&["ls", "-ap", "--json"])[0]["id"].as_str().unwrap().to_owned();
    let ratio = of_fork / price_of_a_token(&chain, &fresh);
    assert!((ratio - 1.0).abs() < 0.05, "a fork counts what its source had cost: {ratio}");
}

fn a_prompt_is_text(version: &str) {
    let chain = Chain::with_model(version, MessagesApi::start(|_| Turn::text("ok")));
    chain.home.write("CLAUDE.md", TEMPLATE);
    chain.home.write("secret.md", "the content of the file");
    let prompts =
        ["/help me", "/compact", "@secret.md and @./secret.md", "- a list\n- with @secret.md", "!ls", "#note", "-p"];
    for prompt in some_of(prompts, 3) {
        let before = chain.api.count();
        assert_eq!(chain.ok(&["spawn", "--prompt", prompt]), "ok\n");
        let requests = chain.api.requests();
        assert_eq!(requests.len(), before + 1, "{prompt}");
        let conversation = requests[before].conversation();
        assert_eq!(conversation.last_user_text().map(|text| text.trim_start_matches('\n')), Some(prompt));
        assert!(!requests[before].body.to_string().contains("the content of the file"), "{prompt}");
        assert!(conversation.context().contains("_spawn_"), "the CLAUDE.md is missing: {prompt}");
    }
}
