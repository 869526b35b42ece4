//! `resume --all`: every chain that can continue does so, with one command.

use rustix::process::Signal;

use crate::gate::wait_until;
use crate::world::World;

/// Chains that ask something and then reply with the answer.
fn asking(names: &[&str]) -> World {
    let world = World::new();
    for name in names {
        world.file(format!("{name}.md"), format!("ask {name}?\nreply {name}: {{result}}\n"));
        world.spawn_paused(&format!("{name}.md"));
    }
    world
}

#[test]
fn what_can_continue_continues_and_the_rest_waits() {
    let world = asking(&["a", "b", "c"]);
    assert_eq!(world.run(&["resume", "--all"]).succeeds().stdout, "", "nothing can continue");
    world.answer_to("a?", "one");
    world.answer_to("c?", "three");
    let continued = world.run(&["resume", "--all"]);
    continued.succeeds();
    // Both run at the same time.
    let mut ends: Vec<_> = continued.stdout.lines().map(|line| &line["12345678 ".len()..]).collect();
    ends.sort_unstable();
    assert_eq!(ends, ["done: a: one", "done: c: three"]);
    assert_eq!(world.starts(), 5);
    let quiet = world.run(&["resume", "--all"]);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
    assert_eq!(world.starts(), 5, "a second look starts nothing");
}

#[test]
fn nothing_is_made_where_there_is_nothing() {
    let world = World::new();
    world.run(&["resume", "--all"]).succeeds();
}

#[test]
fn it_is_quiet_or_json_if_a_script_wants_it() {
    let world = asking(&["a", "b"]);
    world.answer_to("a?", "one");
    assert_eq!(world.run(&["resume", "--all", "-q"]).succeeds().stdout, "");
    world.answer_to("b?", "two");
    let object = world.run(&["resume", "--all", "--json"]).json();
    assert_eq!((&object["status"], &object["reply"]), (&"done".into(), &"b: two".into()));
}

#[test]
fn a_failure_is_reported_once_and_keeps_no_other_chain_from_its_end() {
    let world = asking(&["good"]);
    world.file("bad.md", "ask bad?\nfail max turns\n");
    let bad = world.spawn_paused("bad.md");
    world.answer_to("bad?", "x");
    world.answer_to("good?", "y");
    let both = world.run(&["resume", "--all"]);
    both.exits_with(1);
    assert!(both.stdout.contains(" done: good: y\n"), "{both}");
    assert!(
        both.stderr.contains(&format!("hint: agent-cli resume {} continues; nothing is lost", &bad[..8])),
        "{both}"
    );
    let starts = world.starts();
    assert_eq!(
        world.run(&["resume", "--all"]).succeeds().stderr,
        "",
        "whether it is tried again is for a person to say"
    );
    assert_eq!(world.starts(), starts);
}

#[test]
fn what_waits_outside_continues_when_it_is_there() {
    let world = World::new();
    world.file("ins.md", "wait --file there\nreply found\n");
    world.spawn_paused("ins.md");
    world.run(&["resume", "--all"]).succeeds();
    assert_eq!(world.starts(), 1);
    world.file("there", "");
    assert!(world.run(&["resume", "--all"]).succeeds().stdout.ends_with(" done: found\n"));
}

#[test]
fn an_abandoned_chain_continues() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("ins.md", "hold gate\nreply done\n");
    let first = world.command(["spawn", "ins.md"]).start();
    gate.reached_by(1);
    assert_eq!(world.run(&["resume", "--all"]).succeeds().stdout, "", "it is running");
    crate::crash::kill_runner(first);
    gate.open_for_one();
    gate.open_for_one();
    while !world.run(&["resume", "--all"]).succeeds().stdout.ends_with(" done: done\n") {}
}

#[test]
fn no_more_agents_run_than_may_over_all_chains() {
    let names = ["a", "b", "c", "d", "e"];
    let world = World::new();
    for name in names {
        world.file(format!("{name}.md"), format!("spawn {name}1.md &\nspawn {name}2.md &\nreply {{results}}\n"));
        for child in [1, 2] {
            world.file(format!("{name}{child}.md"), format!("ask {name}{child}?\nreply {name}{child}\n"));
        }
        world.spawn_paused(&format!("{name}.md"));
    }
    for (question, _) in world.questions() {
        world.answer_to(&question, "go");
    }
    let before = world.log().most_alive();
    let all = world.run(&["resume", "--all", "--max-parallel-total", "2"]);
    all.succeeds();
    assert_eq!(all.stdout.lines().filter(|line| line.contains(" done: ")).count(), names.len(), "{all}");
    assert!(before >= 1 && world.log().most_alive() <= before.max(2), "{}", world.log().most_alive());
}

#[test]
fn places_that_another_command_uses_are_not_free() {
    let world = asking(&["a", "b"]);
    let gate = world.gate("gate");
    world.file("busy.md", "hold gate\nreply done\n");
    let busy = world.command(["spawn", "busy.md"]).start();
    gate.reached_by(1);
    world.answer_to("a?", "go");
    let full = world.run(&["resume", "--all", "--max-parallel-total", "1"]);
    insta::assert_snapshot!(full, @"
    [ID1:8] waits for a free slot: the limit of 1 running agents is reached (--max-parallel-total)
    --- exit status: 0
    ");
    gate.open_for_one();
    busy.ends().prints("done");
    assert!(world.run(&["resume", "--all", "--max-parallel-total", "1"]).succeeds().stdout.ends_with("done: a: go\n"));
}

#[test]
fn what_makes_no_sense_with_it_is_refused() {
    let world = World::new();
    for args in [
        &["resume"][..],
        &["resume", "--all", "4f2c"],
        &["resume", "--all", "--model", "x"],
        &["resume", "--all", "--max-agents", "3"],
        &["resume", "--all", "--", "--verbose"],
        &["resume", "4f2c", "--max-parallel-total", "2"],
        &["resume", "--all", "--max-parallel-total", "0"],
    ] {
        world.run(args).exits_with(2);
    }
}

#[test]
fn it_is_not_for_agents() {
    let world = World::new();
    world.file("ins.md", "run agent-cli resume --all || echo refused\nreply {result}\n");
    assert!(world.run(&["spawn", "ins.md"]).succeeds().stdout.contains("refused"));
}

#[test]
fn a_command_that_still_fails_is_no_news() {
    let world = World::new();
    world.file("ins.md", "wait --command 'echo x >> tried; test -e there'\nreply over\n");
    let id = world.spawn_paused("ins.md");
    let tries = || std::fs::read_to_string(world.project().join("tried")).unwrap_or_default().lines().count();
    let before = tries();
    assert_eq!(world.run(&["resume", "--all"]).succeeds().stdout, "");
    assert_eq!(tries(), before + 1);
    world.file("there", "");
    world.run(&["resume", "--all"]).prints(&format!("{} done: over", &id[..8]));
}

/// A chain that waits for a child, and its agents. The child asks something.
fn parent_and_child() -> (World, String, String) {
    let world = World::with_hooks();
    world.file("parent.md", "spawn child.md\nreply got: {results}\n");
    world.file("child.md", "ask When?\nreply {result}\n");
    world.run(&["spawn", "parent.md"]).succeeds();
    let [parent, child] = [0, 1].map(|start| world.session(start));
    (world, parent, child)
}

#[test]
fn a_parent_whose_runner_died_when_its_child_was_done_continues() {
    let world = World::with_hooks();
    world.file("parent.md", "spawn child.md\nreply got: {results}\n");
    world.file("child.md", "reply ok\n");
    let killed = world.command(["spawn", "parent.md"]).with("AGENT_CLI_CRASH", "end_attempt.after:2").run();
    assert_ne!(killed.code(), Some(0));
    let all = world.run(&["resume", "--all"]);
    assert!(all.succeeds().stdout.contains(" done: got: "), "{all}");
}

#[test]
fn a_parent_continues_whose_child_was_stopped() {
    let (world, _, child) = parent_and_child();
    world.run(&["stop", &child, "--reason", "not now"]).succeeds();
    let all = world.run(&["resume", "--all"]);
    assert!(all.succeeds().stdout.contains(" done: got: "), "{all}");
}

#[test]
fn a_parent_continues_whose_child_somebody_continued_by_its_id() {
    for pauses in [false, true] {
        let (world, _, child) = parent_and_child();
        if pauses {
            world.run(&["pause", &child]).succeeds();
        }
        world.answer_to("When?", "now");
        if pauses {
            let starts = world.starts();
            assert_eq!(world.run(&["resume", "--all"]).succeeds().stdout, "", "it is paused");
            assert_eq!(world.starts(), starts);
        }
        world.run(&["resume", &child]).prints("now");
        let all = world.run(&["resume", "--all"]);
        assert!(all.succeeds().stdout.contains(" done: got: "), "{all}");
    }
}

#[test]
fn a_parent_continues_that_met_a_limit_when_its_child_was_done() {
    let world = World::with_hooks();
    world.file("parent.md", "spawn child.md\nonce limit 1\nreply got: {results}\n");
    world.file("child.md", "reply ok\n");
    world.spawn_paused("parent.md");
    let all = world.run(&["resume", "--all"]);
    assert!(all.succeeds().stdout.contains(" done: got: "), "{all}");
}

#[test]
fn a_limit_whose_time_is_past_and_that_is_met_again_backs_off() {
    let world = World::new();
    world.file("root.md", "limit 1\n");
    world.spawn_paused("root.md");
    world.run(&["resume", "--all"]).succeeds();
    assert_eq!(world.starts(), 2);
    for _ in 0..3 {
        world.run(&["resume", "--all"]).succeeds();
    }
    assert_eq!(world.starts(), 2, "it is not tried again before some time has passed");
    world.time_passes(60);
    world.run(&["resume", "--all"]).succeeds();
    assert_eq!(world.starts(), 3);
}

#[test]
fn no_command_of_a_paused_chain_is_run() {
    let world = World::new();
    world.file("ins.md", "wait --command 'echo x >> tried; test -e there'\nreply over\n");
    let id = world.spawn_paused("ins.md");
    world.run(&["pause", &id]).succeeds();
    let tries = || std::fs::read_to_string(world.project().join("tried")).unwrap_or_default().lines().count();
    let before = tries();
    world.file("there", "");
    for _ in 0..2 {
        assert_eq!(world.run(&["resume", "--all"]).succeeds().stdout, "");
    }
    assert_eq!((tries(), world.starts()), (before, 1));
    assert!(world.run(&["resume", &id]).succeeds().stdout.ends_with("over\n"));
}

#[test]
fn a_chain_that_cannot_be_looked_at_keeps_no_other_from_its_end() {
    let world = asking(&["bad", "good"]);
    world.answer_to("bad?", "x");
    world.answer_to("good?", "y");
    let bad = world.session(0);
    let sql = r#"UPDATE frames SET state = '{"state":"waiting","wait":7}' WHERE id = ?1"#;
    assert_eq!(world.database().execute(sql, [&bad]).expect("it can be written"), 1);
    let all = world.run(&["resume", "--all"]);
    all.exits_with(1);
    assert!(all.stdout.ends_with(" done: good: y\n"), "{all}");
    assert!(all.stderr.contains("error: "), "{all}");
}

#[test]
fn what_only_waits_for_a_person_to_continue_it_is_interrupted() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("works.md", "hold gate\nreply works\n");
    world.file("asks.md", "ask When?\nreply {result}\n");
    let spawn = world.command(["spawn", "works.md", "asks.md"]).start();
    gate.reached_by(1);
    wait_until("it asks", || !world.questions().is_empty());
    spawn.signal(Signal::INT);
    spawn.ends();
    // The stopped call may still be waiting, and is made again.
    (0..4).for_each(|_| gate.open_for_one());
    world.answer("now");
    insta::assert_snapshot!(world.run(&["resume", "--all", "--exit-code"]), @"
    [ID3:8] interrupted
    --- stderr
    hint: agent-cli resume [ID3:8] continues it
    --- exit status: 0
    ");
    world.run(&["resume", "last"]).succeeds();
}

#[test]
fn a_result_that_could_not_be_printed_can_be_printed_again() {
    let world = World::new();
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    world.answer("now");
    let line = "agent-cli resume --all > /dev/full";
    let refused = world.program("/bin/sh", ["-c", line]).run();
    let hint = format!("hint: agent-cli resume {} prints the result again", &id[..8]);
    assert!(refused.exits_with(1).stderr.contains(&hint), "{refused}");
    world.run(&["resume", &id]).prints("now");
}

#[test]
fn a_signal_ends_a_run_whose_result_nothing_reads() {
    let world = World::new();
    world.file("root.md", "ask When?\nbigreply 200000\n");
    let id = world.spawn_paused("root.md");
    world.answer("now");
    for command in ["resume --all --json".to_owned(), format!("resume {id}")] {
        // Its own pipe, from which it does not read.
        let line = format!("mkfifo pipe$$ && exec 3<>pipe$$ && exec agent-cli {command} >&3");
        let mut resume = world.program("/bin/sh", ["-c", &line]).start();
        wait_until("it is done", || world.run(&["show", &id, "--json"]).json()["status"] == "done");
        resume.signal(Signal::TERM);
        wait_until("it has ended", || resume.has_ended());
    }
    let printed = world.run(&["resume", &id]);
    assert_eq!(printed.succeeds().stdout.len(), 200_001);
}
