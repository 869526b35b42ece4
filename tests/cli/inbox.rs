//! The inbox, as a terminal shows it.

use std::fs;

use serde_json::json;

use crate::gate::wait_until;
use crate::invocation::Running;
use crate::pty::Screen;
use crate::world::World;

/// A chain that waits for the answer to a question.
pub(crate) fn asking(world: &World, question: &str) -> String {
    world.file("asks.md", format!("ask {question}\nreply {{result}}\n"));
    world.spawn_paused("asks.md")
}

pub(crate) fn opened<'a>(world: &'a World, args: &[&str], columns: u16, rows: u16) -> (Running<'a>, Screen) {
    opened_on("xterm", world, args, columns, rows)
}

fn opened_on<'a>(terminal: &str, world: &'a World, args: &[&str], columns: u16, rows: u16) -> (Running<'a>, Screen) {
    world.command(["inbox"].iter().chain(args)).with("TERM", terminal).start_on_screen(columns, rows)
}

/// Waits until the screen ends with this.
pub(crate) fn shows(screen: &Screen, end: &str) {
    wait_until(&format!("the screen ends with {end:?}:"), || screen.text().trim_end().ends_with(end));
}

pub(crate) fn answered(world: &World) -> Vec<String> {
    let all = world.run(&["questions", "--all", "--json"]).json();
    let answers = all.as_array().expect("a list").iter().filter_map(|asked| asked["answer"].as_str());
    answers.map(str::to_owned).collect()
}

/// An editor that does this with the file `$1`.
fn editor(world: &World, does: &str) -> String {
    let path = world.executable("editor", format!("#!/bin/sh\n{does}\n"));
    path.to_str().expect("a UTF-8 path").to_owned()
}

#[test]
fn questions_are_answered_one_after_the_other() {
    for columns in [80, 40] {
        let world = World::new();
        asking(&world, "Which colour should the new front door of the house have?");
        asking(&world, "When?");
        let (inbox, screen) = opened(&world, &[], columns, 24);
        shows(&screen, "help\n>");
        let shown = world.named(&screen.text()).replace(|c: char| c.is_ascii_digit(), "0");
        match columns {
            80 => insta::assert_snapshot!(shown, @r"

    (0 of 0) [ID0:0] of asks.md in the chain [ID0:0], [TIME] ([AGE] ago)
      │  Which colour should the new front door of the house have?
    your answer
    or :edit :skip :back :quit, :? for help
    >
    "),
            _ => insta::assert_snapshot!(shown, @r"

    (0 of 0) [ID0:0] of asks.md in the
    chain [ID0:0], [TIME] ([AGE] ago)
      │  Which colour should the new front
      ┆  door of the house have?
    your answer
    or :edit :skip :back :quit, :? for help
    >
    "),
        }
        inbox.types("a dark  red \r");
        wait_until("the next is shown", || screen.text().contains("(2 of 2)"));
        shows(&screen, "help\n>");
        inbox.types("Jan 1st\r");
        shows(&screen, "[Y/n]");
        assert_eq!(answered(&world), ["a dark  red ", "Jan 1st"]);
        inbox.types("\r");
        let ended = inbox.ends();
        ended.succeeds();
        let left = screen.text();
        assert!(left.contains(" done: a dark  red\n") && left.contains(" done: Jan 1st\n"), "{left}");
    }
}

#[test]
fn a_person_goes_back_and_skips_and_quits() {
    let world = World::new();
    for question in ["one?", "two?", "three?"] {
        asking(&world, question);
    }
    let (inbox, screen) = opened(&world, &[], 80, 24);
    let at = |question: &str| {
        wait_until(question, || {
            let text = screen.text();
            let last = text.rfind(" of 3)").map_or("", |at| &text[at..]);
            last.contains(question) && last.trim_end().ends_with("help\n>")
        });
    };
    at("one?");
    inbox.types("first\r");
    at("two?");
    inbox.types(":back\r");
    at("one?");
    assert!(screen.text().contains("answer:\n  │  first\n"), "{}", screen.text());
    inbox.types("another\r");
    at("two?");
    inbox.types(":skip\r");
    at("three?");
    inbox.types(":qiut\r");
    shows(&screen, "to answer with exactly this: :text :qiut\n>");
    inbox.types(":text :quit\r");
    wait_until("it is recorded", || answered(&world) == ["another", ":quit"]);
    shows(&screen, "2 answers recorded, 1 question left open\ncontinue 2 chains now? [Y/n]");
    inbox.types("n\r");
    inbox.ends().succeeds();
    assert_eq!(screen.text().matches("\nagent-cli resume ").count(), 2, "{}", screen.text());
    assert_eq!(world.starts(), 3, "nothing was continued");
}

#[test]
fn what_is_interrupted_is_not_sent() {
    for (key, code) in [("\u{3}", 130), ("\u{15}\u{4}", 0)] {
        let world = World::new();
        asking(&world, "When?");
        let (inbox, screen) = opened(&world, &[], 80, 24);
        shows(&screen, "help\n>");
        inbox.types("Jan 1st");
        shows(&screen, "> Jan 1st");
        inbox.types(key);
        inbox.ends().exits_with(code);
        assert!(screen.text().contains("0 answers recorded, 1 question left open"), "{}", screen.text());
        assert_eq!(answered(&world), [""; 0]);
    }
}

#[test]
fn what_was_pasted_is_one_answer() {
    let world = World::new();
    asking(&world, "one?");
    asking(&world, "two?");
    let (inbox, screen) = opened(&world, &[], 80, 24);
    shows(&screen, "help\n>");
    inbox.types("\u{1b}[200~first line\nsecond line\u{1b}[201~");
    shows(&screen, "second line");
    inbox.types("\r");
    wait_until("it is recorded", || answered(&world) == ["first line\nsecond line"]);
    wait_until("the next is shown", || screen.text().contains("(2 of 2)"));
    inbox.types(":q\r");
    shows(&screen, "[Y/n]");
    inbox.types("n\r");
    inbox.ends().succeeds();
}

#[test]
fn what_is_typed_after_a_question_was_answered_elsewhere_is_no_answer_to_the_next() {
    for terminal in ["xterm", "dumb"] {
        let world = World::new();
        for question in ["one?", "two?", "three?"] {
            asking(&world, question);
        }
        let (inbox, screen) = opened_on(terminal, &world, &[], 80, 40);
        shows(&screen, "help\n>");
        world.answer_to("one?", "theirs");
        shows(&screen, "Enter: the next question");
        assert!(screen.text().contains(" has been answered"), "{}", screen.text());
        inbox.types("the rest of what was typed\r");
        wait_until("the next is shown", || screen.text().contains("two?"));
        shows(&screen, "help\n>");
        world.answer_to("two?", "theirs too");
        wait_until("it asks again", || screen.text().matches("Enter: the next question").count() == 2);
        inbox.types(":q\r");
        inbox.ends().succeeds();
        assert_eq!(answered(&world), ["theirs", "theirs too"]);
    }
}

#[test]
fn what_is_left_open_is_counted_at_the_end() {
    let world = World::new();
    asking(&world, "one?");
    asking(&world, "two?");
    let (inbox, screen) = opened(&world, &[], 80, 40);
    shows(&screen, "help\n>");
    world.answer_to("two?", "theirs");
    asking(&world, "three?");
    asking(&world, "four?");
    inbox.types(":q\r");
    inbox.ends().succeeds();
    let left = screen.text();
    assert!(left.ends_with("0 answers recorded, 3 questions left open\n"), "{left}");
}

#[test]
fn what_happens_elsewhere_is_noticed() {
    let world = World::new();
    let first = asking(&world, "one?");
    let second = asking(&world, "two?");
    let (inbox, screen) = opened(&world, &[], 80, 40);
    shows(&screen, "help\n>");
    // A line that has been begun stays.
    inbox.types("mi");
    shows(&screen, "> mi");
    world.answer_to("one?", "theirs");
    world.answer_to("two?", "theirs too");
    asking(&world, "three?");
    inbox.types("ne\r");
    wait_until("the new one is shown", || screen.text().contains("three?"));
    shows(&screen, "help\n>");
    let left = screen.text();
    assert!(left.contains(": theirs; yours was not recorded"), "{left}");
    assert!(left.contains(" has been answered") && left.contains(": theirs too"), "{left}");
    inbox.types("mine\r");
    shows(&screen, "1 answer recorded\ncontinue the chain now? [Y/n]");
    inbox.types("\r");
    inbox.ends().succeeds();
    assert_eq!(answered(&world), ["theirs", "theirs too", "mine"]);
    for (id, answer) in [(first, "theirs"), (second, "theirs too")] {
        world.run(&["resume", &id]).prints(answer);
    }
}

/// Waits until there is more to show. On a narrow screen, the prompt has several lines.
fn more(screen: &Screen) {
    let ends = [",Enter:more,:all:skip:back:quit", ",Enter:more,denyandwhy,:all:skip:back:quit", "Enter:a:s:q"];
    let text = || screen.text().replace([' ', '\n'], "");
    wait_until("there is more", || ends.iter().any(|end| text().ends_with(end)));
}

#[test]
fn an_approval_shows_the_whole_call_page_by_page() {
    let world = World::new();
    world.file("root.md", "ask May I?\nreply {result}\n");
    world.spawn_paused("root.md");
    let command: String = (1..=100).map(|line| format!("echo {line} \u{1b}[2J\u{202e}\n")).collect();
    let kind = json!({"permission": {"tool": "Bash", "input": {"command": command}}});
    let database = world.database();
    database.execute("UPDATE requests SET detail = ?1", [kind.to_string()]).expect("it can be written");
    for (columns, rows) in [(80, 24), (20, 5)] {
        let (inbox, screen) = opened(&world, &[], columns, rows);
        more(&screen);
        inbox.types("allow\r");
        // On a narrow screen, the message has several lines.
        let says = |what: &str| wait_until(what, || screen.text().replace([' ', '\n'], "").contains(what));
        says("therestfirst");
        more(&screen);
        inbox.types("\r");
        more(&screen);
        assert_eq!(answered(&world), [""; 0]);
        inbox.types(":all\r");
        shows(&screen, "help\n>");
        inbox.types("maybe\r");
        says("areason");
        inbox.types(":q\r");
        let ended = inbox.ends();
        ended.succeeds();
        assert!(columns < 80 || ended.stdout.contains("echo 100 \\u{1b}[2J\\u{202e}"), "{ended}");
        assert!(!ended.stdout.contains("\u{1b}[2J") && !ended.stdout.contains('\u{202e}'), "{ended}");
    }
    // A person need not read what they do not want.
    let (inbox, screen) = opened(&world, &[], 80, 24);
    more(&screen);
    inbox.types("deny use the test server\r");
    shows(&screen, "[Y/n]");
    inbox.types("n\r");
    inbox.ends().succeeds();
    assert_eq!(answered(&world), ["deny use the test server"]);
}

#[test]
fn an_answer_is_written_in_an_editor() {
    let by_rename = "printf 'from\\nthe editor\\n\\n' > \"$1.new\" && mv \"$1.new\" \"$1\"";
    for (does, expected) in [
        (by_rename, "the answer"),
        ("printf ' \\n' > \"$1\"", "the answer is empty, so it was not sent"),
        ("rm \"$1\"", "the answer is empty, so it was not sent"),
        ("echo text > \"$1\"; exit 3", "ended with exit status 3, so nothing was answered"),
        ("printf '\\377' > \"$1\"", "what the editor has saved is not UTF-8"),
    ] {
        let world = World::new();
        asking(&world, "When?");
        let editor = editor(&world, does);
        let inbox = world.command(["inbox"]).with("TERM", "xterm").with("VISUAL", &editor);
        let (inbox, screen) = inbox.start_on_screen(80, 24);
        shows(&screen, "help\n>");
        inbox.types(":edit\r");
        if expected == "the answer" {
            shows(&screen, "[Y/n]");
            assert_eq!(answered(&world), ["from\nthe editor\n"]);
            inbox.types("n\r");
        } else {
            // Where the terminal breaks the line depends on the length of a path.
            let without_blanks = |text: &str| text.replace([' ', '\n'], "");
            wait_until(expected, || without_blanks(&screen.text()).contains(&without_blanks(expected)));
            assert_eq!(answered(&world), [""; 0]);
            shows(&screen, "\n>");
            inbox.types(":q\r");
        }
        inbox.ends().succeeds();
    }
}

#[test]
fn a_chain_that_somebody_drives_continues_by_itself() {
    let world = World::new();
    let gate = world.gate("gate");
    world.file("busy.md", "hold gate\nreply busy\n");
    world.file("asks.md", "ask When?\nreply {result}\n");
    let spawn = world.command(["spawn", "busy.md", "asks.md"]).start();
    gate.reached_by(1);
    wait_until("it has asked", || !world.questions().is_empty());
    let (inbox, screen) = opened(&world, &[], 80, 24);
    shows(&screen, "help\n>");
    inbox.types("now\r");
    inbox.ends().succeeds();
    assert!(screen.text().contains(" continues: another process is already running it\n"), "{}", screen.text());
    gate.open_for_one();
    assert!(spawn.ends().succeeds().stdout.contains("now"));
}

#[test]
fn it_needs_a_terminal_and_a_person() {
    let world = World::new();
    asking(&world, "When?");
    insta::assert_snapshot!(world.run(&["inbox"]), @r"
    --- stderr
    error: the inbox needs a terminal
    hint: agent-cli questions --json lists the open questions
    hint: agent-cli answer ID ANSWER answers one
    --- exit status: 2
    ");
    insta::assert_snapshot!(world.run(&["answer"]), @r"
    --- stderr
    error: no question was named
    hint: agent-cli questions lists the open questions
    hint: agent-cli answer ID ANSWER answers one
    --- exit status: 2
    ");
    world.file("agent.md", "run agent-cli inbox\nreply {result}\n");
    let outcome = world.run(&["spawn", "agent.md"]);
    assert!(outcome.stdout.contains("agents cannot answer questions"), "{outcome}");
}

#[test]
fn questions_of_other_projects_are_counted() {
    let world = World::new();
    asking(&world, "When?");
    fs::create_dir_all(world.home().join("elsewhere")).expect("it can be made");
    let elsewhere = |args: &[&str]| world.command(args).within(&world.home().join("elsewhere")).with("TERM", "xterm");
    let (inbox, screen) = elsewhere(&["answer"]).start_on_screen(80, 24);
    inbox.ends().succeeds();
    assert_eq!(screen.text(), "no open questions\n1 question of another project: agent-cli inbox --all-projects\n");
    let (inbox, screen) = elsewhere(&["inbox", "-p", "--resume"]).start_on_screen(80, 24);
    shows(&screen, "help\n>");
    inbox.types("now\r");
    inbox.ends().succeeds();
    assert!(screen.text().contains(" done: now\n"), "{}", screen.text());
}

#[test]
fn a_terminal_that_cannot_move_its_cursor_is_enough() {
    let world = World::new();
    asking(&world, "When?");
    let (inbox, screen) = world.command(["inbox"]).with("TERM", "dumb").start_on_screen(80, 24);
    shows(&screen, "help\n>");
    // An end of input in the middle of a line is not Enter.
    inbox.types("Jan\u{4}\u{4}");
    inbox.ends().succeeds();
    assert_eq!(answered(&world), [""; 0]);
    let (inbox, screen) = world.command(["inbox"]).with("TERM", "dumb").start_on_screen(80, 24);
    shows(&screen, "help\n>");
    inbox.types("Jan 1st\n");
    shows(&screen, "[Y/n]");
    inbox.types("n\n");
    let ended = inbox.ends();
    assert_eq!(answered(&world), ["Jan 1st"]);
    assert!(!ended.succeeds().stdout.contains('\u{1b}'), "{ended}");
}

#[test]
fn if_a_chain_is_removed_the_others_stay() {
    let world = World::new();
    let chains = ["one?", "two?", "three?"].map(|question| asking(&world, question));
    let (inbox, screen) = opened(&world, &[], 80, 40);
    shows(&screen, "help\n>");
    inbox.types("mine\r");
    wait_until("the next is shown", || screen.text().contains("two?"));
    shows(&screen, "help\n>");
    for removed in &chains[..2] {
        world.run(&["rm", removed, "--yes"]).succeeds();
    }
    inbox.types("lost\r");
    wait_until("the last is shown", || screen.text().contains("three?"));
    shows(&screen, "help\n>");
    assert!(screen.text().contains(" has been removed with its chain; yours was not recorded\n"), "{}", screen.text());
    inbox.types("now\r");
    shows(&screen, "continue the chain now? [Y/n]");
    assert!(screen.text().contains(&format!("\n{} has been removed\n", &chains[0][..8])), "{}", screen.text());
    inbox.types("\r");
    inbox.ends().succeeds();
    assert!(screen.text().contains(" done: now\n"), "{}", screen.text());
}
