//! Agents in the background of the one that calls them.

use serde_json::Value;

use crate::chain::Chain;
use crate::processes::wait_until;
use crate::support::{Conversation, Hold, MessagesApi, Turn, on_every_version_before_a_release};

on_every_version_before_a_release!(
    caller_and_child_work_at_the_same_time_and_are_joined, the_end_of_a_turn_joins,
    the_caller_does_not_wait_for_a_child_that_waits, who_fails_takes_its_children_along, each_result_arrives_once,
    a_limit_of_one_process_holds, nobody_hands_off_beside_children, a_caller_that_was_killed_keeps_its_children,
    a_detached_chain_works_on_with_the_rights_of_a_child,
);

const BYPASS: [&str; 2] = ["--permission-mode", "bypassPermissions"];
const START: &str = "agent-cli spawn --background --prompt 'child 1'";

/// Agents with a task `child N` do what `child` says, the others what `caller` says, by the results that they have.
fn model(
    caller: impl Fn(&[&str]) -> Turn + Send + Sync + 'static,
    child: impl Fn(&[&str]) -> Turn + Send + Sync + 'static,
) -> impl Fn(&Conversation) -> Turn {
    move |said| {
        let results = said.result_texts();
        if said.task().contains("child ") { child(&results) } else { caller(&results) }
    }
}

fn chain(version: &str, model: impl Fn(&Conversation) -> Turn + Send + Sync + 'static) -> Chain {
    Chain::with_model(version, MessagesApi::start(model))
}

/// The agents, the root first.
fn agents(chain: &Chain) -> Vec<Value> {
    let tree = chain.json(&["tree", &chain.only_root(), "--json"]);
    let show = |agent: &Value| chain.json(&["show", agent["id"].as_str().unwrap(), "--json"]);
    tree.as_array().unwrap().iter().map(show).collect()
}

fn join(id: &str) -> Turn {
    Turn::bash(&format!("agent-cli wait --agent {}", id.trim()))
}

fn caller_and_child_work_at_the_same_time_and_are_joined(version: &str) {
    let hold = Hold::new();
    let held = hold.clone();
    let caller = move |results: &[&str]| match *results {
        [] => Turn::bash(START),
        [_] => Turn::bash("echo beside").held(&held),
        [id, _] => join(id),
        [.., last] => Turn::text(last),
    };
    let chain = chain(version, model(caller, |_| Turn::text("Jan 1st")));
    let spawn = chain.start(&[&["spawn", "--prompt", "call"], &BYPASS[..]].concat());
    // The caller's second request is held until its child's has been answered.
    chain.api.wait_until(|requests| requests.iter().any(|request| request.conversation().task().contains("child 1")));
    hold.release();
    let said = spawn.ends();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.ends_with("is done:\n\nJan 1st\n"), "{said:?}");
    assert_eq!(chain.api.count(), 5, "four of the caller");
    let [caller, child] = &agents(&chain)[..] else { panic!() };
    assert_eq!((caller["sessions"].as_array().unwrap().len(), child["status"].clone()), (1, "done".into()));
    let id = chain.api.requests()[1].conversation().result_texts().first().map(|id| id.trim().to_owned());
    assert!(id.is_none_or(|id| child["id"] == id.as_str()));
    let shown = chain.ok(&["show", &chain.only_root()]);
    assert!(shown.contains("\"child 1\" in the background"), "{shown}");
    assert_eq!(chain.ok(&["fsck"]), "");
}

fn the_end_of_a_turn_joins(version: &str) {
    let caller = |said: &Conversation| {
        let told: String = said.user_texts().collect();
        match *said.result_texts() {
            [] => Turn::bash(START),
            _ if told.contains("Jan 1st") => Turn::text("They said Jan 1st."),
            _ => Turn::text("I do not know yet."),
        }
    };
    let child = |results: &[&str]| match *results {
        [] => Turn::bash("agent-cli ask 'When?'"),
        [.., last] => Turn::text(last),
    };
    let chain = chain(
        version,
        move |said| {
            if said.task().contains("child ") { child(&said.result_texts()) } else { caller(said) }
        },
    );
    let root = chain.started(&["spawn", "--prompt", "call"]);
    let to_the_pause = chain.api.count();
    assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
    assert_eq!((to_the_pause, chain.api.count()), (3, 3));
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &root]), "They said Jan 1st.\n");
    assert_eq!(chain.api.count(), 5, "each once more");
    assert_eq!(chain.ok(&["fsck"]), "");
}

fn the_caller_does_not_wait_for_a_child_that_waits(version: &str) {
    let caller = |results: &[&str]| match *results {
        [] => Turn::bash(START),
        [_] => Turn::bash("agent-cli ask 'Whose?'"),
        [id, _] => join(id),
        [_, answer, reply] => Turn::text(format!("{answer}: {reply}")),
        [.., last] => Turn::text(last),
    };
    let child = |results: &[&str]| match *results {
        [] => Turn::bash("agent-cli ask 'When?'"),
        [.., last] => Turn::text(last),
    };
    let chain = chain(version, model(caller, child));
    let root = chain.started(&[&["spawn", "--prompt", "call"], &BYPASS[..]].concat());
    let before = chain.api.count();
    chain.answer_to("Whose?", "Ann's");
    assert_eq!(chain.started(&["resume", &root]), root);
    assert_eq!(chain.api.count(), before + 1, "the caller continued, and waits for its child");
    chain.answer("Jan 1st");
    let reply = chain.ok(&["resume", &root]);
    assert!(reply.starts_with("Ann's: ") && reply.ends_with("is done:\n\nJan 1st\n"), "{reply}");
}

fn who_fails_takes_its_children_along(version: &str) {
    let caller = |results: &[&str]| match *results {
        [] => Turn::bash(START),
        _ => Turn::bash("true"),
    };
    let hold = Hold::new();
    let held = hold.clone();
    let child = move |_: &[&str]| Turn::text("too late").held(&held);
    let chain = chain(version, model(caller, child));
    let said = chain.run(&[&["spawn", "--prompt", "call"], &BYPASS[..], &["--", "--max-turns", "3"]].concat());
    hold.release();
    assert_eq!(said.code, Some(1), "{said:?}");
    let [_, child] = &agents(&chain)[..] else { panic!() };
    assert_eq!(child["status"], "failed");
    assert!(child["error"].as_str().unwrap().contains("background"), "{child:#}");
    chain.nothing_runs();
    assert_eq!(chain.ok(&["fsck"]), "");
}

fn each_result_arrives_once(version: &str) {
    let caller = |results: &[&str]| match *results {
        [] => Turn::bash("agent-cli spawn --background --prompt 'child 1'"),
        [_] => Turn::bash("agent-cli spawn --background --prompt 'child 2'"),
        [one, other] => Turn::bash(&format!("agent-cli wait --agent {} --agent {} --any", one.trim(), other.trim())),
        [.., first] => Turn::text(first),
    };
    let child = |results: &[&str]| match *results {
        [] => Turn::bash("agent-cli ask 'When?'"),
        [.., last] => Turn::text(last),
    };
    let chain = chain(version, move |said: &Conversation| {
        let told: Vec<_> = said.user_texts().collect();
        let model = model(caller, child);
        // The other result came with the end of the turn.
        match told.iter().find(|text| text.contains("result of")) {
            Some(joined) if !said.task().contains("child ") => Turn::text(format!("joined: {joined}")),
            _ => model(said),
        }
    });
    let root = chain.started(&[&["spawn", "--prompt", "call"], &BYPASS[..]].concat());
    let questions = chain.json(&["questions", "--json"]);
    let of = |at: usize| questions[at]["id"].as_str().unwrap().to_owned();
    chain.ok(&["answer", &of(0), "the first"]);
    assert_eq!(chain.started(&["resume", &root]), root);
    chain.ok(&["answer", &of(1), "the second"]);
    let reply = chain.ok(&["resume", &root]);
    assert!(reply.contains("the second") && !reply.contains("the first"), "{reply}");
    assert_eq!(chain.ok(&["fsck"]), "");
}

fn a_limit_of_one_process_holds(version: &str) {
    let caller = |results: &[&str]| match *results {
        [] => Turn::bash(START),
        [_] => Turn::bash("echo beside"),
        [id, _] => join(id),
        [.., last] => Turn::text(last),
    };
    let chain = chain(version, model(caller, |_| Turn::text("Jan 1st")));
    let reply = chain.ok(&[&["spawn", "--prompt", "call", "--max-parallel", "1"], &BYPASS[..]].concat());
    assert!(reply.ends_with("Jan 1st\n"), "{reply}");
    chain.attempts_one_after_the_other(&chain.only_root());
}

fn nobody_hands_off_beside_children(version: &str) {
    let caller = |results: &[&str]| match *results {
        [] => Turn::bash(START),
        [_] => Turn::bash("agent-cli spawn --handoff --prompt 'child 2'"),
        [id, _] => join(id),
        [_, refused, reply] => Turn::text(format!("{refused} {reply}")),
        [.., last] => Turn::text(last),
    };
    let chain = chain(version, model(caller, |_| Turn::text("Jan 1st")));
    let reply = chain.ok(&[&["spawn", "--prompt", "call"], &BYPASS[..]].concat());
    assert!(reply.contains("a handoff would lose its reply") && reply.ends_with("Jan 1st\n"), "{reply}");
}

fn a_caller_that_was_killed_keeps_its_children(version: &str) {
    let hold = Hold::new();
    let held = hold.clone();
    let caller = move |results: &[&str]| match *results {
        [] => Turn::bash(START),
        [_] => Turn::bash("echo beside").held(&held),
        [id, _] => join(id),
        [.., last] => Turn::text(last),
    };
    let chain = chain(version, model(caller, |_| Turn::text("Jan 1st")));
    let runner = chain.start(&[&["spawn", "--prompt", "call"], &BYPASS[..]].concat());
    chain.api.wait_until(|requests| requests.iter().any(|request| request.conversation().task().contains("child 1")));
    runner.killed();
    hold.release();
    let root = chain.only_root();
    let mut reply = chain.run(&["resume", &root]);
    // The agents outlive their runner, and are concluded once they have ended.
    while reply.out == "SGN_PEND_ONGOING\n" {
        reply = chain.run(&["resume", &root]);
    }
    assert!(reply.out.ends_with("Jan 1st\n"), "{reply:?}");
    let children: Vec<_> = agents(&chain).into_iter().skip(1).collect();
    assert_eq!((children.len(), children[0]["sessions"].as_array().unwrap().len()), (1, 1));
    assert_eq!(chain.ok(&["fsck"]), "");
}

/// The caller replies at once. The new chain may edit, as its caller, and no more.
fn a_detached_chain_works_on_with_the_rights_of_a_child(version: &str) {
    let caller = |results: &[&str]| match *results {
        [] => Turn::bash("agent-cli spawn --detach --prompt 'child 1' --permission-mode bypassPermissions"),
        [_] => Turn::bash("agent-cli spawn --detach --prompt 'child 1'"),
        [wider, id] => Turn::text(format!("{}|{}", wider.replace('\n', " "), id.trim())),
        _ => Turn::text("too much"),
    };
    let child = |results: &[&str]| match *results {
        [] => Turn::bash("agent-cli ask 'When?'"),
        [.., last] => Turn::text(last),
    };
    let chain = chain(version, model(caller, child));
    let reply = chain.ok(&["spawn", "--prompt", "call", "--permission-mode", "acceptEdits"]);
    let (wider, id) = reply.trim().split_once('|').unwrap();
    assert!(wider.contains("bypassPermissions"), "{reply}");
    wait_until("the detached chain asks", || chain.json(&["questions", "--json"]).as_array().unwrap().len() == 1);
    chain.answer("Jan 1st");
    wait_until("its process has ended", || chain.run(&["resume", id]).out == "Jan 1st\n");
    let shown = chain.json(&["show", id, "--json"]);
    assert_eq!((&shown["parent"], &shown["launch"]["permission_mode"]), (&Value::Null, &"acceptEdits".into()));
    assert_eq!(shown["detached_by"].as_str().map(str::len), Some(36));
    assert_eq!(chain.ok(&["fsck"]), "");
}
