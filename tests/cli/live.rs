//! The live display of `spawn` and `resume`, as a terminal shows it.

use rustix::process::Signal;

use crate::gate::wait_until;
use crate::world::World;

/// Two agents that run at the same time, each with a tool that waits at a gate.
fn two() -> World {
    let world = World::with_hooks();
    world.file("one.md", "hold gate\nreply from one\n");
    world.file("two.md", "hold gate\nreply from two\n");
    world
}

/// Replaces the values that change with time: the clocks at the end of lines.
fn timeless(text: &str) -> String {
    let clock = |line: &str| line.rfind(' ').filter(|at| line[*at..].contains(':')).map_or(line.len(), |at| at + 1);
    text.lines()
        .map(|line| {
            format!(
                "{}\n",
                line[..clock(line)].to_owned() + &line[clock(line)..].replace(|c: char| c.is_ascii_digit(), "0")
            )
        })
        .collect()
}

#[test]
fn a_terminal_shows_what_each_agent_does_and_keeps_what_is_over() {
    for columns in [80, 40] {
        let world = two();
        let gate = world.gate("gate");
        let spawn = world.command(["spawn", "one.md", "two.md"]).with("TERM", "xterm");
        let (spawn, screen) = spawn.start_on_terminal(columns);
        gate.reached_by(2);
        // An agent may reach its tool before its runner says that it has started.
        let mut shown = String::new();
        wait_until("both tools are shown", || {
            shown = screen.text();
            [": running Bash: echo", ": started"].iter().all(|what| shown.matches(what).count() == 2)
        });
        let shown = world.named(&timeless(&shown));
        match columns {
            80 => insta::assert_snapshot!(shown, @r#"
    [ID1:8] one.md: started
    [ID2:8] two.md: started
    > [ID1:8] one.md: running Bash: echo held >> gate.held;…  1.0k context  0:00
    > [ID2:8] two.md: running Bash: echo held >> gate.held;…  1.0k context  0:00
    one.md two.md                            Ctrl-C: stop after the running tools
    "#),
            _ => insta::assert_snapshot!(shown, @r#"
    [ID1:8] one.md: started
    [ID2:8] two.md: started
    > one.md: running Bash: echo h…  0:00
    > two.md: running Bash: echo h…  0:00
    one.md two.…             Ctrl-C: stop
    "#),
        }
        gate.open_for_one();
        wait_until("one is over", || screen.text().contains(": done"));
        wait_until("its row is gone", || screen.text().matches("\n> ").count() == 1);
        gate.open_for_one();
        spawn.ends().succeeds();
        let left = screen.text();
        assert!(!left.contains("\n> ") && left.contains("2 agents, ") && left.contains("from two"), "{left}");
        let over = |line: &&str| line.ends_with(".md: done") && !line.starts_with('#');
        assert_eq!(left.lines().filter(over).count(), 2, "{left}");
    }
}

#[test]
fn nothing_is_drawn_where_it_would_not_be_read() {
    for (terminal, options, steps) in [("dumb", &[][..], 2), ("", &[], 2), ("xterm", &["-q"], 0)] {
        let world = World::new();
        world.file("one.md", "run true\nreply from one\n");
        let args = ["spawn", "one.md"].iter().chain(options);
        let outcome = world.command(args).with("TERM", terminal).on_terminal(80);
        assert!(!outcome.stdout.contains('\u{1b}') && !outcome.stdout.contains("\n> "), "{outcome}");
        assert_eq!(outcome.stdout.matches("one.md: ").count(), steps, "{outcome}");
    }
    let world = World::new();
    world.file("one.md", "run true\nreply from one\n");
    let piped = world.command(["spawn", "one.md"]).with("TERM", "xterm").run();
    assert_eq!((piped.stdout.as_str(), piped.log.as_str()), ("from one\n", ""));
    let verbose = world.command(["spawn", "one.md", "-v"]).with("TERM", "xterm").run();
    assert_eq!(verbose.stderr.lines().count(), 2, "{verbose}");
}

#[test]
fn a_stopped_chain_leaves_no_row_behind() {
    let world = two();
    let gate = world.gate("gate");
    let (spawn, screen) = world.command(["spawn", "one.md"]).with("TERM", "xterm").start_on_terminal(80);
    gate.reached_by(1);
    wait_until("the tool is shown", || screen.text().contains(": running Bash"));
    spawn.signal(Signal::INT);
    // Rows are removed for the message, and drawn below it again.
    wait_until("it says that it stops above the rows", || {
        screen.text().contains("stopping") && screen.text().contains("\n> ")
    });
    spawn.signal(Signal::INT);
    spawn.ends().exits_with(130);
    let left = screen.text();
    assert!(!left.contains("\n> ") && left.contains("error: interrupted"), "{left}");
}

/// The lines of a screen that do not belong to what is there when the command has ended.
fn stale(screen: &str) -> Vec<&str> {
    screen
        .lines()
        .filter(|line| line.starts_with("> ") || line.contains("^C") || line.contains("Ctrl-C: stop"))
        .collect()
}

#[test]
fn nothing_stale_is_left_at_any_width() {
    for (columns, terminal, no_color) in
        [(120, "xterm", ""), (80, "xterm-256color", "1"), (60, "linux", ""), (40, "vt100", "1")]
    {
        let world = two();
        let gate = world.gate("gate");
        let spawn = world.command(["spawn", "one.md", "two.md"]).with("TERM", terminal).with("NO_COLOR", no_color);
        let (spawn, screen) = spawn.start_on_terminal(columns);
        gate.reached_by(2);
        wait_until("both tools are shown", || screen.text().matches(": running Bash").count() == 2);
        let rows =
            |text: &str| text.lines().filter(|line| line.starts_with("> ")).map(str::to_owned).collect::<Vec<_>>();
        let shown = screen.text();
        let widest = rows(&shown).iter().map(|row| row.chars().count()).max();
        assert!(widest.is_some_and(|widest| widest <= usize::from(columns) - 3), "{shown}");
        // The terminal itself shows which key was pressed.
        screen.shows("^C");
        spawn.signal(Signal::INT);
        wait_until("it says that it stops both", || {
            let shown = screen.text();
            shown.matches("stopping").count() == 2 && rows(&shown).len() == 2
        });
        assert!(!screen.text().contains("^C"), "{}", screen.text());
        screen.shows("^C");
        spawn.signal(Signal::INT);
        spawn.ends().exits_with(130);
        let left = screen.text();
        assert_eq!(stale(&left), [] as [&str; 0], "{left}");
        assert_eq!(left.matches(": started").count(), 2, "{left}");
    }
}

#[test]
fn a_terminal_that_changes_its_width_shows_the_rows_once() {
    let world = two();
    let gate = world.gate("gate");
    let spawn = world.command(["spawn", "one.md", "two.md"]).with("TERM", "vt100");
    let (spawn, screen) = spawn.start_on_terminal(100);
    gate.reached_by(2);
    for (columns, end) in [(100, "after the running tools"), (40, "Ctrl-C: stop\n"), (100, "after the running tools")] {
        spawn.resizes(&screen, columns);
        wait_until("the rows are drawn for this width", || {
            let shown = screen.text();
            shown.contains(end) && shown.matches(": running Bash").count() == 2
        });
        let shown = screen.text();
        assert_eq!((shown.matches("Ctrl-C: stop").count(), shown.matches(": started").count()), (1, 2), "{shown}");
    }
    gate.open_for_one();
    gate.open_for_one();
    spawn.ends().succeeds();
    assert_eq!(stale(&screen.text()), [] as [&str; 0]);
}

#[test]
fn what_is_typed_while_agents_work_breaks_no_rows() {
    let world = two();
    let gate = world.gate("gate");
    let (spawn, screen) = world.command(["spawn", "one.md"]).with("TERM", "xterm").start_on_terminal(80);
    gate.reached_by(1);
    wait_until("the tool is shown", || screen.text().contains(": running Bash"));
    spawn.types("are you there?\nanother line\n");
    gate.open_for_one();
    spawn.ends().succeeds();
    let left = screen.text();
    assert!(!left.contains("are you there?") && stale(&left).is_empty(), "{left}");
}

#[test]
fn a_command_that_is_stopped_takes_its_rows_along() {
    let world = two();
    let gate = world.gate("gate");
    let (spawn, screen) = world.command(["spawn", "one.md"]).with("TERM", "xterm").start_on_terminal(80);
    gate.reached_by(1);
    wait_until("the tool is shown", || screen.text().contains(": running Bash"));
    spawn.signal(Signal::TSTP);
    spawn.is_stopped();
    wait_until("the row is gone", || stale(&screen.text()).is_empty());
    screen.shows("$ fg\r\n");
    spawn.signal(Signal::CONT);
    wait_until("the row is back", || screen.text().contains(": running Bash"));
    assert!(screen.text().contains("\n$ fg\n> "), "{}", screen.text());
    gate.open_for_one();
    spawn.ends().succeeds();
    let left = screen.text();
    assert!(left.contains("\n$ fg\n") && stale(&left).is_empty(), "{left}");
}

#[test]
fn an_agent_that_goes_on_does_not_start_again() {
    let world = World::with_hooks();
    world.file("ins.md", "ask Which?\nreply done\n");
    world.spawn_paused("ins.md");
    world.answer_to("Which?", "this");
    let id = world.log().starts[0].session()[..8].to_owned();
    let resume = world.command(["resume", &id]).with("TERM", "xterm").on_terminal(80);
    assert!(resume.stdout.contains(": continues") && !resume.stdout.contains(": started"), "{resume}");
    assert!(resume.stdout.contains("this run: 0:") && resume.stdout.contains("; in all: 1 agent, $"), "{resume}");
}

#[test]
fn all_chains_that_are_continued_share_one_display() {
    for command in [&["watch", "--lines"][..], &["resume", "--all"]] {
        let world = World::with_hooks();
        for name in ["one", "two"] {
            world.file(format!("{name}.md"), format!("ask {name}?\nhold gate\nask Sure of {name}?\nreply {name}\n"));
            world.spawn_paused(&format!("{name}.md"));
            world.answer_to(&format!("{name}?"), "yes");
        }
        let gate = world.gate("gate");
        let (run, screen) = world.command(command).with("TERM", "xterm").start_on_terminal(80);
        gate.reached_by(2);
        wait_until("both tools are shown, in a row each", || {
            let shown = screen.text();
            shown.matches(": running Bash: echo").count() == 2 && shown.matches("\n> ").count() == 2
        });
        gate.open_for_one();
        gate.open_for_one();
        let waits = |name: &str| screen.text().contains(&format!(": Sure of {name}?"));
        wait_until("both wait", || waits("one") && waits("two"));
        if command[0] == "watch" {
            run.signal(Signal::INT);
        }
        run.ends().succeeds();
        let left = screen.text();
        assert!(!left.contains("\n> ") && !left.contains("\n- "), "{left}");
        assert_eq!(left.lines().filter(|line| line.contains(" asks ")).count(), 2, "{left}");
        assert!(left.contains("; in all: 2 chains, 2 agents, $"), "{left}");
    }
}

#[test]
fn a_person_is_told_of_chains_that_were_interrupted_and_cron_is_not() {
    let world = World::with_hooks();
    world.file("ins.md", "hold gate\nreply done\n");
    let gate = world.gate("gate");
    let spawn = world.command(["spawn", "ins.md"]).start();
    gate.reached_by(1);
    let session = world.log().starts[0].session().to_owned();
    let id = session[..8].to_owned();
    spawn.signal(Signal::INT);
    wait_until("the agent is told to stop", || world.state().join("frames").join(&session).join("stop").exists());
    gate.open_for_one();
    spawn.ends().exits_with(130);
    let told = format!("1 chain was interrupted and is left to you: agent-cli resume {id}");
    let all = world.command(["resume", "--all"]).with("TERM", "xterm").on_terminal(80);
    assert_eq!(all.stdout, format!("{told}\n"));
    assert_eq!(world.run(&["resume", "--all"]).log, "");
    let (watch, screen) = world.command(["watch", "--lines"]).with("TERM", "xterm").start_on_terminal(80);
    wait_until("it says so", || screen.text().contains(&told));
    // It may end before it listens for signals.
    watch.signal(Signal::TERM);
    watch.ends();
}

#[test]
fn what_watch_no_longer_drives_is_not_left_on_the_terminal() {
    let world = World::new();
    let gate = world.gate("gate");
    gate.open_for_one();
    world.file("ins.md", "wait --command 'echo held >> gate.held; read line < gate; false'\nreply done\n");
    world.spawn_paused("ins.md");
    let (watch, screen) = world.command(["watch", "--lines"]).with("TERM", "xterm").start_on_terminal(80);
    gate.reached_by(2);
    wait_until("its row is shown", || screen.text().contains("- "));
    gate.open_for_one();
    wait_until("its row is gone", || !screen.text().contains("- "));
    watch.signal(Signal::INT);
    watch.ends().succeeds();
}
