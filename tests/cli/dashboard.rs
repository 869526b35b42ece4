//! The dashboard of `agent-cli` and `watch`, as a terminal shows it.

use std::fs;
use std::io::{Read, Write};

use rustix::process::Signal;

use crate::gate::wait_until;
use crate::inbox::{answered, asking};
use crate::invocation::Running;
use crate::pty::{Screen, terminal};
use crate::world::World;

fn opened<'a>(world: &'a World, args: &[&str], columns: u16) -> (Running<'a>, Screen) {
    let (running, screen) = world.command(args).with("TERM", "xterm").start_on_screen(columns, 24);
    shows(&screen, "quit");
    (running, screen)
}

/// Prints the screen if the test fails.
struct Shown<'a>(&'a Screen);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("TAKEN {}\n{}", self.0.is_taken(), self.0.text());
        }
    }
}

fn shows(screen: &Screen, what: &str) {
    let _shown = Shown(screen);
    wait_until(what, || screen.is_taken() && screen.text().contains(what));
}

/// Waits until the dialogue asks this, below the screen that was there before.
fn asks(screen: &Screen, what: &str) {
    let _shown = Shown(screen);
    wait_until(what, || !screen.is_taken() && screen.text().trim_end().ends_with(what));
}

/// Its lines without ids and ages.
fn timeless(world: &World, screen: &Screen) -> String {
    let shown = world.named(&screen.text());
    let ages = shown.lines().map(|line| match line.rsplit_once("  ") {
        Some((rest, age)) if age.ends_with(" s") => format!("{}\n", rest.trim_end()),
        _ => format!("{line}\n"),
    });
    ages.collect()
}

#[test]
fn questions_appear_and_go_without_a_key() {
    for (args, columns) in [(&["--color", "never"][..], 80), (&[], 40), (&["watch"], 80)] {
        let world = World::new();
        asking(&world, "Which colour?");
        let (dashboard, screen) = opened(&world, args, columns);
        shows(&screen, "Which colour?");
        shows(&screen, "1 needs you");
        asking(&world, "And when?");
        shows(&screen, "And when?");
        shows(&screen, "2 need you");
        if columns == 40 {
            insta::assert_snapshot!(timeless(&world, &screen), @"
            2 need you           r continues a chain
            Needs you
              asks  asks.md                      [AGE]
                And when?
            > asks  asks.md                      [AGE]
                Which colour?












            ----------------------------------------
            [ID1:8], 1 agent, $0.03, started [AGE]
              ago in
              [PROJECT]
            Which colour?
            a  l  o  s  p  d  ? help  q quit
            ");
        }
        world.answer_to("Which colour?", "red");
        shows(&screen, "1 needs you");
        let continues = args == ["watch"];
        shows(&screen, if continues { "1 done today" } else { "can continue" });
        dashboard.types("q");
        dashboard.ends().succeeds();
        assert!(!screen.is_taken());
        let left = screen.text();
        assert_eq!(left.contains(" done: red"), continues, "{left}");
        assert!(!left.contains("Needs you"), "{left}");
    }
}

#[test]
fn a_question_is_answered_and_its_chain_continues() {
    for args in [&[][..], &["watch"]] {
        // Otherwise the next question lingers, because somebody is there, and its chain continues at once.
        let world = World::with_hooks().with("AGENT_CLI_LINGER", "0s");
        world.file("asks.md", "ask Which colour?\nask And when?\nreply {results}\n");
        world.spawn_paused("asks.md");
        let (dashboard, screen) = opened(&world, args, 80);
        for (question, answer) in [("Which colour?", "dark red"), ("And when?", "now")] {
            // The watch says it, too, before the chains are read again.
            let is_asked = |line: &str| line.starts_with("> asks ") && line.contains(question);
            let _shown = Shown(&screen);
            wait_until(question, || screen.is_taken() && screen.text().lines().any(is_asked));
            dashboard.types("a");
            asks(&screen, "help\n>");
            dashboard.types(format!("{answer}\r"));
            if args.is_empty() {
                // The process that continued the chain before may still be there, and continues it again.
                let is_offered = || screen.text().trim_end().ends_with("continue the chain now? [Y/n]");
                wait_until("continue?", || screen.is_taken() || is_offered());
                if !screen.is_taken() {
                    dashboard.types("\r");
                }
            }
        }
        shows(&screen, "1 done today");
        assert_eq!(answered(&world), ["dark red", "now"]);
        dashboard.types("q");
        dashboard.ends().succeeds();
    }
}

/// Whoever is typing an answer does not see at once that it is no longer wanted.
#[test]
fn what_is_typed_after_a_question_was_answered_elsewhere_is_no_key() {
    let world = World::new();
    let chain = asking(&world, "When?");
    let (dashboard, screen) = opened(&world, &[], 80);
    shows(&screen, "When?");
    dashboard.types("a");
    asks(&screen, "help\n>");
    world.answer_to("When?", "now");
    asks(&screen, "Enter: back to the dashboard");
    assert!(screen.text().contains("has been answered"), "{}", screen.text());
    dashboard.types("steady\r");
    shows(&screen, "quit");
    dashboard.types("q");
    dashboard.ends().succeeds();
    world.run(&["show", &chain]).succeeds();
}

#[test]
fn all_of_a_question_is_shown() {
    let world = World::with_hooks();
    let url = format!("https://example.com/{}/the-end", "long/".repeat(12));
    let ask = format!(
        "ask 'See {url} first. Which?' --option unit --option all='slow, but sure' --default unit --context 'Tests pass.'"
    );
    world.file("root.md", format!("run agent-cli {ask}\nreply {{result}}\n"));
    world.spawn_paused("root.md");
    let (dashboard, screen) = world.command([] as [&str; 0]).with("TERM", "xterm").start_on_screen(60, 60);
    for part in ["the-end", "1. unit", "2. all: slow, but sure", "default: unit", "Tests pass."] {
        shows(&screen, part);
    }
    dashboard.kill();
}

#[test]
fn an_answer_can_be_left_for_later() {
    let world = World::new();
    asking(&world, "When?");
    let (dashboard, screen) = opened(&world, &[], 80);
    for keys in [":q\r", "\u{3}", "\u{4}"] {
        dashboard.types("a");
        asks(&screen, "help\n>");
        dashboard.types(keys);
        shows(&screen, "0 answers recorded");
        dashboard.types("j");
    }
    assert_eq!(answered(&world), [""; 0]);
    dashboard.types("\u{3}");
    dashboard.ends().exits_with(130);
}

#[test]
fn two_dashboards_show_the_same() {
    let world = World::new();
    asking(&world, "When?");
    let both = [&[][..], &["watch"]].map(|args| opened(&world, args, 80));
    both.iter().for_each(|(_, screen)| shows(screen, "When?"));
    let (first, screen) = &both[0];
    first.types("a");
    asks(screen, "help\n>");
    first.types("now\r");
    // The other one watches, so that the first does not ask whether to continue.
    both.iter().for_each(|(_, screen)| shows(screen, "1 done today"));
    for (dashboard, screen) in both {
        dashboard.types("q");
        dashboard.ends().succeeds();
        assert!(!screen.is_taken());
    }
}

#[test]
fn a_chain_is_stopped_paused_and_resumed() {
    let world = World::with_hooks();
    let gate = world.gate("gate");
    world.file("fails.md", "fail API Error: 400 boom\n");
    world.run(&["spawn", "fails.md"]).exits_with(1);
    let (dashboard, screen) = opened(&world, &[], 80);
    shows(&screen, "boom");
    world.file("fails.md", "hold gate\nreply fine\n");
    dashboard.types("r");
    shows(&screen, "in a separate process");
    gate.reached_by(1);
    shows(&screen, "1 working");
    gate.open_for_one();
    shows(&screen, "1 done today");
    asking(&world, "When?");
    shows(&screen, "When?");
    dashboard.types("gp");
    shows(&screen, "Waiting\n> paused");
    dashboard.types("r");
    shows(&screen, "> asks");
    dashboard.types("s");
    shows(&screen, "y: yes");
    dashboard.types("n");
    wait_until("it was not meant", || !screen.text().contains("y: yes"));
    dashboard.types("sy");
    shows(&screen, "stopped");
    assert_eq!(world.questions().len(), 0);
    dashboard.types("q");
    dashboard.ends().succeeds();
}

#[test]
fn a_chain_is_removed_after_a_confirmation() {
    let world = World::with_hooks();
    world.file("fails.md", "fail API Error: 400 boom\n");
    world.run(&["spawn", "fails.md"]).exits_with(1);
    let (dashboard, screen) = opened(&world, &[], 80);
    shows(&screen, "boom");
    dashboard.types("d");
    shows(&screen, "remove ");
    dashboard.types("n");
    wait_until("it was not meant", || !screen.text().contains("y: yes"));
    shows(&screen, "boom");
    dashboard.types("dy");
    shows(&screen, "removed ");
    shows(&screen, "nothing needs you");
    dashboard.types("q");
    dashboard.ends().succeeds();
    assert!(world.run(&["ls", "--all"]).succeeds().stderr.starts_with("no chains yet"));
}

#[test]
fn logs_are_shown_below_and_the_dashboard_returns() {
    let world = World::new();
    asking(&world, "When?");
    let (dashboard, screen) = opened(&world, &["watch"], 80);
    dashboard.types("l");
    asks(&screen, "Enter: back to the dashboard");
    assert!(screen.text().contains("asks: When?"), "{}", screen.text());
    dashboard.types("\r");
    shows(&screen, "Needs you");
    dashboard.types("?");
    shows(&screen, "open a copy of its conversation");
    dashboard.types("xq");
    dashboard.ends().succeeds();
}

#[test]
fn it_is_suspended_and_returns() {
    let world = World::new();
    asking(&world, "When?");
    // The system does not suspend processes of a group that no shell looks after.
    let dashboard = world.command([""; 0]).with("TERM", "xterm").in_its_own_group();
    let (dashboard, screen) = dashboard.start_on_screen(80, 24);
    shows(&screen, "quit");
    dashboard.types("\u{1a}");
    wait_until("the terminal is given back", || !screen.is_taken());
    wait_until("it returns", || {
        dashboard.signal(Signal::CONT);
        screen.is_taken() && screen.text().contains("When?")
    });
    dashboard.types("q");
    dashboard.ends().succeeds();
}

#[test]
fn it_fits_a_terminal_whose_size_changes() {
    let world = World::new();
    asking(&world, "Which colour should the new front door of the house have?");
    let (dashboard, screen) = opened(&world, &[], 80);
    for (columns, rows) in [(40, 24), (20, 10), (120, 40), (1, 1), (80, 24)] {
        dashboard.resizes_to(&screen, columns, rows);
        if columns >= 20 {
            wait_until("it is drawn again", || {
                let shown = screen.text();
                shown.contains("asks")
                    && shown.lines().count() == usize::from(rows)
                    && shown.trim_end().ends_with("quit")
            });
        }
    }
    dashboard.types("q");
    dashboard.ends().succeeds();
}

#[test]
fn signals_end_it_and_give_the_terminal_back() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        for (args, code) in [(&[][..], 130), (&["watch"], 0)] {
            let world = World::new();
            let (dashboard, screen) = opened(&world, args, 80);
            shows(&screen, "No chain needs you");
            dashboard.signal(signal);
            dashboard.ends().exits_with(code);
            assert!(!screen.is_taken());
        }
    }
}

#[test]
fn a_terminal_that_is_closed_ends_it() {
    // By itself, and while it has lent the terminal to a dialogue or a program.
    let lent = [None, Some(("a", "help")), Some(("l", "started"))];
    for (args, lent) in [&[][..], &["watch"]].into_iter().flat_map(|args| lent.map(|lent| (args, lent))) {
        let world = World::new();
        asking(&world, "When?");
        let (mut screen, theirs) = terminal(80, 24, true).expect("there are terminals");
        let mut child = world.command(args).with("TERM", "xterm").start_on(&theirs);
        drop(theirs);
        let is_shown = |screen: &mut fs::File, what: &str| {
            let (mut shown, mut part) = (Vec::new(), [0; 4096]);
            while !String::from_utf8_lossy(&shown).contains(what) {
                let read = screen.read(&mut part).expect("it is drawn");
                shown.extend_from_slice(&part[..read]);
            }
        };
        is_shown(&mut screen, "quit");
        if let Some((key, what)) = lent {
            screen.write_all(key.as_bytes()).expect("the terminal is open");
            is_shown(&mut screen, what);
        }
        drop(screen);
        wait_until("it ends", || child.try_wait().expect("it is ours").is_some());
        let status = child.wait().expect("it is ours");
        assert_eq!(status.code(), Some(if args.is_empty() { 130 } else { 0 }));
    }
}

#[test]
fn a_panic_gives_the_terminal_back() {
    for args in [&[][..], &["watch"]] {
        let world = World::new();
        let (dashboard, screen) =
            world.command(args).with("TERM", "xterm").with("AGENT_CLI_PANIC", "draw").start_on_screen(80, 24);
        let outcome = dashboard.ends();
        assert!(outcome.stdout.contains("\u{1b}[?1049h"), "the terminal was taken: {outcome}");
        assert!(!screen.is_taken() && screen.text().contains("a test wants this"), "{}", screen.text());
    }
}

#[test]
fn a_state_directory_that_disappears_ends_it() {
    for args in [&[][..], &["watch"]] {
        let world = World::new();
        asking(&world, "When?");
        let (dashboard, screen) = opened(&world, args, 80);
        shows(&screen, "When?");
        fs::remove_dir_all(world.state()).expect("it can be removed");
        dashboard.ends().exits_with(1);
        assert!(!screen.is_taken() && screen.text().contains("error: "), "{}", screen.text());
    }
}

#[test]
fn a_watch_that_runs_agents_asks_before_it_stops_them() {
    let world = World::with_hooks();
    world.file("asks.md", "ask When?\nhold gate\nreply done\n");
    world.spawn_paused("asks.md");
    let gate = world.gate("gate");
    let (watch, screen) = opened(&world, &["watch"], 80);
    world.answer_to("When?", "now");
    shows(&screen, "1 working");
    gate.reached_by(1);
    shows(&screen, "running Bash");
    watch.types("q");
    shows(&screen, "y: yes");
    watch.types("y");
    shows(&screen, "stopping");
    gate.open_for_one();
    watch.ends().exits_with(130);
    assert!(!screen.is_taken());
}

#[test]
fn there_is_none_where_it_could_not_be_drawn() {
    let world = World::new();
    asking(&world, "When?");
    for terminal in ["dumb", ""] {
        let alone = world.command([""; 0]).with("TERM", terminal).on_terminal(80);
        alone.exits_with(2);
        assert!(alone.stdout.contains("[OPTIONS] <COMMAND>"), "{alone}");
    }
    for (terminal, args) in
        [("dumb", &["watch"][..]), ("xterm", &["watch", "--lines"]), ("xterm", &["watch", "--json"])]
    {
        let (watch, screen) = world.command(args).with("TERM", terminal).start_on_screen(80, 24);
        wait_until("it watches", || screen.text().contains("watching for chains"));
        assert!(!screen.is_taken());
        watch.signal(Signal::TERM);
        watch.ends();
    }
    let piped = world.run(&[]);
    piped.exits_with(2);
    assert!(piped.stderr.contains("[OPTIONS] <COMMAND>"), "{piped}");
}
