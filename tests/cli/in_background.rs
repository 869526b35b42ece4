//! Agents in the background of the one that calls them.

use rustix::process::Signal;

use crate::gate::wait_until;
use crate::log::Start;
use crate::world::World;

const BOTH: &str = "spawn --background a.md b.md\nwait --agent {id}\nreply {result}\n";

/// A caller that works until its gate opens, beside a child that does.
fn with_a_child_beside() -> World {
    beside(World::with_hooks())
}

fn beside(world: World) -> World {
    world.file("root.md", "spawn --background child.md\nhold callers\nreply {results}\n");
    world.file("child.md", "hold childs\nreply 42\n");
    world
}

#[test]
fn a_group_is_joined_with_or_without_hooks() {
    for world in [World::with_hooks(), World::new()] {
        world.file("root.md", BOTH);
        world.file("a.md", "reply A\n");
        world.file("b.md", "ask When?\nreply {result}\n");
        let root = world.spawn_paused("root.md");
        world.answer("Jan 1st");
        let outcome = world.run(&["resume", &root]);
        outcome.succeeds();
        let (head, replies) = outcome.stdout.split_once("\n\n").unwrap_or_else(|| panic!("{outcome}"));
        assert!(head.ends_with(" is done:"), "{outcome}");
        assert!(replies.starts_with("2 agents: all done.") && replies.ends_with("done\nJan 1st\n"), "{outcome}");
        assert_eq!(world.log().starts.len(), 5);
        world.run(&["fsck"]).succeeds();
    }
}

#[test]
fn both_work_at_the_same_time_and_the_end_of_the_turn_joins() {
    let world = with_a_child_beside();
    let (callers, childs) = (world.gate("callers"), world.gate("childs"));
    let spawn = world.command(["spawn", "root.md"]).start();
    callers.reached_by(1);
    childs.reached_by(1);
    callers.open_for_one();
    childs.open_for_one();
    spawn.ends().prints("42");
    assert_eq!((world.starts(), world.log().most_alive()), (3, 2));
}

#[test]
fn who_stops_the_caller_stops_what_is_in_its_background() {
    let world = with_a_child_beside();
    let (callers, childs) = (world.gate("callers"), world.gate("childs"));
    let spawn = world.command(["spawn", "root.md"]).start();
    callers.reached_by(1);
    childs.reached_by(1);
    world.run(&["stop", &world.session(0), "--now"]).succeeds();
    spawn.ends();
    let tree = world.run(&["tree", &world.session(0), "--json"]).json();
    let states: Vec<_> = tree.as_array().unwrap().iter().map(|agent| agent["status"].clone()).collect();
    assert_eq!(states, ["failed", "failed"]);
}

#[test]
fn both_are_interrupted_and_continue() {
    // Without hooks, an interrupt does not wait for the running tools.
    let world = beside(World::new());
    let (callers, childs) = (world.gate("callers"), world.gate("childs"));
    let spawn = world.command(["spawn", "root.md"]).start();
    callers.reached_by(1);
    childs.reached_by(1);
    spawn.signal(Signal::INT);
    spawn.ends().exits_with(130);
    let root = world.session(0);
    let states = |expected: [&str; 2]| {
        let tree = world.run(&["tree", &root, "--json"]).json();
        let states: Vec<_> = tree.as_array().unwrap().iter().map(|agent| agent["status"].clone()).collect();
        assert_eq!(states, expected);
    };
    states(["cancelled", "cancelled"]);
    let resume = world.command(["resume", &root]).start();
    callers.reached_by(2);
    childs.reached_by(2);
    (0..2).for_each(|_| callers.open_for_one());
    (0..2).for_each(|_| childs.open_for_one());
    resume.ends().prints("42");
    states(["done", "done"]);
}

#[test]
fn a_group_is_interrupted_and_continues_with_its_caller() {
    let world = World::new();
    world.file("root.md", "spawn --background child.md child.md\nhold callers\nreply {result}\n");
    world.file("child.md", "hold childs\nreply 42\n");
    let (callers, childs) = (world.gate("callers"), world.gate("childs"));
    let spawn = world.command(["spawn", "root.md"]).start();
    callers.reached_by(1);
    childs.reached_by(2);
    spawn.signal(Signal::INT);
    spawn.ends().exits_with(130);
    let resume = world.command(["resume", &world.session(0)]).start();
    callers.reached_by(2);
    childs.reached_by(4);
    (0..2).for_each(|_| callers.open_for_one());
    (0..4).for_each(|_| childs.open_for_one());
    let outcome = resume.ends();
    assert!(outcome.stdout.starts_with("2 agents: all done."), "{outcome}");
}

#[test]
fn who_has_joined_all_can_hand_off() {
    let world = World::with_hooks();
    world.file("root.md", "spawn --background a.md\nwait --agent {id}\nspawn --handoff b.md\nreply woken: {result}\n");
    world.file("a.md", "reply A\n");
    world.file("b.md", "reply B\n");
    world.run(&["spawn", "root.md"]).prints("B");
    world.run(&["fsck"]).succeeds();
}

#[test]
fn who_has_joined_all_members_of_a_group_has_joined_it() {
    for joins in ["wait --agent a.md --agent b.md --all", "wait --agent a.md\nwait --agent b.md"] {
        let world = World::with_hooks();
        for (file, reply) in [("a.md", "A"), ("b.md", "B"), ("c.md", "C")] {
            world.file(file, format!("reply {reply}\n"));
        }
        world.file("root.md", format!("spawn --background a.md b.md\n{joins}\nreply R\n"));
        world.run(&["spawn", "root.md"]).prints("R");
        world.file("root.md", format!("spawn --background a.md b.md\n{joins}\nspawn --handoff c.md\nreply R\n"));
        world.run(&["spawn", "root.md"]).prints("C");
        world.run(&["fsck"]).succeeds();
    }
}

#[test]
fn only_the_members_that_were_not_joined_arrive_at_the_end() {
    let world = World::with_hooks();
    for (file, reply) in [("a.md", "A"), ("b.md", "B"), ("c.md", "C")] {
        world.file(file, format!("reply {reply}\n"));
    }
    world.file("root.md", "spawn --background a.md b.md c.md\nwait --agent b.md\nreply {results}\n");
    let outcome = world.run(&["spawn", "root.md"]);
    outcome.succeeds();
    assert!(outcome.stdout.contains("2 agents: all done.") && !outcome.stdout.contains("b.md ("), "{outcome}");
    assert!(outcome.stdout.contains("1 of 2: a.md") && outcome.stdout.contains("2 of 2: c.md"), "{outcome}");
    world.file("root.md", "spawn --background --json a.md b.md c.md\nwait --agent b.md\nreply {results}\n");
    world.run(&["spawn", "root.md"]).succeeds();
    let told = world.log().starts.last().expect("it was woken").prompt.clone();
    let has = |reply: &str| told.contains(&format!(r#""result":"{reply}""#));
    assert!(has("A") && !has("B") && has("C"), "{told}");
}

#[test]
fn what_a_failed_caller_leaves_behind_has_ended() {
    let world = World::with_hooks();
    world.file("root.md", "spawn --background child.md child.md\nfail it broke\n");
    world.file("child.md", "ask When?\nreply 42\n");
    let failed = world.run(&["spawn", "root.md"]);
    failed.exits_with(1);
    let tree = world.run(&["tree", &world.session(0), "--json"]).json();
    assert!(tree.as_array().unwrap().iter().all(|agent| agent["status"] == "failed"), "{tree:#}");
    assert!(world.questions().is_empty());
}

#[test]
fn what_a_failed_caller_has_left_behind_says_what_it_has_done() {
    let world = World::with_hooks();
    world.file("root.md", "spawn --background child.md\nunless fixed fail it broke\nreply then: {result}\n");
    world.file("child.md", "run touch made\nask When?\nreply 42\n");
    world.run(&["spawn", "root.md"]).exits_with(1);
    world.file("fixed", "");
    let said = world.run(&["resume", &world.session(0)]);
    assert!(said.succeeds().stdout.contains("touch made"), "{said}");
}

#[test]
fn a_child_that_has_failed_is_retried_and_joined_once_more() {
    let world = World::with_hooks();
    world.file("root.md", "spawn --background a.md\nspawn --background b.md\nrun agent-cli wait --agent a.md --agent b.md --all\nreply {result}\n");
    world.file("a.md", "unless fixed fail it broke\nreply A\n");
    world.file("b.md", "ask When?\nreply B\n");
    let root = world.run(&["spawn", "root.md"]);
    root.succeeds();
    let id = world.session(0);
    let tree = world.run(&["tree", &id, "--json"]).json();
    let failed = tree.as_array().unwrap().iter().find(|agent| agent["status"] == "failed").unwrap()["id"].clone();
    world.file("fixed", "");
    world.run(&["resume", failed.as_str().unwrap()]).prints("A");
    world.answer("now");
    let outcome = world.run(&["resume", &id]);
    outcome.succeeds();
    assert!(outcome.stdout.contains("is done:\nA") || outcome.stdout.contains("is done:\n\nA"), "{outcome}");
    assert!(!outcome.stdout.contains("has failed"), "{outcome}");
}

#[test]
fn a_pause_of_the_caller_pauses_it_and_a_resume_continues_both() {
    let world = World::with_hooks();
    world.file("root.md", "spawn --background child.md\nask Whose?\nreply {results}\n");
    world.file("child.md", "ask When?\nreply {result}\n");
    let root = world.spawn_paused("root.md");
    world.run(&["pause", &root]).succeeds();
    world.answer_to("Whose?", "Ann's");
    world.answer_to("When?", "Jan 1st");
    world.run(&["resume", &root]).prints("Ann's; Jan 1st");
}

#[test]
fn what_does_not_go_together_is_refused() {
    let world = World::new();
    world.file("a.md", "reply A\n");
    insta::assert_snapshot!(world.run(&["spawn", "--background", "a.md"]), @"
    --- stderr
    error: only an agent has a background: it continues beside those that it calls there
    hint: use --detach: it prints the id of the chain, which runs on its own
    --- exit status: 2
    ");
    insta::assert_snapshot!(world.run(&["spawn", "--background", "--handoff", "a.md"]), @"
    --- stderr
    error: the argument '--background' cannot be used with '--handoff'

    Usage: agent-cli spawn --background <FILE>... [-- <CLAUDE ARGS>...]

    For more information, try '--help'.
    --- exit status: 2
    ");
    assert_eq!(world.starts(), 0);
}

/// The conversation with which it began is kept, whatever becomes of its caller's.
#[test]
fn a_fork_that_was_killed_begins_anew_with_the_conversation_up_to_its_call() {
    for world in [World::with_hooks(), World::new()] {
        world.file("root.md", "run echo known\nspawn --background --fork child.md\nhold callers\nreply {result}\n");
        // It dies before it has a conversation of its own.
        world.file("child.md", "unless fixed die 9\nreply 42\n");
        let callers = world.gate("callers");
        let spawn = world.command(["spawn", "root.md"]).start();
        callers.reached_by(1);
        callers.open_for_one();
        spawn.ends().exits_with(1);
        let of_child = |start: &&Start| start.prompt.contains("child.md");
        let begins = |at: usize| {
            let log = world.log();
            log.starts.iter().filter(of_child).nth(at).and_then(|start| start.value_of("--resume").map(str::to_owned))
        };
        let first = begins(0).unwrap();
        let began_with = std::fs::read_to_string(&first).unwrap();
        assert!(began_with.contains("known") && began_with.contains("you are its fork"), "{began_with}");
        world.file("fixed", "");
        world.run(&["resume", &world.session(0)]).succeeds();
        assert_eq!(begins(1), Some(first));
        world.run(&["fsck"]).succeeds();
    }
}

#[test]
fn a_wait_for_an_agent_below_a_child_does_not_change_its_reply() {
    let world = World::with_hooks().with("AGENT_CLI_LINGER", "0s");
    world.file("root.md", "spawn --background a.md\nhold callers\nwait --agent c.md\nreply {results}\n");
    world.file("a.md", "spawn c.md\nreply IMPORTANT\n");
    world.file("c.md", "reply C\n");
    let callers = world.gate("callers");
    let spawn = world.command(["spawn", "root.md"]).start();
    callers.reached_by(1);
    let is_done = |agent: &serde_json::Value| agent["task"] == "a.md" && agent["status"] == "done";
    wait_until("the child is done", || {
        world.run(&["tree", "--json"]).json().as_array().expect("a list").iter().any(is_done)
    });
    callers.open_for_one();
    let outcome = spawn.ends();
    assert!(outcome.succeeds().stdout.contains("IMPORTANT") && !outcome.stdout.contains("0 agents"), "{outcome}");
}

#[test]
fn what_is_left_of_a_group_has_not_failed_with_a_member_that_was_joined() {
    let world = World::with_hooks();
    world.file("root.md", "spawn --background a.md b.md\nwait --agent a.md\nreply {results}\n");
    world.file("a.md", "fail boom\n");
    world.file("b.md", "ask When?\nreply B\n");
    let root = world.spawn_paused("root.md");
    world.answer("now");
    let outcome = world.run(&["resume", &root]);
    assert!(outcome.succeeds().stdout.contains("1 agent: all done"), "{outcome}");
    let told = world.log().starts.pop().expect("the caller has continued").prompt;
    assert!(told.contains("1 agent: all done") && !told.contains("which failed"), "{told}");
}
