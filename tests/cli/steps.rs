//! Progress on standard error, step by step, at each level of verbosity.

use crate::world::World;

/// A chain that waits, and one that fails.
fn world() -> World {
    let world = World::new();
    world.file("asks.md", "ask When?\nreply {result}\n");
    world.file("parent.md", "spawn asks.md\nreply {result}\n");
    world.file("busy.md", "api 529 API Error: 529 Overloaded\n");
    world.file("fails.md", "fail boom\n");
    world
}

#[test]
fn steps_are_reported_in_plain_words() {
    let world = world();
    insta::assert_snapshot!(world.run(&["-v", "spawn", "parent.md"]), @"
    SGN_PEND_STARTED ([ID1])
    --- stderr
    [ID1:8] parent.md: started
    [ID1:8] parent.md: waits for a child
    [ID2:8] asks.md: started
    [ID2:8] asks.md: asks
    [ID2:8] waits for an answer to [ID3:8]: When?
    hint: agent-cli answer [ID3:8] ANSWER, then agent-cli resume [ID1:8]
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.run(&["-v", "spawn", "busy.md"]), @"
    SGN_PEND_STARTED ([ID4])
    --- stderr
    [ID4:8] busy.md: started
    [ID4:8] busy.md: retry at [TIME] (in [AGE]), after: API Error: 529 Overloaded
    [ID4:8] waits for a retry at [TIME] (in [AGE]) (1 failed so far): API Error: 529 Overloaded
    hint: agent-cli resume [ID4:8] --now retries now
    --- exit status: 0
    ");
    insta::assert_snapshot!(world.run(&["-v", "spawn", "fails.md"]), @"
    --- stderr
    [ID5:8] fails.md: started
    [ID5:8] fails.md: failed
    error: boom ([ID5:8])
    hint: agent-cli resume [ID5:8] continues; nothing is lost
    --- exit status: 1
    ");
    world.answer("now");
    insta::assert_snapshot!(world.run(&["-v", "resume", world.log().starts[0].session()]), @"
    now
    --- stderr
    [ID2:8] asks.md: continues
    [ID2:8] asks.md: done
    [ID1:8] parent.md: continues
    [ID1:8] parent.md: done
    --- exit status: 0
    ");
}

#[test]
fn an_error_is_said_once() {
    let world = world();
    let group = world.run(&["-v", "spawn", "fails.md", "asks.md"]);
    assert_eq!(group.stderr.matches("boom").count(), 1, "{group}");
    world.answer("now");
    world.run(&["resume", "--all"]);
    world.file("again.md", "ask When?\nfail bang\n");
    let failing = || {
        let id = world.spawn_paused("again.md");
        world.answer("now");
        id
    };
    let id = failing();
    let all = world.run(&["-v", "resume", "--all"]);
    assert!(all.stdout.contains(&format!("{} failed\n", &id[..8])), "{all}");
    assert!(all.stderr.matches("bang").count() == 1 && !all.stderr.contains("again.md: failed"), "{all}");
    failing();
    let seen = world.command(["resume", "--all"]).on_terminal(80).stdout;
    assert!(seen.matches("bang").count() == 1 && !seen.contains("failed"), "{seen}");
}

#[test]
fn a_person_at_a_terminal_sees_the_steps() {
    let world = world();
    let plain = world.command(["spawn", "fails.md"]).with("NO_COLOR", "1").on_terminal(80);
    insta::assert_snapshot!(plain, @"
    [ID1:8] fails.md: started
    [ID1:8] fails.md: failed
    error: boom ([ID1:8])
    hint: agent-cli resume [ID1:8] continues; nothing is lost
    --- exit status: 1
    ");
    let coloured = world.command(["spawn", "fails.md"]).with("TERM", "xterm").on_terminal(80);
    assert!(coloured.stdout.contains("\u{1b}[1m\u{1b}[31merror\u{1b}[0m: boom"), "{coloured:?}");
}

#[test]
fn colours_are_for_those_who_want_them() {
    let world = world();
    let has_colours = |args: &[&str], variables: &[(&str, &str)]| {
        let command = || variables.iter().fold(world.command(args), |command, (name, value)| command.with(name, value));
        [command().on_terminal(80).stdout, command().run().stderr].map(|text| text.contains('\u{1b}'))
    };
    let xterm = ("TERM", "xterm");
    for command in [&["show", "abcd1234"][..], &["--nonsense"]] {
        let with = |choice| [&["--color", choice][..], command].concat();
        assert_eq!(has_colours(command, &[xterm]), [true, false], "{command:?}");
        assert_eq!(has_colours(command, &[("TERM", "dumb")]), [false; 2], "{command:?}");
        assert_eq!(has_colours(command, &[xterm, ("NO_COLOR", "1")]), [false; 2], "{command:?}");
        assert_eq!(has_colours(command, &[xterm, ("CLICOLOR_FORCE", "1")]), [true; 2], "{command:?}");
        assert_eq!(has_colours(&with("always"), &[("TERM", "dumb")]), [true; 2], "{command:?}");
        assert_eq!(has_colours(&with("never"), &[xterm, ("CLICOLOR_FORCE", "1")]), [false; 2], "{command:?}");
    }
}

#[test]
fn only_errors_are_reported_with_quiet() {
    let world = world();
    let paused = world.run(&["--quiet", "spawn", "parent.md"]);
    assert_eq!((paused.started().len(), &*paused.stderr), (36, ""));
    let shown = world.command(["-q", "resume", &paused.started()]).on_terminal(80);
    assert_eq!(shown.stdout, "SGN_PEND_ONGOING\n");
    let nothing = world.run(&["-q", "tree"]);
    nothing.succeeds();
    insta::assert_snapshot!(world.run(&["-q", "spawn", "fails.md"]).exits_with(1), @"
    --- stderr
    error: boom ([ID4:8])
    hint: agent-cli resume [ID4:8] continues; nothing is lost
    --- exit status: 1
    ");
    world.run(&["-q", "-v", "ls"]).exits_with(2);
}

#[test]
fn a_log_has_times_and_a_terminal_none() {
    let world = world();
    let is_timed = |line: &str| {
        let time = line.split(' ').next().unwrap_or_default();
        time.len() == "2026-01-01T00:00:00Z".len() && time.starts_with("20") && time.ends_with('Z')
    };
    let spawned = world.run(&["-v", "spawn", "fails.md"]);
    assert!(spawned.log.lines().count() > 2 && spawned.log.lines().all(is_timed), "{spawned:?}");
    let id = world.log().starts[0].session().to_owned();
    let resumed = world.run(&["resume", &id]);
    assert!(resumed.log.contains("error: boom") && resumed.log.lines().all(is_timed), "{resumed:?}");
    let shown = world.command(["resume", &id]).on_terminal(80);
    assert!(!shown.stdout.lines().any(is_timed), "{shown:?}");
    let other = world.run(&["show", "abcd1234"]);
    assert!(!other.log.lines().any(is_timed), "an error of a list is for who asked: {other:?}");
}

#[test]
fn a_log_follows_one_agent_or_chain() {
    let world = world();
    let root = world.spawn_paused("parent.md");
    let child = world.run(&["tree", "--json"]).json()[1]["id"].as_str().expect("an id").to_owned();
    world.answer("Jan 1st");
    let followed = |filter: String| {
        let said = world.command(["resume", &root]).with("AGENT_CLI_LOG", &filter).run().succeeds().stderr.clone();
        let has = |id: &str| said.lines().any(|line| line.contains(&id[..8]) && !line.starts_with("hint"));
        (has(&root), has(&child), said)
    };
    let (has_root, has_child, said) = followed(format!("agent={}", &child[..8]));
    assert!(has_child && !has_root && said.contains("the attempt begins attempt="), "{said}");
    let root_again = world.spawn_paused("parent.md");
    world.answer("Jan 1st");
    let said = world.command(["resume", &root_again]).with("AGENT_CLI_LOG", &format!("chain={root_again}")).run();
    assert!(said.stderr.contains("asks.md: continues") && said.stderr.contains("parent.md: continues"), "{said}");
}

#[test]
fn a_filter_that_is_none_is_named() {
    let world = world().with("AGENT_CLI_LOG", "loud");
    insta::assert_snapshot!(world.run(&["spawn", "asks.md"]), @"
    SGN_PEND_STARTED ([ID1])
    --- stderr
    warning: loud is not a log filter: use error, warn, info, debug, trace, agent_cli::MODULE=LEVEL, agent=ID or chain=ID
    [ID1:8] waits for an answer to [ID2:8]: When?
    hint: agent-cli answer [ID2:8] ANSWER, then agent-cli resume [ID1:8]
    --- exit status: 0
    ");
    let world = world.with("AGENT_CLI_LOG", "info");
    let said = world.run(&["spawn", "fails.md"]);
    assert!(said.stderr.contains("fails.md: started"), "{said:?}");
}
