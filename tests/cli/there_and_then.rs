//! `spawn` and `resume` ask the person at their terminal.

use rustix::process::Signal;
use serde_json::json;

use crate::gate::wait_until;
use crate::inbox::{answered, asking, shows};
use crate::invocation::Running;
use crate::pty::Screen;
use crate::world::World;

fn on_screen<'a>(world: &'a World, args: &[&str], columns: u16) -> (Running<'a>, Screen) {
    world.command(args).with("TERM", "xterm").start_on_screen(columns, 50)
}

/// Waits until the screen shows this, wherever it breaks lines.
fn says(screen: &Screen, what: &str) {
    let without_blanks = |text: &str| text.replace([' ', '\n'], "");
    wait_until(what, || without_blanks(&screen.text()).contains(&without_blanks(what)));
}

/// Waits until the question is shown, and a line can be typed.
fn asks(screen: &Screen, question: &str) {
    wait_until(question, || {
        let text = screen.text().replace([' ', '\n'], "");
        let last = text.rfind("inthechain").map_or("", |at| &text[at..]);
        last.contains(&question.replace(' ', "")) && last.ends_with("help>")
    });
}

#[test]
fn one_command_asks_and_continues_until_the_reply() {
    for (terminal, columns, enter) in
        [("xterm", 80, "\r"), ("xterm", 40, "\r"), ("xterm", 20, "\r"), ("dumb", 80, "\n")]
    {
        let world = World::with_hooks();
        world.file("asks.md", "ask Which colour?\nask And when?\nreply {results}\n");
        let spawn = world.command(["spawn", "asks.md"]).with("TERM", terminal).with("NO_COLOR", "1");
        let (spawn, screen) = spawn.start_on_screen(columns, 50);
        asks(&screen, "Which colour?");
        spawn.types(format!("dark  red{enter}"));
        asks(&screen, "And when?");
        spawn.types(format!("now{enter}"));
        let ended = spawn.ends();
        ended.succeeds();
        says(&screen, "answered: dark  red");
        assert!(!ended.stdout.contains("SGN_"), "{ended}");
        assert!(terminal == "xterm" || !ended.stdout.contains('\u{1b}'), "{ended}");
        assert_eq!(answered(&world), ["dark  red", "now"]);
        assert_eq!(world.run(&["ls", "--all", "--json"]).json()[0]["status"], "done");
    }
}

#[test]
fn an_inbox_elsewhere_does_not_delay_the_question() {
    let world = World::with_hooks().with("AGENT_CLI_LINGER", "1h");
    world.run(&["ls"]);
    let inbox = std::fs::File::create(world.state().join("attending.lock")).unwrap();
    inbox.try_lock_shared().unwrap();
    world.file("asks.md", "ask Which colour?\nreply {result}\n");
    let (spawn, screen) = on_screen(&world, &["spawn", "asks.md"], 80);
    asks(&screen, "Which colour?");
    spawn.types("red\r");
    spawn.ends().succeeds();
    assert_eq!((answered(&world), world.starts()), (vec!["red".to_owned()], 2));
}

#[test]
fn a_question_can_be_left_for_later() {
    for (keys, code) in [("\r", 0), ("\u{3}", 0), ("\u{4}", 0), (":q\r", 0), (":skip\r", 0), ("\r", 75)] {
        let world = World::new();
        world.file("asks.md", "ask When?\nreply {result}\n");
        let args = if code == 75 { &["spawn", "asks.md", "--exit-code"][..] } else { &["spawn", "asks.md"] };
        let (spawn, screen) = on_screen(&world, args, 80);
        asks(&screen, "When?");
        spawn.types(keys);
        let ended = spawn.ends();
        ended.exits_with(code);
        assert!(!ended.stdout.contains("SGN_"), "{ended}");
        let shown = world.named(&screen.text());
        let (_, after) = shown.rsplit_once("\n>").expect("there was a prompt");
        insta::allow_duplicates! {
            insta::assert_snapshot!(after.lines().skip(1).map(|line| format!("{line}\n")).collect::<String>(), @"
            [ID1:8] waits for an answer to [ID2:8]: When?
            hint: agent-cli resume [ID1:8] asks you, and continues with your answer
            ");
        }
        assert_eq!(answered(&world), [""; 0]);
    }
}

#[test]
fn a_signal_ends_the_prompt_and_nothing_is_lost() {
    for terminal in ["xterm", "dumb"] {
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            let world = World::new();
            world.file("asks.md", "ask When?\nreply {result}\n");
            let (spawn, screen) = world.command(["spawn", "asks.md"]).with("TERM", terminal).start_on_screen(80, 24);
            asks(&screen, "When?");
            spawn.signal(signal);
            spawn.ends().succeeds();
            assert_eq!(world.questions().len(), 1);
        }
    }
}

#[test]
fn resume_asks_what_is_open_and_goes_on_with_what_was_answered() {
    let world = World::with_hooks();
    world.file("one.md", "ask one?\nreply {result}\n");
    world.file("two.md", "ask two?\nreply {result}\n");
    // One after the other, so that the first asks first.
    let id = world.run(&["spawn", "one.md", "two.md", "--max-parallel", "1"]).started();
    let (resume, screen) = on_screen(&world, &["resume", &id], 80);
    asks(&screen, "one?");
    resume.types(":skip\r");
    asks(&screen, "two?");
    resume.types("second\r");
    let ended = resume.ends();
    ended.succeeds();
    assert_eq!(answered(&world), ["second"]);
    says(&screen, "two.md: done");
    says(&screen, ": one?");
    assert!(!ended.stdout.contains("SGN_"), "{ended}");
    let (resume, screen) = on_screen(&world, &["resume", &id], 80);
    asks(&screen, "one?");
    resume.types("first\r");
    resume.ends().succeeds();
    says(&screen, "first");
    world.run(&["resume", &id]).succeeds();
}

#[test]
fn nobody_is_asked_who_has_not_typed_the_command() {
    let world = World::new();
    world.file("asks.md", "ask When?\nreply {result}\n");
    for args in [&["spawn", "asks.md", "--no-ask"][..], &["-q", "spawn", "asks.md"], &["spawn", "asks.md", "--json"]] {
        world.command(args).with("TERM", "xterm").on_terminal(80).succeeds();
    }
    for line in ["agent-cli spawn asks.md | cat", "agent-cli spawn asks.md < /dev/null"] {
        world.program("/bin/sh", ["-c", line]).with("TERM", "xterm").on_terminal(80).succeeds();
    }
    assert_eq!(world.questions().len(), 5);
    let line = "agent-cli spawn asks.md > out";
    world.program("/bin/sh", ["-c", line]).with("TERM", "xterm").on_terminal(80).succeeds();
    let out = std::fs::read_to_string(world.project().join("out")).expect("it is there");
    assert!(out.starts_with("SGN_PEND_STARTED ("), "{out}");
}

/// The system would suspend a job that reads from the terminal in the background.
#[test]
fn a_job_in_the_background_does_not_ask() {
    let world = World::new();
    world.file("asks.md", "ask When?\nreply {result}\n");
    let line = "script -qec \"bash --norc -ic 'agent-cli spawn asks.md & wait'\" /dev/null < /dev/null";
    let ended = world.program("/bin/sh", ["-c", line]).with("TERM", "xterm").run();
    assert!(ended.stdout.contains(" waits for an answer to ") && !ended.stdout.contains("Enter: later"), "{ended}");
    assert!(!ended.stdout.contains("Stopped"), "{ended}");
    assert_eq!(world.questions().len(), 1);
}

#[test]
fn enter_takes_the_default_and_what_was_understood_is_said_back() {
    let ask = "run agent-cli ask 'Where?' --option mac --option linux --option windows --multiple --free-text \
               --default linux\nreply {result}\n";
    for (typed, said, got) in [
        ("\r", "answered: linux (the default)", "linux"),
        ("1, 3\r", "answered: 1, 3: mac, windows", "mac, windows"),
        ("elsewhere\r", "answered: elsewhere", "elsewhere"),
    ] {
        let world = World::with_hooks();
        world.file("asks.md", ask);
        let (spawn, screen) = on_screen(&world, &["spawn", "asks.md"], 80);
        shows(&screen, "or Enter: the default, :edit :skip :back :quit, :? for help\n>");
        spawn.types(typed);
        let ended = spawn.ends();
        ended.succeeds();
        says(&screen, &format!("\n{said}\n"));
        assert_eq!(answered(&world), [got]);
        // The inbox has the same rules.
        let id = world.run(&["spawn", "asks.md"]).started();
        let (inbox, screen) = on_screen(&world, &["inbox", &id], 80);
        shows(&screen, "help\n>");
        inbox.types(typed);
        shows(&screen, &format!("{said}\n1 answer recorded\ncontinue the chain now? [Y/n]"));
        inbox.types("n\r");
        inbox.ends().succeeds();
    }
}

#[test]
fn a_letter_is_no_answer_until_the_person_says_so() {
    let world = World::new();
    world.file("asks.md", "ask Really?\nreply {result}\n");
    let (spawn, screen) = on_screen(&world, &["spawn", "asks.md"], 80);
    asks(&screen, "Really?");
    for letter in ["s", "q", "y", "Quit"] {
        spawn.types(format!("{letter}\r"));
        shows(&screen, &format!("send \"{letter}\" as the answer? [y/N]"));
        spawn.types("\r");
        shows(&screen, "nothing was sent; :skip leaves the question open, :quit leaves\n>");
        assert_eq!(answered(&world), [""; 0]);
    }
    spawn.types("n\r");
    shows(&screen, "[y/N]");
    spawn.types("y\r");
    spawn.ends().succeeds();
    assert_eq!(answered(&world), ["n"]);
}

#[test]
fn an_answer_from_elsewhere_ends_the_prompt_and_continues_the_chain() {
    let world = World::new();
    world.file("asks.md", "ask When?\nreply {result}\n");
    for terminal in ["xterm", "dumb"] {
        let (spawn, screen) = world.command(["spawn", "asks.md"]).with("TERM", terminal).start_on_screen(80, 24);
        asks(&screen, "When?");
        world.answer_to("When?", "theirs");
        let ended = spawn.ends();
        ended.succeeds();
        let left = screen.text();
        assert!(left.contains(" has been answered") && left.contains(": theirs\n"), "{left}");
        assert!(left.trim_end().ends_with("\ntheirs"), "{left}");
    }
    // While they type, it is noticed when they send it.
    let (spawn, screen) = on_screen(&world, &["spawn", "asks.md"], 80);
    asks(&screen, "When?");
    spawn.types("mi");
    shows(&screen, "> mi");
    world.answer_to("When?", "theirs");
    spawn.types("ne\r");
    spawn.ends().succeeds();
    says(&screen, "theirs; yours was not recorded");
    assert_eq!(answered(&world), ["theirs"; 3]);
}

#[test]
fn a_question_that_expires_ends_the_prompt() {
    let world = World::with_hooks();
    world.file("asks.md", "run agent-cli ask 'When?' --default never --expires 3s\nreply {result}\n");
    let (spawn, screen) = on_screen(&world, &["spawn", "asks.md"], 80);
    says(&screen, "When?");
    spawn.ends().succeeds();
    let left = screen.text();
    assert!(left.contains(" has expired\n") && left.contains("(This is the default"), "{left}");
}

#[test]
fn an_answer_in_a_file_ends_the_prompt() {
    let world = World::with_hooks();
    world.file("q.md", "When?\n\nA:\n");
    world.file("asks.md", "run agent-cli ask --file q.md\nreply {result}\n");
    let (spawn, screen) = on_screen(&world, &["spawn", "asks.md"], 80);
    shows(&screen, "help\n>");
    world.file("q.md", "When?\n\nA: Jan 1st\n---\n");
    spawn.ends().succeeds();
    assert!(screen.text().trim_end().ends_with("\nJan 1st"), "{}", screen.text());
}

#[test]
fn a_pasted_megabyte_is_one_answer() {
    let world = World::new();
    asking(&world, "What?");
    let text: String = (0..16_384).map(|line| format!("{line:063}\n")).collect();
    let (resume, screen) = on_screen(&world, &["resume", "last"], 80);
    asks(&screen, "What?");
    resume.types(format!("\u{1b}[200~{text}end\u{1b}[201~\r"));
    resume.ends().succeeds();
    assert_eq!(answered(&world), [format!("{text}end")]);
}

#[test]
fn what_agents_ask_commands_no_terminal() {
    let hostile = "x \u{1b}[31mred\u{1b}]0;t\u{7}\u{8}\u{9b}2J\u{7f}\u{202e}x\u{2066}y\u{200b}z\u{feff}";
    let world = World::new();
    let id = asking(&world, "What?");
    let option = json!({"key": hostile, "description": hostile});
    let form = json!({"question": hostile, "header": hostile, "context": hostile, "multiple": true, "free_text": true,
        "default": hostile, "options": [option]});
    let place = "UPDATE requests SET detail = ?1";
    world.database().execute(place, [json!({"ask": form}).to_string()]).expect("it can be written");
    world.database().execute("UPDATE frames SET title = ?1", [hostile]).expect("it can be written");
    let resume = world.command(["resume", &id]).with("TERM", "dumb").with("NO_COLOR", "1");
    let (resume, screen) = resume.start_on_screen(80, 50);
    shows(&screen, "help\n>");
    resume.types("\n");
    let ended = resume.ends();
    assert_eq!(answered(&world), [hostile]);
    let found = ended
        .stdout
        .chars()
        .find(|c| *c != '\n' && *c != '\r' && (c.is_control() || "\u{202e}\u{2066}\u{200b}\u{feff}".contains(*c)));
    assert_eq!(found, None, "{ended:?}");
}

#[test]
fn one_prompt_for_a_chain_an_agent_or_a_question() {
    for command in ["inbox", "answer"] {
        let world = World::with_hooks();
        world.file("asks.md", "ask When?\nask Where?\nreply {result}\n");
        asking(&world, "other?");
        world.file("asks.md", "ask When?\nask Where?\nreply {results}\n");
        let id = world.run(&["spawn", "asks.md", "--name", "mine"]).started();
        let question = world.questions().into_iter().find(|(asked, _)| asked == "When?").expect("it is open").1;
        for name in [&*id, "mine", "last", &question] {
            let (prompt, screen) = on_screen(&world, &[command, name], 80);
            asks(&screen, "When?");
            assert!(screen.text().contains("(1 of 1)"), "{}", screen.text());
            prompt.types("\r");
            says(&screen, ":text TEXT");
            shows(&screen, "help\n>");
            prompt.types(":q\r");
            prompt.ends().succeeds();
            assert!(screen.text().contains("0 answers recorded, 1 question left open"), "{}", screen.text());
        }
        // It continues the chain as `resume` does.
        let (prompt, screen) = on_screen(&world, &[command, "mine"], 80);
        asks(&screen, "When?");
        prompt.types("now\r");
        shows(&screen, "[Y/n]");
        prompt.types("\r");
        asks(&screen, "Where?");
        prompt.types("here\r");
        prompt.ends().succeeds();
        assert_eq!(answered(&world), ["now", "here"]);
        world.command([command, "mine"]).with("TERM", "xterm").on_terminal(80).exits_with(3);
        let (late, screen) = on_screen(&world, &[command, &question], 80);
        late.ends().succeeds();
        assert!(screen.text().contains(" has been answered") && screen.text().contains(": now\n"), "{}", screen.text());
        world.command([command, "nowhere"]).with("TERM", "xterm").on_terminal(80).exits_with(3);
    }
    let world = World::new();
    asking(&world, "When?");
    world.answer("now");
    let (prompt, screen) = on_screen(&world, &["answer", "last", "--replace"], 80);
    asks(&screen, "When?");
    prompt.types("later on\r");
    shows(
        &screen,
        "answered: later on; the earlier answer was replaced\n1 answer recorded\ncontinue the chain now? [Y/n]",
    );
    prompt.types("n\r");
    prompt.ends().succeeds();
    assert_eq!(answered(&world), ["later on"]);
}

#[test]
fn a_chain_that_is_paused_or_removed_meanwhile_is_left_alone() {
    let world = World::new();
    world.file("asks.md", "ask When?\nreply {result}\n");
    let (spawn, screen) = on_screen(&world, &["spawn", "asks.md"], 80);
    asks(&screen, "When?");
    world.run(&["pause", "last"]).succeeds();
    spawn.types("now\r");
    spawn.ends().succeeds();
    says(&screen, "answered: now");
    says(&screen, "paused by a person");
    assert_eq!(world.run(&["ls", "--json"]).json()[0]["status"], "paused");
    world.run(&["resume", "last"]).prints("now");
    let (spawn, screen) = on_screen(&world, &["spawn", "asks.md"], 80);
    asks(&screen, "When?");
    world.run(&["rm", "last", "--yes"]).succeeds();
    spawn.ends().exits_with(3);
    says(&screen, "error: ");
    let left = world.named(&screen.text());
    assert_eq!(left.matches("has been removed").count(), 1, "{left}");
    assert!(!left.contains("nothing is lost"), "{left}");
}

#[test]
fn ctrl_z_stops_a_prompt_and_what_was_typed_is_there_again() {
    let world = World::new();
    world.file("asks.md", "ask When?\nreply {result}\n");
    let spawn = world.command(["spawn", "asks.md"]).with("TERM", "xterm").in_its_own_group();
    let (spawn, screen) = spawn.start_on_screen(80, 50);
    asks(&screen, "When?");
    spawn.types("Jan");
    shows(&screen, "> Jan");
    spawn.types("\u{1a}");
    spawn.is_stopped();
    screen.shows("\r\n$ fg\r\n");
    spawn.signal(Signal::CONT);
    wait_until("the prompt is there again", || screen.text().trim_end().ends_with("$ fg\n> Jan"));
    spawn.types(" 1st\r");
    spawn.ends().succeeds();
    assert_eq!(answered(&world), ["Jan 1st"]);
}

#[test]
fn a_watch_leaves_a_chain_to_the_command_that_runs_it() {
    let world = World::with_hooks();
    world.file("asks.md", "ask When?\nask And why?\nreply done\n");
    world.file("fails.md", "fail API Error: 400 boom\n");
    let watch = world.command(["watch", "--lines"]).start();
    let (spawn, screen) = on_screen(&world, &["spawn", "asks.md"], 80);
    asks(&screen, "When?");
    spawn.types("now\r");
    asks(&screen, "And why?");
    spawn.types("so\r");
    spawn.ends().succeeds();
    says(&screen, "asks.md: done");
    let answered = world.spawn_paused("asks.md");
    for answer in ["now", "so"] {
        let resumed = world.run(&["answer", &answered, answer, "--resume"]);
        assert!(!resumed.stderr.contains("another process"), "{resumed}");
    }
    world.run(&["resume", &answered, "--prompt", "once more"]).prints("done");
    world.run(&["spawn", "fails.md"]).exits_with(1);
    let retried = world.run(&["resume", "last"]);
    assert!(retried.stderr.contains("API Error: 400 boom"), "{retried}");
    watch.signal(Signal::INT);
    assert_eq!(watch.ends().stdout, "");
}
