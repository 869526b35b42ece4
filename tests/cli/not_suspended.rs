//! Calls that are more than one request are refused before anything runs. Where no hook can see a request, as in a script, it
//! runs as a program.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::programs;
use crate::world::World;

fn asking(call: &str) -> (World, String) {
    let world = World::with_hooks();
    world.file("root.md", format!("{call}\nreply {{results}}\n"));
    world.file("sub/other", "");
    world.file("later.sh", "agent-cli ask When? && touch deployed\n");
    let id = world.spawn_paused("root.md");
    (world, id)
}

#[test]
fn a_request_inside_a_larger_command_is_refused_before_anything_runs() {
    let world = World::with_hooks();
    world.file("child.md", "reply ok\n");
    world.file("sub/other", "");
    for command in [
        "agent-cli ask 'Deploy?' && touch deployed",
        "touch deployed; agent-cli ask 'Deploy?'",
        "if agent-cli ask 'Deploy?' | grep -q no; then echo; else touch deployed; fi",
        "agent-cli wait --for 1h && touch deployed",
        "agent-cli spawn child.md && touch deployed",
        "X=$(agent-cli ask 'Deploy?'); touch deployed",
        "cd sub && agent-cli ask 'Deploy?' && touch ../deployed",
        "agent-cli ask 'Deploy?' | tee deployed",
        "agent-cli ask 'Deploy?' > deployed",
        "agent-cli ask 'Deploy?' & touch deployed",
        "FOO=1 agent-cli ask 'Deploy?'",
        "timeout 5 agent-cli ask 'Deploy?'",
        "bash -c \"agent-cli ask 'Deploy?' && touch deployed\"",
        "for f in child.md; do agent-cli spawn $f; done; touch deployed",
        "agent-cli wait --command true; touch deployed",
        "cd nowhere && agent-cli ask 'Deploy?'",
        "cd .. && agent-cli ask 'Deploy?'",
    ] {
        world.file("root.md", format!("run {command}\nreply {{result}}\n"));
        let outcome = world.run(&["spawn", "root.md"]);
        outcome.succeeds();
        assert!(outcome.stdout.contains("nothing was run: "), "{command}: {outcome}");
        assert!(!world.project().join("deployed").exists(), "{command}");
    }
    assert_eq!((world.questions(), world.starts()), (Vec::new(), 17));
}

#[test]
fn a_mention_of_a_request_is_none() {
    let world = World::with_hooks();
    world.file(
        "root.md",
        "run echo 'use agent-cli ask' > CLAUDE.md; grep -c 'agent-cli ask' CLAUDE.md\nreply {result}\n",
    );
    world.run(&["spawn", "root.md"]).prints("1");
}

#[test]
fn a_request_with_its_errors_redirected_is_suspended() {
    let (world, id) = asking("run agent-cli ask 'When?' 2>&1");
    world.answer("now");
    world.run(&["resume", &id]).prints("now");
    assert!(!world.log().starts[1].is_prompted(), "it has its result and nothing else");
}

#[test]
fn a_request_after_a_change_of_the_directory_is_made_there() {
    let (world, id) = asking("run cd sub && agent-cli wait --file sign");
    let waiting = &world.run(&["show", &id, "--json"]).json()["waiting_on"][0];
    assert_eq!(waiting["wait"]["file"], json!(world.project().join("sub/sign")));
    world.file("sub/sign", "");
    world.run(&["resume", &id]).succeeds();
    assert_eq!(world.log().starts[1].prompt, "");
}

#[test]
fn a_question_may_come_from_a_here_document() {
    let world = World::with_hooks();
    let call = json!({"command": "agent-cli ask - <<'EOF'\nShall I?\n\n$HOME is `here`\nEOF"});
    world.file("root.md", format!("call Bash {call}\nreply {{results}}\n"));
    let id = world.spawn_paused("root.md");
    assert_eq!(world.run(&["questions", "--json"]).json()[0]["question"], "Shall I?\n\n$HOME is `here`");
    world.answer("yes");
    world.run(&["resume", &id]).prints("yes");
}

#[test]
fn a_request_in_a_script_keeps_it_from_going_on() {
    let (world, id) = asking("run sh later.sh");
    assert!(!world.project().join("deployed").exists());
    world.answer("now");
    world.run(&["resume", &id]).prints("now");
    assert!(world.log().starts[1].prompt.starts_with("SGN_RESUME\n"));
    assert!(!world.project().join("deployed").exists());
}

#[test]
fn a_request_that_no_hook_sees_exits_with_a_status_that_ends_a_list() {
    let world = World::with_hooks();
    symlink(programs::agent_cli(), world.project().join("other")).unwrap();
    let requests = ["ask 'Deploy?'", "spawn child.md", "spawn child.md --json", "wait --for 1h"];
    let lines = |program: &str| requests.map(|request| format!("{program} {request}; echo $? >> statuses"));
    let calls = ["agent\"-\"cli", "./other"].map(lines).concat().into_iter().chain(["sh all.sh".to_owned()]);
    world.file("all.sh", lines("agent-cli").join("\n"));
    world.file("root.md", calls.map(|call| format!("run {call} &\n")).collect::<String>() + "end Enough.\n");
    world.file("child.md", "reply ok\n");
    world.spawn_paused("root.md");
    assert_eq!(fs::read_to_string(world.project().join("statuses")).unwrap(), "75\n".repeat(3 * requests.len()));
}

#[test]
fn children_of_a_script_reply_in_order() {
    let world = World::with_hooks();
    world.file("all.sh", "for f in b a c; do agent-cli spawn $f.md; done\n");
    world.file("root.md", "run sh all.sh\nreply {results}\n");
    for name in ["a", "b", "c"] {
        world.file(format!("{name}.md"), format!("reply {name}\n"));
    }
    world.run(&["spawn", "root.md"]).prints("b; a; c");
    assert_eq!(world.starts(), 5);
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
    let note = format!("run echo $AGENT_CLI_AGENT_ID > {}", above.display());
    world.file("root.md", format!("{note}\nspawn child.md\nreply {{result}}\n"));
    let ask =
        "run echo $(agent-cli resume $AGENT_CLI_AGENT_ID; agent-cli resume $(cat above) 2> no || echo refused), both";
    // A quotation: on a line of its own the words would be a signal.
    world.file("child.md", format!("{ask}\nreply > {{result}}\n"));
    world.run(&["spawn", "root.md"]).prints("> SGN_PEND_ONGOING refused, both");
    assert_eq!(world.starts(), 3);
}

#[test]
fn an_agent_may_go_on_after_a_signal() {
    let world = World::with_hooks();
    world.file("later.sh", "agent-cli spawn child.md\n");
    world.file("root.md", "run sh later.sh &\nrun echo worked >> marks\nend I am done.\n");
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
    world.file("later.sh", "agent-cli spawn child.md\n");
    world.file("root.md", format!("run sh later.sh &\n{polls}end Enough.\n"));
    world.file("child.md", "reply ok\n");
    world.run(&["spawn", "root.md"]).succeeds();
    assert_eq!(world.starts(), 3, "polls start nothing");
}

#[test]
fn so_does_one_that_polls_in_a_shell() {
    let world = World::with_hooks();
    let poll = "id=$(agent-cli spawn child.md); echo \"$id\"; id=${id#*(}; for n in $(seq 30); do agent-cli resume ${id%)}; done";
    world.file("poll.sh", poll);
    world.file("root.md", "run sh poll.sh\nreply {results}\n");
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

/// A hook of the user in addition to ours.
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
fn a_result_comes_though_a_users_hook_wants_to_be_asked_first() {
    let world = World::with_hooks();
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    world.answer("now");
    let instead = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse",
        "permissionDecision": "ask", "permissionDecisionReason": "who is there?"}});
    user_hook(&world, &format!("echo '{instead}'"), 60);
    world.run(&["resume", &id]).prints("now");
}
