//! Calls that are more than one request, or none: they run unchanged, although hooks are asked.

use std::fs;

use serde_json::json;

use crate::world::World;

fn asking(call: &str) -> (World, String) {
    let world = World::with_hooks();
    world.file("root.md", format!("{call}\nreply {{results}}\n"));
    world.file("sub/other", "");
    let id = world.spawn_paused("root.md");
    (world, id)
}

#[test]
fn a_request_in_a_pipe_pauses_with_a_signal() {
    let (world, id) = asking("run agent-cli ask When? | tee log");
    world.answer("now");
    world.run(&["resume", &id]).prints("now");
    let log = fs::read_to_string(world.project().join("log")).expect("tee wrote it");
    assert!(log.starts_with("SGN_PEND_STARTED ("), "{log}");
    assert!(world.log().starts[1].prompt.starts_with("SGN_RESUME\n"));
}

#[test]
fn a_request_after_a_change_of_the_directory_pauses_with_a_signal() {
    let (world, id) = asking("run cd sub && agent-cli ask When?");
    world.answer("now");
    world.run(&["resume", &id]).prints("now");
    assert_eq!(world.starts(), 2);
}

#[test]
fn children_of_a_loop_reply_in_order() {
    let world = World::with_hooks();
    world.file("root.md", "run for f in b a c; do agent-cli spawn $f.md; done\nreply {results}\n");
    for name in ["a", "b", "c"] {
        world.file(format!("{name}.md"), format!("reply {name}\n"));
    }
    world.run(&["spawn", "root.md"]).prints("b; a; c");
    assert_eq!(world.starts(), 5);
}

#[test]
fn a_request_in_the_background_pauses_with_a_signal() {
    let (world, id) = asking("run agent-cli ask When? & wait");
    world.answer("now");
    world.run(&["resume", &id]).prints("now");
}

#[test]
fn a_request_with_a_wrong_option_tells_what_is_wrong() {
    let world = World::with_hooks();
    world.file("root.md", "run agent-cli spawn child.md --frobnicate\nreply {result}\n");
    world.file("child.md", "reply ok\n");
    let outcome = world.run(&["spawn", "root.md"]);
    outcome.succeeds();
    assert!(outcome.stdout.starts_with("Exit code 2\nerror: unexpected argument '--frobnicate' found"), "{outcome}");
    assert_eq!(world.starts(), 1);
}

#[test]
fn a_request_that_cannot_be_met_tells_why() {
    let world = World::with_hooks();
    world.file("root.md", "spawn none.md\nreply {result}\n");
    let outcome = world.run(&["spawn", "root.md"]);
    outcome.succeeds();
    assert!(outcome.stdout.starts_with("Exit code 2\nerror: cannot read none.md"), "{outcome}");
    assert_eq!(world.run(&["questions", "--json"]).json(), json!([]));
}

#[test]
fn an_agent_that_spawns_itself_is_stopped() {
    let world = World::with_hooks();
    world.file("self.md", "spawn self.md\nreply {result}\n");
    let outcome = world.run(&["spawn", "self.md", "--max-depth", "5"]);
    outcome.succeeds();
    assert!(outcome.stdout.contains("the chain would be more than 5 agents deep"), "{outcome}");
    assert_eq!((world.starts(), world.log().most_alive()), (5 + 4, 1));
}

#[test]
fn an_agent_that_waits_for_itself_or_for_one_above_does_not() {
    let world = World::with_hooks();
    let above = world.project().join("above");
    let note = format!("run echo $AGENT_CLI_FRAME > {}", above.display());
    world.file("root.md", format!("{note}\nspawn child.md\nreply {{result}}\n"));
    let ask =
        "run echo $(agent-cli resume $AGENT_CLI_FRAME; agent-cli resume $(cat above) 2> no || echo refused), both";
    // A quotation: in a sentence of its own the words would be a signal.
    world.file("child.md", format!("{ask}\nreply > {{result}}\n"));
    world.run(&["spawn", "root.md"]).prints("> SGN_PEND_ONGOING refused, both");
    assert_eq!(world.starts(), 3);
}

#[test]
fn an_agent_may_go_on_after_a_signal() {
    let world = World::with_hooks();
    world.file("root.md", "run agent-cli spawn child.md | cat &\nrun echo worked >> marks\nend I am done.\n");
    world.file("child.md", "run cat marks\nreply the child saw: {result}\n");
    world.run(&["spawn", "root.md"]).succeeds();
    let prompt = &world.log().starts[2].prompt;
    assert!(prompt.ends_with("\nthe child saw: worked"), "{prompt}");
    assert_eq!(world.starts(), 3);
}

#[test]
fn an_agent_that_polls_in_a_loop_ends() {
    let world = World::with_hooks();
    let polls = "run agent-cli resume {id} &\n".repeat(20);
    world.file("root.md", format!("run agent-cli spawn child.md | cat &\n{polls}end Enough.\n"));
    world.file("child.md", "reply ok\n");
    world.run(&["spawn", "root.md"]).succeeds();
    assert_eq!(world.starts(), 3, "polls start nothing");
}

#[test]
fn so_does_one_that_polls_in_a_shell() {
    let world = World::with_hooks();
    let poll = "id=$(agent-cli spawn child.md); echo \"$id\"; id=${id#*(}; for n in $(seq 30); do agent-cli resume ${id%)}; done";
    world.file("root.md", format!("run {poll}\nreply {{results}}\n"));
    world.file("child.md", "reply ok\n");
    world.run(&["spawn", "root.md"]).prints("ok");
    assert_eq!(world.starts(), 3);
}

#[test]
fn an_agent_cannot_answer_for_the_person() {
    let world = World::with_hooks();
    world.file("root.md", "run agent-cli answer 4f2c1a90 now\nreply {result}\n");
    let outcome = world.run(&["spawn", "root.md"]);
    outcome.succeeds();
    assert!(outcome.stdout.contains("agents cannot answer questions"), "{outcome}");
}

/// A hook of the user beside ours.
fn user_hook(world: &World, command: &str, timeout: u32) {
    let hook = json!({"type": "command", "command": command, "timeout": timeout});
    world.user_settings(&json!({"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [hook]}]}}));
}

#[test]
fn a_request_that_a_users_hook_denies_is_none() {
    let world = World::with_hooks();
    let denial = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse",
        "permissionDecision": "deny", "permissionDecisionReason": "nobody is here"}});
    user_hook(&world, &format!("echo '{denial}'"), 60);
    world.file("root.md", "ask When?\nreply {result}\n");
    let outcome = world.run(&["spawn", "root.md"]);
    assert!(outcome.succeeds().stdout.contains("nobody is here"), "{outcome}");
    assert_eq!(world.questions(), []);
    assert_eq!(world.starts(), 1);
}

#[test]
fn a_child_that_a_users_hook_denies_is_not_made() {
    let world = World::with_hooks();
    let denial = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse",
        "permissionDecision": "deny", "permissionDecisionReason": "not here"}});
    user_hook(&world, &format!("echo '{denial}'"), 60);
    world.file("root.md", "spawn child.md\nreply {result}\n");
    world.file("child.md", "reply ok\n");
    let outcome = world.run(&["spawn", "root.md"]);
    assert!(outcome.succeeds().stdout.contains("not here"), "{outcome}");
    assert_eq!(world.starts(), 1);
}

#[test]
fn a_users_hook_that_hangs_delays_the_request_until_its_timeout() {
    let world = World::with_hooks();
    user_hook(&world, "exec sleep 600", 1);
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    world.answer("now");
    world.run(&["resume", &id]).prints("now");
    assert_eq!(world.starts(), 2);
}

#[test]
fn a_result_that_a_users_hook_takes_away_is_not_lost() {
    let world = World::with_hooks();
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    world.answer("now");
    let instead = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse",
        "permissionDecision": "ask", "permissionDecisionReason": "who is there?"}});
    user_hook(&world, &format!("echo '{instead}'"), 60);
    let outcome = world.run(&["resume", &id]);
    outcome.succeeds();
    assert!(outcome.stdout.contains("who is there?"), "{outcome}");
}
