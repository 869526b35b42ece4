//! An agent that makes several requests in one turn.

use crate::world::World;

fn with_children(parent: &str) -> World {
    let world = World::new();
    world.file("parent.md", parent);
    for child in ["a", "b", "c"] {
        world.file(format!("{child}.md"), format!("reply {}", child.to_uppercase()));
    }
    world
}

#[test]
fn results_come_together_and_in_the_order_of_the_requests() {
    let world = with_children("spawn a.md &\nask And you? &\nspawn b.md\nreply {results}\n");
    let id = world.spawn_paused("parent.md");
    assert_eq!(world.starts(), 3, "the question keeps no child from running");
    world.answer("me");
    world.run(&["resume", &id]).prints("A; me; B");
    assert_eq!(world.starts(), 4, "the parent is woken once for all");
}

#[test]
fn a_loop_in_the_shell_fans_out() {
    let world = with_children("run for name in a b c; do agent-cli spawn $name.md; done\nreply {results}\n");
    world.run(&["spawn", "parent.md"]).prints("A; B; C");
    assert_eq!(world.starts(), 5);
}

#[test]
fn the_user_limits_how_many_agents_live_at_the_same_time() {
    let names = ["one", "two", "three", "four", "five", "six"];
    let world = World::new();
    world.file("parent.md", "run for name in *.child; do agent-cli spawn $name; done\nreply {results}\n");
    for name in names {
        world.file(format!("{name}.child"), "run true\nreply ok\n");
    }
    world.run(&["spawn", "parent.md", "--max-parallel", "1"]).prints("ok; ok; ok; ok; ok; ok");
    assert_eq!(world.log().most_alive(), 1);
    world.run(&["spawn", "parent.md", "--max-parallel", "2"]).prints("ok; ok; ok; ok; ok; ok");
    assert!(world.log().most_alive() <= 2);
}

#[test]
fn branches_run_at_the_same_time() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("parent.md", "spawn child.md &\nspawn child.md\nreply {results}\n");
    world.file("child.md", "hold gate\nreply ok\n");
    let spawn = world.command(["spawn", "parent.md"]).start();
    gate.reached_by(2);
    gate.open_for_one();
    gate.open_for_one();
    spawn.ends().prints("ok; ok");
}

#[test]
fn every_question_must_have_its_answer() {
    let world = World::new();
    world.file("two.md", "ask First? &\nask Second?\nreply {results}\n");
    let id = world.spawn_paused("two.md");
    world.answer_to("Second?", "two");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    assert_eq!(world.starts(), 1);
    world.answer_to("First?", "one");
    world.run(&["resume", &id]).prints("one; two");
}

#[test]
fn questions_at_the_ends_of_two_branches_are_asked_at_once() {
    let world = World::new();
    world.file("parent.md", "spawn left.md &\nspawn right.md\nreply {results}\n");
    world.file("left.md", "ask Left?\nreply {result}\n");
    world.file("right.md", "ask Right?\nreply {result}\n");
    let id = world.spawn_paused("parent.md");
    assert_eq!(world.questions().len(), 2);
    world.answer_to("Left?", "L");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    assert_eq!(world.starts(), 4, "the branch that can go on has gone on");
    world.answer_to("Right?", "R");
    world.run(&["resume", &id]).prints("L; R");
}

#[test]
fn an_agent_that_asks_and_then_chats_has_paused_all_the_same() {
    let world = World::new();
    world.file("chat.md", "ask What now? &\nreply I asked, and I tell you so.\nreply {result}\n");
    let id = world.spawn_paused("chat.md");
    world.answer("this");
    world.run(&["resume", &id]).prints("this");
}

#[test]
fn an_agent_can_look_for_a_result_itself() {
    let world = with_children("spawn a.md &\nrun agent-cli resume {id}\nreply {result}\n");
    world.run(&["spawn", "parent.md"]).prints("A");
    let world = with_children("spawn a.md\nrun agent-cli resume {id}\nreply again: {result}\n");
    world.run(&["spawn", "parent.md"]).prints("again: A");
}

#[test]
fn an_agent_can_ask_again_and_again() {
    let world = World::new();
    world.file("talk.md", "ask One?\nask Two {result}?\nask Three {result}?\nreply {results}\n");
    let id = world.spawn_paused("talk.md");
    world.answer("1");
    assert_eq!(world.run(&["resume", &id]).started(), id);
    world.answer("2");
    assert_eq!(world.run(&["resume", &id]).started(), id);
    world.answer("3");
    world.run(&["resume", &id]).prints("1; 2; 3");
    assert_eq!(world.starts(), 4);
}
