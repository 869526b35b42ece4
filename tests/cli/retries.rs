//! An API that is unreachable, overloaded, or throttles requests.

use crate::world::World;

fn world(error: &str) -> World {
    let world = World::new();
    world.file("root.md", format!("once {error}\nreply ok\n"));
    world
}

#[test]
fn an_error_that_passes_by_itself_is_a_wait() {
    let world = world("api 529 API Error: 529 Overloaded");
    let outcome = world.run(&["spawn", "root.md"]);
    let id = outcome.started();
    insta::assert_snapshot!(outcome, @"
    SGN_PEND_STARTED ([ID1])
    --- stderr
    [ID1:8] waits for a retry at [TIME] (in [AGE]) (1 failed so far): API Error: 529 Overloaded
    hint: agent-cli resume [ID1:8] --now retries now
    --- exit status: 0
    ");
    let poll = world.run(&["resume", &id]);
    poll.prints("SGN_PEND_ONGOING");
    insta::assert_snapshot!(poll, @"
    SGN_PEND_ONGOING
    --- stderr
    [ID1:8] waits for a retry at [TIME] (in [AGE]) (1 failed so far): API Error: 529 Overloaded
    hint: agent-cli resume [ID1:8] --now retries now
    --- exit status: 0
    ");
    let tree = world.run(&["tree"]).stdout;
    assert!(tree.contains(" retry at ") && tree.contains("  waits for a retry at "), "{tree}");
    assert_eq!(world.starts(), 1);
    assert!(world.transcripts().is_empty(), "nothing was done that would be worth keeping");
    let waits = &world.run(&["tree", &id, "--json"]).json()[0]["waiting_on"][0];
    assert_eq!((waits["for"].as_str(), waits["tries"].as_u64()), (Some("retry"), Some(1)));

    world.time_passes(30);
    world.run(&["resume", &id]).prints("ok");
    assert_eq!(world.starts(), 2);
}

#[test]
fn so_are_its_relatives_and_no_others() {
    for status in [0, 408, 429, 500, 502, 503, 504, 529] {
        world(&format!("api {status} words")).spawn_paused("root.md");
    }
    for status in [400, 401, 402, 403, 404, 413] {
        world(&format!("api {status} words")).run(&["spawn", "root.md"]).exits_with(4);
    }
    world("refuse API Error: Request rejected (429) · rate limit").spawn_paused("root.md");
}

#[test]
fn a_person_need_not_wait() {
    let world = world("api 0 API Error: Unable to connect to API (ECONNREFUSED)");
    let id = world.spawn_paused("root.md");
    world.run(&["resume", &id, "--now"]).prints("ok");
}

#[test]
fn the_pause_grows_until_a_try_succeeds() {
    let world = World::new();
    world.file("root.md", "unless up api 503 down\nask When?\nonce api 503 down\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    let failed = |tries: u64| {
        let polled = world.run(&["resume", &id, "--json"]).json();
        assert_eq!(polled["waiting_on"][0]["tries"], tries, "{polled}");
    };
    failed(1);
    // Half a minute, then a minute. The time of the commands themselves does not matter: they have nearly that long.
    for (seconds, tries) in [(1, 1), (29, 2), (31, 2), (29, 3), (3600, 4)] {
        world.time_passes(seconds);
        failed(tries);
    }
    assert_eq!(world.starts(), 4);
    world.file("up", "");
    world.time_passes(3600);
    assert_eq!(world.run(&["resume", &id]).started(), id);
    world.answer("now");
    assert_eq!(world.run(&["resume", &id]).started(), id);
    failed(1);
    world.time_passes(30);
    world.run(&["resume", &id]).prints("now");
}

#[test]
fn work_that_was_done_before_the_error_is_not_repeated() {
    let world = World::new();
    world.file("root.md", "run echo worked >> marks\nonce api 500 API Error: 500 Oops\nreply ok\n");
    let id = world.spawn_paused("root.md");
    assert_eq!(world.transcripts().len(), 1);
    world.time_passes(30);
    world.run(&["resume", &id]).prints("ok");
    assert_eq!(world.marks(), "worked\n");
    insta::assert_snapshot!(world.log().starts[1].prompt, @"
    SGN_RESUME

    Your last turn was cut short: API Error: 500 Oops. Carry on where you stopped.
    ");
}

#[test]
fn an_answer_waits_for_the_try_that_succeeds() {
    let world = World::new();
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    world.answer("Jan 1st");
    let outcome = world.command(["resume", &id]).with("STAND_IN_REFUSES", "API Error: 529 {}").run();
    assert_eq!(outcome.started(), id);
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    world.time_passes(30);
    world.run(&["resume", &id]).prints("Jan 1st");
    assert_eq!(world.starts(), 3);
}

#[test]
fn a_child_that_waits_for_its_next_try_has_not_failed() {
    let world = World::new();
    world.file("root.md", "spawn child.md\nreply {result}\n");
    world.file("child.md", "once api 529 Overloaded\nreply ok\n");
    let id = world.spawn_paused("root.md");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    world.run(&["resume", &id, "--now"]).prints("ok");
    assert_eq!(world.starts(), 4);
}

#[test]
fn a_clock_that_is_set_back_does_not_make_it_wait() {
    let world = world("api 529 Overloaded");
    let id = world.spawn_paused("root.md");
    world.time_passes(-1_000_000);
    world.run(&["resume", &id]).prints("ok");
}

#[test]
fn an_agent_cannot_hurry() {
    let world = World::new();
    world.file("root.md", "run agent-cli resume 12345678 --now\nreply {result}\n");
    world.run(&["spawn", "root.md"]).succeeds();
    insta::assert_snapshot!(world.run(&["spawn", "root.md"]), @"
    Exit code 2
    error: agents cannot use --now or change how claude is started
    hint: leave it out
    --- exit status: 0
    ");
}

#[test]
fn a_child_that_is_retried_after_its_caller_was_told_keeps_its_chain_open() {
    let world = World::with_hooks();
    world.file("root.md", "spawn child.md\nreply told: {result}\n");
    world.file("child.md", "once fail boom\nask When?\nreply {result}\n");
    let told = world.run(&["spawn", "root.md"]);
    assert!(told.succeeds().stdout.contains("boom"), "{told}");
    let [root, child] = [0, 1].map(|start| world.session(start));
    world.run(&["resume", &child]).started();
    let listed = world.run(&["ls", "--json"]).json();
    assert_eq!((&listed[0]["id"], &listed[0]["state"]), (&root.as_str().into(), &"asks".into()), "{listed:#}");
    let question = world.question();
    world.run(&["answer", &question, "now"]).prints(&format!("agent-cli resume {root}"));
    world.run(&["resume", "--all"]).succeeds();
    world.run(&["resume", &child]).prints("now");
    world.run(&["resume", &root]).prints(told.stdout.trim_end());
    assert_eq!(world.run(&["ls", "--json"]).json(), serde_json::json!([]));
    world.run(&["fsck"]).succeeds();
}

#[test]
fn a_reply_to_an_instruction_after_a_failure_is_no_finding() {
    let world = World::with_hooks();
    world.file("root.md", "once fail boom\nreply done after all\n");
    world.run(&["spawn", "root.md"]).exits_with(1);
    world.run(&["resume", &world.session(0), "--prompt", "Try."]).prints("done after all");
    world.run(&["fsck"]).succeeds();
}

#[test]
fn the_reply_of_a_finished_agent_is_printed_beside_the_failure_of_one_below_it() {
    let world = World::with_hooks();
    world.file("root.md", "spawn --cwd below child.md\nreply all {result}\n");
    world.file("below/child.md", "reply ok\n");
    world.file("child.md", "reply ok\n");
    world.run(&["spawn", "root.md"]).prints("all ok");
    let [root, child] = [0, 1].map(|start| world.session(start));
    std::fs::remove_dir_all(world.project().join("below")).expect("it is there");
    world.run(&["resume", &child, "--prompt", "Again."]).exits_with(1);
    for _ in 0..2 {
        let resumed = world.run(&["resume", &root, "--now"]);
        resumed.exits_with(1);
        assert_eq!(resumed.stdout, "all ok\n", "{resumed}");
        assert!(resumed.stderr.contains("the working directory does not exist"), "{resumed}");
    }
    let resumed = world.run(&["resume", &root, "--now", "--json"]).json();
    assert_eq!((&resumed["status"], &resumed["reply"]), (&"failed".into(), &"all ok".into()), "{resumed:#}");
    std::fs::create_dir(world.project().join("below")).expect("writable");
    world.run(&["resume", &root, "--now"]).prints("all ok");
}
