//! Long results in a pager.

use crate::world::World;

/// A chain whose agent has said more than a terminal shows.
fn talkative() -> (World, String) {
    let world = World::new();
    world.file("ins.md", "run true\nreply one line\n");
    world.run(&["spawn", "ins.md"]).succeeds();
    let lines: String = (0..40).map(|n| format!("line {n}\n")).collect();
    world.database().execute("UPDATE replies SET reply = ?1", [lines + "the end"]).expect("it can be written");
    let id = world.log().starts[0].session()[..8].to_owned();
    (world, id)
}

#[test]
fn a_long_result_is_paged_on_a_terminal_only() {
    let (world, id) = talkative();
    let logs = |pager: &str, options: &[&str], lines: u16| {
        let args = ["logs", &id].into_iter().chain(options.iter().copied());
        let command = world.command(args).with("TERM", "xterm").with("AGENT_CLI_PAGER", pager).with("PAGER", "false");
        command.start_on_screen(80, lines).0.ends().succeeds().stdout.clone()
    };
    let paged = logs("sed 's/^/paged: /'", &[], 24);
    assert!(paged.contains("paged: line 39") && paged.contains("paged: the end"), "{paged}");
    for (pager, options, lines) in [
        ("sed 's/^/paged: /'", &["--no-pager"][..], 24),
        ("sed 's/^/paged: /'", &["--json"], 24),
        ("sed 's/^/paged: /'", &["--follow"], 24),
        ("sed 's/^/paged: /'", &[], 200),
        ("", &[], 24),
        ("cat", &[], 24),
        ("no-such-program --really", &[], 24),
    ] {
        let shown = logs(pager, options, lines);
        let has_all = shown.contains("the end") || options == ["--json"];
        assert!(has_all && !shown.contains("paged: "), "{pager} {options:?} {lines}: {shown}");
    }
    // A person may leave it before the end.
    assert!(!logs("head -1", &[], 24).contains("the end"));
    let dumb = world.command(["logs", &id]).with("TERM", "dumb").with("PAGER", "false").on_terminal(80);
    assert!(dumb.stdout.contains("the end"), "{dumb}");
    let piped = world.command(["logs", &id]).with("TERM", "xterm").with("PAGER", "false").run();
    assert!(piped.stdout.contains("the end"), "{piped}");
}

#[test]
fn messages_wait_until_the_person_has_left_the_pager() {
    let world = World::new();
    let question = (0..40).map(|n| format!("part {n} ")).collect::<String>();
    world.file("ins.md", format!("ask {}\nreply done\n", question.repeat(20)));
    world.spawn_paused("ins.md");
    let id = world.questions()[0].1.clone();
    let command = world
        .command(["questions", &id])
        .with("TERM", "xterm")
        .with("AGENT_CLI_PAGER", "cat -n; echo left")
        .with("NO_COLOR", "1");
    let shown = command.start_on_screen(80, 10).0.ends().succeeds().stdout.clone();
    let (paged, after) = shown.split_once("left").expect("the pager ends");
    assert!(paged.contains("part 39") && after.contains("hint: agent-cli answer"), "{shown}");
}

#[test]
fn a_reply_is_printed_alone() {
    let (world, id) = talkative();
    let reply = world.run(&["show", &id, "--reply"]);
    assert_eq!(reply.stdout.lines().count(), 41, "{reply}");
    assert_eq!((reply.stdout.lines().next(), reply.stdout.lines().last()), (Some("line 0"), Some("the end")));
    assert_eq!(reply.stderr, "");
    let logs = world.run(&["logs", &id]).stdout.clone();
    assert!(logs.contains("\nreply:\nline 0\n") && logs.ends_with("\nthe end\n"), "{logs}");
    world.file("asks.md", "ask Which?\nreply done\n");
    world.spawn_paused("asks.md");
    let asks = world.log().starts.last().expect("it was started").session()[..8].to_owned();
    let none = world.run(&["show", &asks, "--reply"]);
    assert_eq!(none.stdout, "");
    assert!(none.stderr.contains(&format!("error: agent {asks} has not replied")), "{none}");
}

#[test]
fn what_people_copy_is_never_cut() {
    let (world, id) = talkative();
    let whole = |text: &str| text.split_whitespace().collect::<String>();
    let shown = world.run(&["show", &id, "--json"]).json();
    for columns in [120, 80, 60, 40, 20] {
        let text = world.command(["show", &id]).with("TERM", "dumb").on_terminal(columns).stdout;
        for name in ["id", "cwd", "output", "open"] {
            let value = shown[name].as_str().expect(name);
            assert!(text.lines().any(|line| line.contains(value)), "{name} at {columns}: {text}");
        }
        assert!(whole(&text).contains("line0"), "{text}");
    }
}
