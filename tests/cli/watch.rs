//! `watch`: stays, and continues chains as soon as they can continue. It looks at everything once a minute, which is longer than
//! these tests wait: what happens in them was noticed.

use std::fs;

use rustix::process::Signal;

use crate::gate::wait_until;
use crate::world::World;

fn is_done(world: &World, id: &str) -> bool {
    world.run(&["show", id, "--json"]).json()["status"] == "done"
}

#[test]
fn an_answer_continues_its_chain_again_and_again() {
    let world = World::new();
    world.file("ins.md", "ask first?\nask second?\nreply {results}\n");
    let id = world.spawn_paused("ins.md");
    let watch = world.command(["watch"]).start();
    world.answer_to("first?", "one");
    wait_until("it asks again", || world.questions().iter().any(|(asked, _)| asked == "second?"));
    world.answer_to("second?", "two");
    wait_until("it is done", || is_done(&world, &id));
    watch.signal(Signal::TERM);
    let ended = watch.ends();
    // Whether the second question is answered before the first turn is concluded is open.
    assert_eq!(ended.succeeds().stdout.lines().last(), Some(format!("{} done: one; two", &id[..8]).as_str()));
    assert_eq!(ended.stderr, "watching for chains that can continue; Ctrl-C ends it\n");
}

#[test]
fn a_file_that_appears_continues_the_chain_that_waits_for_it() {
    let world = World::new();
    world.file("ins.md", "wait --file sub/folder/there\nreply found\n");
    let id = world.spawn_paused("ins.md");
    let watch = world.command(["watch"]).start();
    fs::create_dir_all(world.project().join("sub/folder")).expect("it can be made");
    world.file("sub/folder/there", "");
    wait_until("it is done", || is_done(&world, &id));
    watch.signal(Signal::INT);
    assert!(watch.ends().succeeds().stdout.ends_with(" done: found\n"));
}

#[test]
fn a_chain_that_another_command_starts_is_continued_too() {
    let world = World::new();
    let watch = world.command(["watch", "--json"]).start();
    world.file("ins.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("ins.md");
    world.answer("now");
    wait_until("it is done", || is_done(&world, &id));
    watch.signal(Signal::TERM);
    assert_eq!(watch.ends().json()["reply"], "now");
}

#[test]
fn a_command_that_hangs_delays_no_other_chain() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("poll.sh", "test -e quick && exit 1\ntouch polling\nread line < gate\n");
    world.file("quick", "");
    world.file("polls.md", "wait --command 'sh poll.sh'\nreply met\n");
    world.file("asks.md", "ask When?\nreply {result}\n");
    let [polls, asks] = ["polls.md", "asks.md"].map(|file| world.spawn_paused(file));
    fs::remove_file(world.project().join("quick")).expect("it is there");
    let watch = world.command(["watch", "--max-parallel-total", "1"]).start();
    wait_until("the command runs", || world.project().join("polling").exists());
    world.answer("now");
    wait_until("the other chain is done", || is_done(&world, &asks));
    assert!(!is_done(&world, &polls));
    gate.open_for_one();
    wait_until("the command has ended", || is_done(&world, &polls));
    watch.signal(Signal::TERM);
    watch.ends().succeeds();
}

#[test]
fn it_stops_the_agents_that_it_runs() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("ins.md", "ask When?\nhold gate\nreply done\n");
    let id = world.spawn_paused("ins.md");
    world.answer("now");
    let watch = world.command(["watch"]).start();
    gate.reached_by(1);
    watch.signal(Signal::INT);
    watch.ends().exits_with(130);
    assert!(world.log().starts.iter().all(|start| !start.is_alive()));
    gate.open_for_one();
    world.run(&["resume", &id]).prints("done");
}

#[test]
fn a_state_directory_that_is_removed_or_replaced_ends_it() {
    for replaced in [false, true] {
        let world = World::new();
        world.file("ins.md", "ask When?\nreply {result}\n");
        let id = world.spawn_paused("ins.md");
        let watch = world.command(["watch"]).start();
        world.answer("now");
        wait_until("it watches", || is_done(&world, &id));
        if replaced {
            fs::rename(world.state(), world.home().join("moved")).expect("it can be moved");
            world.run(&["ls"]).succeeds();
        } else {
            fs::remove_dir_all(world.state()).expect("it can be removed");
        }
        let ended = watch.ends();
        ended.exits_with(1);
        let said = "was removed or replaced while it was in use\nhint: put it back, or run the command again with what is there now\n";
        assert!(ended.stderr.ends_with(said), "{ended}");
    }
}

#[test]
fn a_resume_under_way_ends_with_its_state_directory() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("ins.md", "ask When?\nhold gate\nreply done\n");
    world.spawn_paused("ins.md");
    world.answer("now");
    let resume = world.command(["resume", "--all"]).start();
    gate.reached_by(1);
    fs::rename(world.state(), world.home().join("moved")).expect("it can be moved");
    let ended = resume.ends();
    ended.exits_with(1);
    assert!(ended.stderr.contains("was removed or replaced while it was in use"), "{ended}");
    gate.open_for_one();
}

#[test]
fn what_fails_keeps_nothing_else_from_being_continued() {
    let world = World::new();
    world.file("bad.md", "ask bad?\nfail max turns\n");
    world.file("good.md", "ask good?\nreply {result}\n");
    let bad = world.spawn_paused("bad.md");
    let good = world.spawn_paused("good.md");
    let watch = world.command(["watch"]).start();
    world.answer_to("bad?", "x");
    wait_until("it has failed", || world.run(&["show", &bad, "--json"]).json()["status"] == "failed");
    world.answer_to("good?", "y");
    wait_until("it is done", || is_done(&world, &good));
    watch.signal(Signal::TERM);
    let ended = watch.ends();
    ended.succeeds();
    assert_eq!(world.starts(), 4, "what failed is not tried again: {ended}");
    assert!(ended.stderr.contains("max turns"), "{ended}");
}
