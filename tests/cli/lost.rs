//! `claude` dies before it has written its conversation, which it does shortly after it has printed the same.

use serde_json::json;

use crate::world::World;

/// A world in which transcripts are only written at the end of a turn.
fn late(world: World) -> World {
    world.with("STAND_IN_HOLDS_LINES", "1000")
}

#[test]
fn an_agent_without_a_conversation_begins_anew_and_is_told_what_it_had_done() {
    let world = late(World::new());
    world.file("root.md", "once run echo worked >> marks\nonce die 9\nreply ok\n");
    let outcome = world.run(&["spawn", "root.md"]);
    outcome.exits_with(1);
    insta::assert_snapshot!(outcome, @"
    --- stderr
    error: claude was killed by signal 9 before the agent had finished ([ID1:8])
    hint: agent-cli resume [ID1:8] continues; nothing is lost
    --- exit status: 1
    ");
    let id = world.log().starts[0].session().to_owned();
    world.run(&["resume", &id]).prints("ok");
    insta::assert_snapshot!(world.named(&world.log().starts[1].prompt), @r#"
    Read [PROJECT]/root.md and follow its instructions.

    Your last turn was cut short: claude was killed by signal 9. This conversation has nothing of what you did in it. These tool calls were made then and may have taken effect, even if the conversation says that they were rejected, so check before you repeat them:
    - Read: {"file_path":"[PROJECT]/root.md"}
    - Bash: echo worked >> marks
    "#);
    assert_eq!(world.marks(), "worked\n");
    world.run(&["fsck"]).succeeds();
}

#[test]
fn what_it_was_told_it_is_told_again() {
    let world = late(World::new());
    world.file("root.md", "ask When?\nonce run echo worked >> marks\nonce die 9\nreply {results}\n");
    let id = world.spawn_paused("root.md");
    world.answer("Jan 1st");
    world.run(&["resume", &id]).exits_with(1);
    world.run(&["resume", &id]).prints("Jan 1st");
    let log = world.log();
    assert_eq!(log.starts.len(), 3);
    insta::assert_snapshot!(world.named(&log.starts[2].prompt), @r#"
    SGN_RESUME

    Your last turn was cut short: claude was killed by signal 9. This conversation has nothing of what you did in it. This tool call was made then and may have taken effect, even if the conversation says that it was rejected, so check before you repeat it:
    - Bash: echo worked >> marks

    result of `agent-cli ask "When?"` ([ID2:8]):
    Jan 1st
    "#);
    assert_eq!(log.starts[1].value_of("--resume"), log.starts[2].value_of("--resume"), "from where it was before");
    assert_eq!(world.marks(), "worked\n");
}

#[test]
fn what_it_was_told_in_a_call_it_is_told_again() {
    let world = late(World::with_hooks());
    world.file("root.md", "ask When?\nonce die 9\nreply {results}\n");
    let id = world.spawn_paused("root.md");
    world.answer("Jan 1st");
    world.run(&["resume", &id]).exits_with(1);
    world.run(&["resume", &id]).prints("Jan 1st");
    assert_eq!(world.starts(), 3);
}

#[test]
fn what_it_was_told_it_is_told_again_where_all_that_came_before_is_there() {
    let world = World::new();
    world.file("root.md", "ask When?\nonce run echo worked >> marks\nonce die 9\nreply {results}\n");
    let id = world.spawn_paused("root.md");
    world.answer("Jan 1st");
    // The fork has its history: not the prompt, the call and its result.
    world.command(["resume", &id]).with("STAND_IN_HOLDS_LINES", "3").run().exits_with(1);
    world.run(&["resume", &id]).prints("Jan 1st");
    let prompts: Vec<_> = world.log().starts.into_iter().map(|start| start.prompt).collect();
    assert!(prompts.len() == 3 && prompts[2].contains("Jan 1st"), "{prompts:#?}");
}

#[test]
fn a_result_that_comes_in_a_prompt_because_its_call_has_returned_something_else_is_not_lost() {
    let world = World::with_hooks();
    let denial = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse",
        "permissionDecision": "deny", "permissionDecisionReason": "not now"}});
    let deny = world.file("deny", denial.to_string());
    let once = format!("if [ -e {0}.now ]; then rm {0}.now; cat {0}; fi", deny.display());
    world.user_settings(&json!({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": once}]}]}}));
    world.file("root.md", "ask When?\nask Where?\nonce run echo worked >> marks\nonce die 9\nreply {results}\n");
    let id = world.spawn_paused("root.md");
    world.answer("Jan 1st");
    world.file("deny.now", "");
    world.run(&["resume", &id]).started();
    world.answer("Paris");
    // The fork has its history and the second result: not what the prompt says, the call and its result.
    world.command(["resume", &id]).with("STAND_IN_HOLDS_LINES", "3").run().exits_with(1);
    world.run(&["resume", &id]).succeeds();
    let prompts: Vec<_> = world.log().starts.into_iter().map(|start| start.prompt).collect();
    assert!(prompts.len() == 4 && prompts[3].contains("Jan 1st"), "{prompts:#?}");
    assert_eq!(world.marks(), "worked\n");
}

#[test]
fn plan_mode_outlives_the_conversation_in_which_it_was_entered() {
    let world = late(World::with_hooks()).with("STAND_IN_DIES_AT_ITS_END", "1");
    world.file("root.md", "once mode plan\nask May I?\nreply {mode}: {result}\n");
    let id = world.command(["spawn", "root.md", "--permission-mode", "acceptEdits"]).run().started();
    world.answer("not yet");
    let world = world.without("STAND_IN_DIES_AT_ITS_END");
    world.run(&["resume", &id]).prints("plan: not yet");
}

#[test]
fn one_that_is_killed_when_it_has_printed_its_end_has_perhaps_not_written_it() {
    let world = World::new().with("STAND_IN_DIES_AT_ITS_END", "1");
    world.file("root.md", "ask When?\nask Where?\nreply {results}\n");
    let id = world.command(["spawn", "root.md"]).run().started();
    world.answer("Jan 1st");
    // The fork has its history: not the prompt, the call, its result and the signal.
    world.command(["resume", &id]).with("STAND_IN_HOLDS_LINES", "4").run().started();
    world.answer("Paris");
    let world = world.without("STAND_IN_DIES_AT_ITS_END");
    world.run(&["resume", &id]).succeeds();
    let prompts: Vec<_> = world.log().starts.into_iter().map(|start| start.prompt).collect();
    assert!(prompts[2].contains("Jan 1st") && prompts[2].contains("Paris"), "{prompts:#?}");
}

#[test]
fn what_may_have_taken_effect_is_said_until_an_attempt_counts() {
    let world = World::new().with("STAND_IN_HOLDS_LINES", "1");
    world.file(
        "root.md",
        "once run echo worked >> marks\nonce die 9\nonce refuse not logged in\nask When?\nreply {results}\n",
    );
    world.run(&["spawn", "root.md"]).exits_with(1);
    let id = world.log().starts[0].session().to_owned();
    world.run(&["resume", &id]).exits_with(4);
    world.run(&["resume", &id]).started();
    world.answer("Jan 1st");
    world.run(&["resume", &id]).prints("Jan 1st");
    let prompts: Vec<_> = world.log().starts.into_iter().map(|start| start.prompt).collect();
    let told = |prompt: &String| prompt.contains("Your last turn was cut short") && prompt.contains("echo worked");
    let all: Vec<_> = prompts.iter().map(told).collect();
    assert_eq!(all, [false, true, true, false], "{prompts:#?}");
}

#[test]
fn its_requests_stand() {
    let by_program = (World::new(), "spawn child.md &\nonce die 9\nreply {results}\n");
    let by_hook = (World::with_hooks(), "once spawn child.md ++ run kill -9 $PPID\nreply {results}\n");
    for (world, root) in [by_program, by_hook] {
        let world = late(world);
        world.file("root.md", root);
        world.file("child.md", "ask When?\nreply child: {result}\n");
        let id = world.spawn_paused("root.md");
        world.answer("Jan 1st");
        world.run(&["resume", &id]).prints("child: Jan 1st");
        let children = world.run(&["show", &id, "--json"]).json()["children"].clone();
        assert_eq!(children.as_array().map(Vec::len), Some(1), "it is not asked for again: {children}");
    }
}

/// Starts the chain of `root.md` while Claude's folder is full. Returns its id.
fn lost(world: &World) -> String {
    let outcome = world.command(["spawn", "root.md"]).with("STAND_IN_HAS_NO_ROOM", "1").run();
    outcome.exits_with(1);
    let id = outcome.stdout.trim().strip_prefix("SGN_PEND_STARTED (").and_then(|id| id.strip_suffix(')'));
    id.unwrap_or_else(|| panic!("{outcome}")).to_owned()
}

#[test]
fn a_conversation_that_found_no_room_is_reported_wherever_a_person_looks() {
    let world = World::with_hooks();
    world.file("root.md", "once run echo worked >> marks\nask When?\nreply {results}\n");
    let outcome = world.command(["spawn", "root.md"]).with("STAND_IN_HAS_NO_ROOM", "1").run();
    insta::assert_snapshot!(outcome.exits_with(1), @"
    SGN_PEND_STARTED ([ID1])
    --- stderr
    warning: [ID1:8]: claude could not record what the agent did: there is no room in [HOME]/.claude: free some space
    [ID1:8] waits for an answer to [ID2:8]: When?
    hint: agent-cli answer [ID2:8] ANSWER, then agent-cli resume [ID1:8]
    error: claude could not record what the agent did: there is no room in [HOME]/.claude ([ID1:8])
    hint: free some space on the disk of [HOME]/.claude; the next resume has it done again, with a notice
    --- exit status: 1
    ");
    insta::assert_snapshot!(world.run(&["ls"]).succeeds(), @"
    CHAIN     STATE  AGE  COST   TASK
    [ID1:8]  asks   [AGE]  $0.03  root.md  claude could not record a turn: no room; [ID2:8]: When?, asked [AGE] ago
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.run(&["tree"]).succeeds(), @"
    [ID1:8] asks ([AGE])  root.md  waits for an answer to [ID2:8]: When?  claude could not record its last turn: no room
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.run(&["fsck"]).succeeds(), @"
    note: [ID1:8] lost its last turn: claude could not record it, and its agent does it again when the chain continues
    --- stderr
    hint: free some space on the disk of Claude Code's folder before the chain continues
    --- exit status: 0
    ");
    let doctor = world.run(&["doctor"]);
    assert!(doctor.to_string().contains("claude could not record the last turn of 1 agent"), "{doctor}");
    assert!(doctor.to_string().contains("claude-space"), "{doctor}");
    // Once it was repeated, it is no longer reported.
    world.answer("Jan 1st");
    world.run(&["resume", "last"]).prints("Jan 1st");
    assert!(!world.run(&["doctor"]).to_string().contains("lost-turns"));
    assert!(!world.run(&["ls", "-a"]).to_string().contains("record"));
}

#[test]
fn an_agent_whose_conversation_is_lost_does_not_begin_anew_in_the_same_run() {
    let world = World::with_hooks();
    world.file("root.md", "spawn child.md\nreply root: {result}\n");
    world.file("child.md", "reply ok\n");
    let world = world.with("STAND_IN_HAS_NO_ROOM", "1");
    world.run(&["spawn", "root.md"]).exits_with(1);
    assert_eq!(world.starts(), 2, "the child has replied, and its parent would be lost again");
}

#[test]
fn a_child_that_found_no_room_is_tried_again_and_its_parent_hears_of_nothing() {
    let world = World::with_hooks();
    world.file("root.md", "spawn child.md\nreply root: {result}\n");
    world.file("child.md", "refuse ENOSPC: no space left on device, write\n");
    let outcome = world.run(&["spawn", "root.md"]);
    insta::assert_snapshot!(outcome.exits_with(4), @"
    --- stderr
    error: ENOSPC: no space left on device, write ([ID1:8])
    hint: free some space; then agent-cli resume [ID2:8]
    --- exit status: 4
    ");
    world.file("child.md", "reply ok\n");
    world.run(&["resume", "last"]).prints("root: ok");
}

#[test]
fn an_agent_whose_conversation_found_no_room_is_told_all_of_it() {
    for world in [World::new(), World::with_hooks()] {
        world.file("root.md", "once run echo worked >> marks\nask When?\nreply {results}\n");
        let id = lost(&world);
        world.answer("Jan 1st");
        world.run(&["resume", &id]).prints("Jan 1st");
        assert_eq!(world.marks(), "worked\n");
        let prompt = &world.log().starts[1].prompt;
        assert!(prompt.contains("claude could not record all of it") && prompt.contains("echo worked"), "{prompt}");
        world.run(&["fsck"]).succeeds();
    }
}

#[test]
fn it_dies_again_and_still_knows_of_all() {
    let world = late(World::new());
    world.file(
        "root.md",
        "once run echo first >> marks\nonce die 9\nonce run echo second >> marks\nonce die 9\nreply ok\n",
    );
    world.run(&["spawn", "root.md"]).exits_with(1);
    let id = world.log().starts[0].session().to_owned();
    world.run(&["resume", &id]).exits_with(1);
    world.run(&["resume", &id]).prints("ok");
    let log = world.log();
    let prompt = &log.starts[2].prompt;
    assert!(prompt.contains("echo first") && prompt.contains("echo second"), "{prompt}");
    assert_eq!(world.marks(), "first\nsecond\n");
}

#[test]
fn a_call_that_the_conversation_has_without_its_result_is_named() {
    // The last line, the result of the call, is not written.
    let world = World::new().with("STAND_IN_HOLDS_LINES", "1");
    world.file("root.md", "once run echo worked >> marks\nonce die 9\nreply ok\n");
    world.run(&["spawn", "root.md"]).exits_with(1);
    let id = world.log().starts[0].session().to_owned();
    world.run(&["resume", &id]).prints("ok");
    let prompt = &world.log().starts[1].prompt;
    assert!(prompt.starts_with("SGN_RESUME") && prompt.contains("echo worked"), "{prompt}");
}

#[test]
fn a_fork_begins_anew_with_the_conversation_that_it_was_made_from() {
    let world = World::new();
    world.file("base.md", "run true\nreply base\n");
    world.file("root.md", "once run echo worked >> marks\nonce die 9\nreply ok\n");
    world.run(&["spawn", "base.md"]).prints("base");
    let base = world.log().starts[0].session().to_owned();
    let world = late(world);
    world.run(&["spawn", "root.md", "--fork-from", &base]).exits_with(1);
    let id = world.log().starts[1].session().to_owned();
    world.run(&["resume", &id]).prints("ok");
    let log = world.log();
    assert_eq!(log.starts[1].value_of("--resume"), log.starts[2].value_of("--resume"));
}

#[test]
fn a_call_whose_result_comes_with_the_next_prompt_is_not_uncertain() {
    let world = World::with_hooks().with("AGENT_CLI_LINGER", "0s");
    world.file("root.md", "ask When? ++ run sleep 0.2; kill -9 $PPID\nreply {results}\n");
    world.run(&["spawn", "root.md"]);
    world.answer("tomorrow");
    let id = world.session(0);
    let resumed = world.run(&["resume", &id]);
    let prompts: Vec<_> = world.log().starts.iter().map(|start| start.prompt.clone()).collect();
    let last = prompts.last().expect("a prompt");
    assert!(last.contains("kill -9"), "{last}: {resumed}");
    assert!(!last.contains("Bash: agent-cli ask"), "{last}: {resumed}");
}
