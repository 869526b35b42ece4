//! Plans that agents in plan mode ask a person to approve.

use serde_json::json;

use crate::world::World;

/// A chain whose agent waits for the approval of its plan.
fn waiting() -> (World, String) {
    let world = World::with_hooks();
    let plan = json!({"plan": "# Tidy up\n\n1. rm \u{1b}[2J\u{202e}old\n\nanswer:\n│  allow\n", "planFilePath": "/plans/p.md"});
    world.file("root.md", format!("call ExitPlanMode {plan}\nreply {{result}}\n"));
    let root = world.run(&["spawn", "root.md", "--permission-mode", "plan"]).started();
    (world, root)
}

fn mode(world: &World, start: usize) -> String {
    let arguments = world.log().starts[start].argv.clone();
    let mode = arguments.iter().find_map(|argument| argument.strip_prefix("--permission-mode="));
    mode.unwrap_or_else(|| panic!("{arguments:?}")).to_owned()
}

#[test]
fn a_plan_is_shown_whole_and_nothing_in_it_passes_for_something_else() {
    let (world, root) = waiting();
    let id = world.question();
    insta::assert_snapshot!(world.run(&["questions", &id]), @r"
    [ID2:8] of root.md in the chain [ID1:8], [TIME] ([AGE] ago)
    a plan, with which the agent wants to leave plan mode
      │  # Tidy up
      │
      │  1. rm \u{1b}[2J\u{202e}old
      │
      │  answer:
      │  │  allow
      │
    then it continues in mode default
    or acceptEdits
    or auto
    or dontAsk
    --- stderr
    hint: agent-cli answer [ID2:8] allow (or with --mode acceptEdits, auto, dontAsk; or deny, with a reason)
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.run(&["questions"]), @"
    QUESTION  ASKED  BY       CHAIN
    [ID2:8]  [AGE]    root.md  [ID1:8]  # Tidy up
              agent-cli questions [ID2:8] shows 5 more lines, 35 characters
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.run(&["resume", &root]), @"
    SGN_PEND_ONGOING
    --- stderr
    [ID1:8] waits for approval of its plan [ID2:8]: # Tidy up (agent-cli questions [ID2:8] shows 5 more lines, 35 characters)
    hint: agent-cli questions [ID2:8] shows the whole plan
    hint: agent-cli answer [ID2:8] allow (or with --mode acceptEdits, auto, dontAsk; or deny, with a reason), then agent-cli resume [ID1:8]
    --- exit status: 0
    ");
    assert!(world.run(&["show", &root]).stdout.contains("  │  # Tidy up\n"));
}

#[test]
fn a_plan_is_allowed_in_a_mode_that_is_offered() {
    let (world, root) = waiting();
    let id = world.question();
    for wrong in [&["answer", &id, "allow", "--mode", "bypassPermissions"][..], &["answer", &id, "yes"]] {
        let refused = world.run(wrong);
        refused.exits_with(2);
        assert!(refused.stderr.contains("(default, acceptEdits, auto, dontAsk)"), "{refused}");
    }
    world.run(&["answer", &id, "deny no", "--mode", "default"]).exits_with(2);
    world.run(&["answer", &id, "allow", "--mode", "acceptEdits"]).succeeds();
    world.run(&["answer", &id, "--replace", "allow", "--mode", "manual"]).succeeds();
    world.run(&["answer", &id, "--replace", "allow", "--mode", "acceptEdits"]).succeeds();
    assert!(world.run(&["show", &root]).stdout.contains(": asked for approval of its plan: # Tidy up ("));
    assert!(world.run(&["logs", &root]).stdout.contains("  needs approval of its plan: # Tidy up\n"));
    let reply = world.run(&["resume", &root]).succeeds().stdout.clone();
    assert!(reply.starts_with("User has approved your plan.") && reply.contains("/plans/p.md"), "{reply}");
    assert_eq!((mode(&world, 0), mode(&world, 1)), ("plan".to_owned(), "acceptEdits".to_owned()));
}

#[test]
fn a_plan_that_is_refused_leaves_its_agent_in_plan_mode() {
    let (world, root) = waiting();
    world.answer("deny not yet");
    world.run(&["resume", &root]).prints("not yet");
    assert_eq!(mode(&world, 1), "plan");
}

#[test]
fn a_mode_is_for_plans() {
    let world = World::with_hooks();
    world.file("root.md", "ask Which?\nreply {result}\n");
    world.spawn_paused("root.md");
    insta::assert_snapshot!(world.run(&["answer", &world.question(), "allow", "--mode", "acceptEdits"]), @"
    --- stderr
    error: --mode is for a plan that is allowed
    hint: leave --mode out
    --- exit status: 2
    ");
}

#[test]
fn outside_of_plan_mode_the_call_is_left_alone() {
    let world = World::with_hooks();
    world.file("root.md", "call ExitPlanMode {}\nreply {result}\n");
    world.run(&["spawn", "root.md"]).prints("done");
}
