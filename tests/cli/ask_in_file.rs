//! Questions in files, which a person answers by editing them.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use rustix::process::Signal;

use crate::gate::wait_until;
use crate::world::World;

/// A chain that waits for an answer in `q.md`, which its agent wrote.
fn asked(options: &str) -> (World, String, PathBuf) {
    let world = World::with_hooks();
    world.file("ins.md", format!("run agent-cli ask --file q.md{options}\nreply {{result}}\n"));
    let file = world.file("q.md", "When is\nyour birthday?\n\nA: \n");
    let id = world.spawn_paused("ins.md");
    (world, id, file)
}

fn why(world: &World, id: &str) -> String {
    let shown = world.run(&["questions", id]);
    let line = shown.succeeds().stdout.lines().find(|line| line.contains("q.md")).map(str::to_owned);
    line.unwrap_or_else(|| panic!("it does not name the file: {shown}"))
}

#[test]
fn what_is_written_below_the_question_is_the_answer() {
    let (world, id, file) = asked("");
    assert_eq!(world.questions()[0].0, "When is\nyour birthday?");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    world.file("q.md", "When is\nyour birthday?\n\nA: Jan 1st,\n\n  or so\n");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    assert!(why(&world, &id).contains(" has an answer, which counts in "), "{}", why(&world, &id));
    // No program makes an answer count earlier, or later.
    for at in [SystemTime::UNIX_EPOCH, SystemTime::now() + Duration::from_secs(86_400)] {
        File::options().write(true).open(&file).and_then(|file| file.set_modified(at)).expect("it can be changed");
        assert!(world.run(&["resume", &id]).stderr.contains(" s unless the file changes)"), "{}", why(&world, &id));
    }
    world.file("q.md", "When is\nyour birthday?\n\nA: Jan 1st,\n\n  or so\n---\n");
    world.run(&["resume", &id]).prints("Jan 1st,\n\n  or so");
    assert_eq!(world.starts(), 2);
    let by = world.run(&["questions", &id, "--all", "--json"]).json()[0]["answered_by"].clone();
    assert_eq!(by["file"]["path"].as_str(), file.to_str());
    assert!(by["file"]["changed"].is_string() && by["user"].is_string() && by["terminal"].is_null(), "{by}");
    let shown = world.run(&["show", &id]);
    assert!(shown.stdout.contains(&format!(" in the file {}", file.display())), "{shown}");
    world.run(&["answer", &id, "too late"]).exits_with(3);
}

#[test]
fn a_closing_line_makes_it_count_at_once() {
    let (world, id, _) = asked("");
    let watch = world.command(["watch"]).start();
    wait_until("it watches", || !world.run(&["ls", "--json"]).stdout.is_empty());
    world.file("q.md", "When is\nyour birthday?\n\nA: Jan 1st\n---\n");
    wait_until("it is done", || world.run(&["show", &id, "--json"]).json()["status"] == "done");
    watch.signal(Signal::TERM);
    assert!(watch.ends().succeeds().stdout.ends_with(" done: Jan 1st\n"));

    let (world, id, _) = asked("");
    assert_eq!(world.run(&["resume", "--all"]).succeeds().stdout, "");
    world.file("q.md", "When is\nyour birthday?\n\nA: Jan 1st\n---\n");
    world.run(&["resume", "--all"]).succeeds();
    world.run(&["resume", &id]).prints("Jan 1st");
}

#[test]
fn whatever_is_there_it_is_said_why_it_is_no_answer() {
    let (world, id, file) = asked("");
    let other = world.file("other.md", "When is\nyour birthday?\nA: no\n---\n");
    let nowhere = world.project().join("nowhere");
    let makes: [(&str, &dyn Fn()); 8] = [
        ("does not exist", &|| ()),
        ("is a directory", &|| fs::create_dir(&file).expect("it can be made")),
        ("is a link", &|| symlink(&nowhere, &file).expect("it can be made")),
        ("is a link", &|| symlink(&other, &file).expect("it can be made")),
        ("is not UTF-8", &|| drop(world.file("q.md", b"When is\nyour birthday?\nA: \xff\n---\n"))),
        ("is larger than 1 MiB", &|| {
            File::create(&file).and_then(|file| file.set_len(1 << 30)).expect("it can be made");
        }),
        ("no longer has the question", &|| drop(world.file("q.md", "Shall I delete everything?\nA: no\n---\n"))),
        ("has no line that begins with", &|| drop(world.file("q.md", "When is\nyour birthday?\n"))),
    ];
    for (expected, make) in makes {
        let _ = fs::remove_dir(&file).or_else(|_| fs::remove_file(&file));
        make();
        world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
        assert_eq!(world.run(&["resume", "--all"]).succeeds().stdout, "");
        let said = why(&world, &id);
        assert!(said.contains(expected), "{said}");
    }
    world.run(&["answer", &id, "Jan 1st"]).succeeds();
    world.run(&["resume", &id]).prints("Jan 1st");
}

#[test]
fn an_answer_in_a_file_is_checked_like_any_other() {
    let (world, id, _) = asked(" --option spring --option autumn");
    let answer = |text: &str| drop(world.file("q.md", format!("When is\nyour birthday?\n\nA: {text}\n---\n")));
    answer("summer");
    let resumed = world.run(&["resume", &id]);
    resumed.prints("SGN_PEND_ONGOING");
    let said = "q.md has an answer that does not count: \"summer\" is not one of the options: choose one of 1. spring, 2. autumn";
    assert!(resumed.stderr.contains(said), "{resumed}");
    let hint = format!("hint: correct {}, or:\nhint: agent-cli answer ", world.project().join("q.md").display());
    assert!(resumed.stderr.contains(&hint), "{resumed}");
    for command in [&["questions"][..], &["questions", &id], &["show", &id]] {
        assert!(world.run(command).stdout.contains(said), "{command:?}");
    }
    let shown = world.run(&["questions", "--json"]).json()[0]["answer_file"].clone();
    assert_eq!(shown["state"], "refused", "{shown}");
    answer("2");
    world.run(&["resume", &id]).prints("autumn");
}

#[test]
fn an_answer_that_does_not_count_is_mentioned_once_by_those_who_look_at_all_chains() {
    let (world, id, file) = asked(" --option spring --option autumn");
    let answer = |text: &str| drop(world.file("q.md", format!("When is\nyour birthday?\n\nA: {text}\n---\n")));
    answer("summer");
    let said = |why: &str| {
        let (id, path) = (&id[..8], file.display());
        format!(
            "warning: {id}: {path} has an answer that does not count: \"{why}\" is not one of the options: choose one of 1. spring, \
             2. autumn\nhint: correct the file, or answer the question: agent-cli questions {id}\n"
        )
    };
    let looked = || world.run(&["resume", "--all"]).succeeds().stderr.clone();
    assert_eq!([looked(), looked()], [said("summer"), String::new()]);
    answer("winter");
    assert_eq!([looked(), looked()], [said("winter"), String::new()]);
    let (watch, screen) = world.command(["watch"]).start_on_screen(250, 24);
    wait_until("it is said", || screen.text().contains("winter"));
    answer("summer");
    wait_until("the other is said", || screen.text().contains("summer"));
    answer("2");
    wait_until("it is done", || screen.text().contains(" done: autumn"));
    watch.signal(Signal::TERM);
    watch.ends().succeeds();
    let shown = screen.text();
    assert_eq!(["winter", "summer"].map(|wrong| shown.matches(wrong).count()), [1, 1], "{shown}");
}

#[test]
fn an_agent_does_not_answer_its_own_question_in_its_turn() {
    let world = World::new();
    let text = "printf 'When?\\nA: mine\\n---\\n' > q.md";
    world.file("ins.md", format!("run agent-cli ask --file q.md &\nrun {text}\nreply {{results}}\n"));
    world.file("q.md", "When?\n");
    let id = world.spawn_paused("ins.md");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    let early = "has an answer from before the end of its agent's turn, which does not count";
    assert!(why(&world, &id).contains(early), "{}", why(&world, &id));
    // The permissions of the file change, and with them the relevant time; then it is saved once more.
    let file = world.project().join("q.md");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("it is theirs");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    assert!(why(&world, &id).contains(early), "{}", why(&world, &id));
    world.file("q.md", fs::read(&file).expect("it is a file"));
    assert_eq!(world.run(&["resume", "--all"]).succeeds().stdout, "");
    world.file("q.md", "When?\nA: theirs\n---\n");
    assert!(world.run(&["resume", &id]).succeeds().stdout.contains("theirs"));

    let world = World::new();
    world.file("ins.md", "run agent-cli ask --file q.md\nreply {result}\n");
    world.file("q.md", "When?\nA: mine\n");
    let outcome = world.run(&["spawn", "ins.md"]);
    assert!(outcome.stdout.contains("it already has an answer"), "{outcome}");
}

#[test]
fn a_new_file_is_written_where_the_agent_may_write_and_replaces_none() {
    let ask = |name: &str, mode: &str| {
        let world = World::with_hooks();
        world.file(
            "ins.md",
            format!("run agent-cli ask --file {name} 'When?' --option now --option later\nreply {{result}}\n"),
        );
        world.file("there.md", "mine");
        let outcome = world.run(&["spawn", "ins.md", "--permission-mode", mode]);
        (world, outcome)
    };
    let (world, outcome) = ask("q.md", "acceptEdits");
    let id = outcome.started();
    let file = fs::read_to_string(world.project().join("q.md")).expect("it was written");
    insta::assert_snapshot!(file, @"
    When?

    Answer with one of these:

    - now
    - later

    A:
    ");
    world.file("q.md", file.replace("A:", "A: now\n---"));
    world.run(&["resume", &id]).prints("now");
    for (name, mode, why) in [
        ("q.md", "default", "you may not write it without a permission"),
        (".claude/q.md", "acceptEdits", "No such file"),
        (".q.md", "acceptEdits", "you may not write it without a permission"),
        ("../q.md", "acceptEdits", "it is outside your directory"),
        ("q.sh", "acceptEdits", "has to end with .md"),
        ("there.md", "acceptEdits", "it exists already"),
    ] {
        let (world, outcome) = ask(name, mode);
        assert!(outcome.stdout.contains(why), "{name}: {outcome}");
        assert!(!world.project().join("q.md").exists() && !world.project().join(".q.md").exists());
        assert_eq!(fs::read_to_string(world.project().join("there.md")).expect("it is there"), "mine");
    }
    let (_, outcome) = ask("/etc/passwd", "default");
    assert!(outcome.stdout.contains("it is outside your directory"), "{outcome}");
}

#[test]
fn an_agent_does_not_prepare_an_answer_in_the_context_of_its_question() {
    let world = World::with_hooks();
    world.file("context", "A: yes\n---\n");
    world.file("ins.md", "run agent-cli ask --file q.md 'Deploy?' --context @context\nreply {result}\n");
    let outcome = world.run(&["spawn", "ins.md", "--permission-mode", "acceptEdits"]);
    assert!(outcome.stdout.contains("a line of its context or options begins with `A:`"), "{outcome}");
    assert!(!world.project().join("q.md").exists());
    // A question may contain such lines: they are a part of it, whoever saves the file.
    let world = World::with_hooks();
    world.file("q.md", "Deploy?\nA: yes\n---\n\nA:\n");
    world.file("ins.md", "run agent-cli ask --file q.md\nreply {result}\n");
    let id = world.spawn_paused("ins.md");
    world.file("q.md", "Deploy?\nA: yes\n---\n\nA:\n");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    world.file("q.md", "Deploy?\nA: no\n---\n\nA:\n");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    assert!(why(&world, &id).contains("no longer has the question"), "{}", why(&world, &id));
    world.file("q.md", "Deploy?\nA: yes\n---\n\nA: no\n---\n");
    world.run(&["resume", &id]).prints("no");
}

#[test]
fn whatever_an_editor_does_to_the_file_the_answer_is_what_was_typed() {
    // One with a byte order mark and its own line ends; one that renames a new file over the old one.
    let (world, id, _) = asked("");
    world.file("q.md", "\u{feff}When is\r\nyour birthday?\r\n\r\nA:\r\n\r\n  - Jan 1st\r\n  - Feb 2nd\r\n---\r\n");
    world.run(&["resume", &id]).prints("  - Jan 1st\r\n  - Feb 2nd");

    let (world, id, file) = asked("");
    world.file(".q.md.swp", "x");
    fs::rename(&file, world.project().join("q.md~")).expect("it can be moved");
    world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    for half in ["", "When is\nyour", "When is\nyour birthday?\n\nA: Jan"] {
        world.file("q.md", half);
        world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    }
    let new = world.file("q.md.new", "When is\nyour birthday?\n\nA: Jan 1st\n---\n");
    fs::rename(new, &file).expect("it can be moved");
    world.run(&["resume", &id]).prints("Jan 1st");
}

#[test]
fn a_path_with_anything_in_it_is_shown_escaped() {
    let world = World::with_hooks();
    let name = "q \u{1b}[31m\u{202e}.md";
    world.file("ins.md", format!("run agent-cli ask --file '{name}'\nreply {{result}}\n"));
    world.file(name, "When?\n");
    let id = world.spawn_paused("ins.md");
    world.file(name, "What?\nA: now\n");
    for command in [&["resume", &id][..], &["questions"], &["questions", &id], &["show", &id]] {
        let shown = world.run(command);
        let text = format!("{}{}", shown.stdout, shown.stderr);
        assert!(text.contains("no longer has the question"), "{shown}");
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{shown}");
    }
}

#[test]
fn a_question_in_a_file_expires_and_takes_no_answer_afterwards() {
    let world = World::with_hooks();
    world.file("ins.md", "run agent-cli ask --file q.md --default never\nreply {result}\n");
    let answered = "When?\n\nA: now\n---\n";
    for in_time in [true, false] {
        world.file("q.md", "When?\n");
        let spawn = world.command(["spawn", "ins.md"]).with("AGENT_CLI_QUESTIONS_EXPIRE", "3d");
        let id = spawn.run().started();
        let listed = world.run(&["questions", &id]);
        assert!(listed.stdout.contains("(in 3 d)"), "{listed}");
        world.questions_expire();
        if in_time {
            // The expiry was not recorded yet.
            world.file("q.md", answered);
            world.run(&["resume", &id]).prints("now");
        } else {
            let outcome = world.run(&["resume", &id]);
            outcome.prints("never\n\n(This is the default: no answer until 2026-01-01T00:00:00Z.)");
            world.file("q.md", answered);
            assert!(world.run(&["resume", &id]).stdout.starts_with("never"));
        }
    }
}
