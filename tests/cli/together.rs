//! Several processes of `agent-cli` at the same time.

use crate::world::World;

#[test]
fn of_two_resumes_one_runs() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("root.md", "ask When?\nhold gate\nreply done\n");
    let id = world.spawn_paused("root.md");
    world.answer("now");

    let first = world.command(["resume", &id]).start();
    gate.reached_by(1);
    let second = world.run(&["resume", &id]);
    second.prints("SGN_PEND_ONGOING");
    insta::assert_snapshot!(second, @"
    SGN_PEND_ONGOING
    --- stderr
    another process (process [PID]) is running [ID1:8]
    --- exit status: 0
    ");

    gate.open_for_one();
    first.ends().prints("done");
    assert_eq!(world.starts(), 2);
}

#[test]
fn a_frame_that_is_being_spawned_is_not_run_by_a_resume() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("root.md", "hold gate\nreply done\n");
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    let id = world.log().starts[0].session().to_owned();
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    gate.open_for_one();
    spawn.ends().prints("done");
    world.run(&["resume", &id]).prints("done");
    assert_eq!(world.starts(), 1);
}

#[test]
fn a_branch_that_nobody_drives_goes_on_beside_one_that_runs() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("parent.md", "spawn left.md &\nspawn right.md\nreply {results}\n");
    world.file("left.md", "ask Left?\nhold gate\nreply L\n");
    world.file("right.md", "ask Right?\nreply R\n");
    let id = world.spawn_paused("parent.md");
    world.answer_to("Left?", "go");
    let first = world.command(["resume", &id]).start();
    gate.reached_by(1);
    world.answer_to("Right?", "go");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    gate.open_for_one();
    assert_eq!(first.ends().succeeds().stdout, "L; R\n");
    assert_eq!(world.starts(), 6);
}

#[test]
fn many_spawns_at_once_disturb_each_other_in_no_way() {
    let world = World::new();
    world.file("root.md", "spawn child.md\nreply {result}\n");
    world.file("child.md", "reply ok\n");
    let running: Vec<_> = (0..12).map(|_| world.command(["spawn", "root.md"]).start()).collect();
    for spawn in running {
        spawn.ends().prints("ok");
    }
    assert_eq!(world.starts(), 36);
    assert_eq!(world.run(&["ls", "-ap", "--json"]).json().as_array().map(Vec::len), Some(12));
}

#[test]
fn many_resumes_at_once_run_each_agent_once() {
    let world = World::new();
    world.file("root.md", "spawn child.md\nreply {result}\n");
    world.file("child.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    world.answer("now");
    let running: Vec<_> = (0..12).map(|_| world.command(["resume", &id]).start()).collect();
    for resume in running {
        let outcome = resume.ends();
        outcome.succeeds();
        assert!(["now\n", "SGN_PEND_ONGOING\n"].contains(&outcome.stdout.as_str()), "{outcome}");
    }
    world.run(&["resume", &id]).prints("now");
    assert_eq!(world.starts(), 4);
    assert_eq!(world.log().most_alive(), 1);
}

#[test]
fn an_answer_may_come_while_the_chain_is_being_resumed() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("root.md", "ask One? &\nhold gate\nreply {results}\n");
    let spawn = world.command(["spawn", "root.md"]).start();
    gate.reached_by(1);
    world.answer("early");
    gate.open_for_one();
    spawn.ends().prints("early");
}
