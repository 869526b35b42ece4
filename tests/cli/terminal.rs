//! Output on a terminal: nothing that the terminal would obey, and nothing wider than it.

use crate::gate::wait_until;
use crate::world::World;

/// Characters that control a terminal, or reorder or hide adjacent characters.
const HOSTILE: &str =
    "\u{1b}[31mred\u{1b}]0;t\u{7}\u{8}\u{9b}2J\u{7f}\u{202e}x\u{2066}y\u{200b}z\u{feff}\u{ad}\u{e0041}\u{2028}.";

/// A text that an agent can be made to say.
fn hostile(name: &str) -> String {
    format!("{name} {HOSTILE}")
}

/// Whether `text` would be shown as it is.
#[track_caller]
fn is_harmless(text: &str, command: &[&str]) {
    let found = text.chars().find(|c| *c != '\n' && (c.is_control() || HOSTILE.contains(*c) && !c.is_ascii()));
    assert_eq!(found, None, "{command:?} printed {text:?}");
}

/// Puts `text` into every place of every record that a person or an agent can write to.
fn planted(world: &World, text: &str) {
    let database = world.database();
    let choice = serde_json::json!({"key": text, "description": text});
    let chosen = serde_json::json!({
        "question": text, "header": text, "multiple": true, "free_text": true, "native": true, "options": [choice],
    });
    let plain = serde_json::json!({"question": text, "multiple": false, "free_text": true, "options": []});
    let input = serde_json::json!({"command": text, text: text, "file_path": text, "list": [text, {text: text}]});
    let kinds = [
        serde_json::json!({"ask": chosen}),
        serde_json::json!({"permission": {"tool": text, "input": input}}),
        serde_json::json!({"permission": {"tool": "Bash", "input": {"command": text, "description": text}}}),
        serde_json::json!({"permission": {"tool": "Write", "input": {"content": text, "file_path": text}}}),
        serde_json::json!({"permission": {"tool": "Edit", "input": {
            "old_string": text, "new_string": format!("{text}\n{text}"), "file_path": text, "replace_all": true,
        }}}),
        serde_json::json!({"ask": plain}),
    ];
    let mut ids = database.prepare("SELECT id FROM requests WHERE kind = 'ask' ORDER BY seq").expect("valid");
    let ids: Vec<rusqlite::types::Value> =
        ids.query_map([], |row| row.get(0)).expect("rows").collect::<Result<_, _>>().expect("ids");
    assert_eq!(ids.len(), kinds.len());
    for (id, kind) in ids.iter().zip(&kinds) {
        let sql = "UPDATE requests SET detail = ?1 WHERE id = ?2";
        database.execute(sql, (kind.to_string(), id)).expect("it can be written");
    }
    for sql in [
        "UPDATE frames SET title = ?1",
        "UPDATE frames SET state = json_set(state, '$.failed.failure.message', ?1) WHERE status = 'failed'",
        "UPDATE frames SET task = json_object('prompt', ?1) WHERE task LIKE '%prompt%'",
        "UPDATE frames SET launch = json_set(launch, '$.args', json_array(?1, ?1), '$.model', ?1)",
        "UPDATE frames SET trouble = json_set(trouble, '$.what', ?1) WHERE trouble IS NOT NULL",
        "UPDATE attempts SET message = ?1 WHERE message IS NOT NULL",
        "UPDATE replies SET reply = ?1",
        "UPDATE answers SET answer = ?1",
    ] {
        database.execute(sql, [text]).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

/// A world with chains in every state, whose records hold `text`.
fn world_with(text: &str) -> (World, Vec<String>) {
    let world = World::new();
    let asks = "ask a &\nask b &\nask c &\nask d &\nask e &\nask f &\nreply {results}\n";
    world.file("asks.md", asks);
    world.file("fails.md", format!("fail API Error: 400 {text}\n"));
    world.file("refused.md", format!("refuse {text}\n"));
    world.file("busy.md", format!("api 529 API Error: 529 {text}\n"));
    world.file("replies.md", format!("end {text}\n"));
    world.file("waits.md", format!("run agent-cli wait --command 'false {text}'\nreply ok\n"));
    for file in ["asks.md", "fails.md", "refused.md", "busy.md", "replies.md", "waits.md"] {
        world.run(&["spawn", file]);
    }
    world.run(&["spawn", "--prompt", &format!("reply {text}")]);
    let chains = world.run(&["ls", "-ap", "--json"]).json();
    let ids = chains.as_array().unwrap().iter().map(|chain| chain["id"].as_str().unwrap().to_owned()).collect();
    planted(&world, text);
    (world, ids)
}

/// Every command that shows records, with each of the ids.
fn commands<'a>(world: &World, ids: &'a [String]) -> Vec<Vec<&'a str>> {
    let mut all: Vec<Vec<&str>> = [
        &["ls"][..],
        &["tree"],
        &["questions"],
        &["questions", "--all"],
        &["fsck"],
        &["gc", "--dry-run", "--failed", "--older-than", "0s"],
        &["doctor"],
        &["ls", "-ap", "--json"],
        &["tree", "--json"],
        &["questions", "--all", "--json"],
    ]
    .map(<[_]>::to_vec)
    .to_vec();
    assert!(world.state().exists());
    for id in ids {
        for command in ["show", "tree", "logs", "questions", "resume"] {
            all.extend([vec![command, id], vec![command, id, "--json"]]);
        }
    }
    all
}

#[test]
fn no_record_commands_a_terminal() {
    let (world, ids) = world_with(&hostile("x"));
    let asked = world.run(&["questions", "--json"]).json();
    let plain = asked.as_array().unwrap().iter().find(|asked| asked["kind"] == "question").expect("there is one");
    world.run(&["answer", plain["id"].as_str().unwrap(), &hostile("answer")]).succeeds();
    for command in commands(&world, &ids) {
        let piped = world.run(&command);
        is_harmless(&piped.stderr, &command);
        if !piped.stdout.contains("x \u{1b}[31m") {
            is_harmless(&piped.stdout, &command);
        }
        // What it asks is tested with its prompt.
        let no_ask = (command[0] == "resume").then_some("--no-ask");
        is_harmless(&world.command(command.iter().copied().chain(no_ask)).on_terminal(80).stdout, &command);
    }
}

#[test]
fn no_argument_commands_a_terminal() {
    let world = World::new();
    world.file("ok.md", "reply ok\n");
    let text = hostile("x");
    for command in [
        &[&*text][..],
        &["resume", &text],
        &["show", &text],
        &["logs", &text],
        &["tree", &text, &text],
        &["spawn", &text],
        &["spawn", "ok.md", "--model"],
        &["spawn", "ok.md", "--cwd", &text],
        &["spawn", "ok.md", &format!("--{text}")],
        &["spawn", "ok.md", "--max-depth", &text],
        &["spawn", "ok.md", "--on-permission", &text],
        &["spawn", "ok.md", "--claude", &text],
        &["spawn", "ok.md", "--fork-from", &text],
        &["answer", &text, &text],
        &["gc", "--older-than", &text],
        &["import", &text],
        &["export", &text],
        &["doctor", "--cwd", &text],
        &["completions", &text],
        &["ask", &text],
        &["wait", "--for", &text],
        &["wait", "--until", &text],
    ] {
        is_harmless(&world.run(command).stderr, command);
        is_harmless(&world.command(command).on_terminal(80).stdout, command);
    }
}

#[test]
fn a_reply_is_exact_unless_it_is_for_a_terminal() {
    let world = World::new();
    world.file("root.md", format!("end {HOSTILE}\n"));
    let spawned = world.run(&["spawn", "root.md"]);
    spawned.prints(HOSTILE);
    let id = world.log().starts[0].session().to_owned();
    let shown = world.command(["resume", &id]).on_terminal(80);
    insta::assert_snapshot!(shown, @r"
    \u{1b}[31mred\u{1b}]0;t\u{7}\u{8}\u{9b}2J\u{7f}\u{202e}x\u{2066}y\u{200b}z\u{feff}\u{ad}\u{e0041}\u{2028}.
    --- exit status: 0
    ");
}

#[test]
fn no_text_is_too_long_for_a_command() {
    let (world, ids) = world_with("short");
    let mut lists = vec![vec!["ls", "-apq"], vec!["tree"], vec!["questions"], vec!["questions", "--all"]];
    lists.extend(ids.iter().map(|id| vec!["show", id]));
    for (kind, columns) in [("a", 80), ("漢", 40), ("e\u{301}", 1), ("🙂\n", 80)] {
        planted(&world, &kind.repeat(20_000));
        for command in &lists {
            let outcome = world.command(command).on_terminal(columns);
            outcome.succeeds();
            let widest = outcome.stdout.lines().map(|line| line.chars().count()).max();
            // Text that is shown in full below the rows of `show` has separate lines, which wrap.
            let most = if command[0] == "show" { columns.max(120) } else { columns } * 4 + 1;
            assert!(widest <= Some(usize::from(most)), "{command:?} at {columns}: {widest:?}");
        }
    }
    planted(&world, &"a".repeat(20_000));
    for command in commands(&world, &ids).iter().filter(|command| command[0] != "resume") {
        assert_ne!(world.run(command).code(), Some(101), "{command:?}");
    }
}

#[test]
fn a_terminal_that_is_not_in_utf_8_shows_lines_in_ascii() {
    let world = World::new();
    let question = "Which of the many possible dates, all of them in the far future?";
    world.file("inner.md", format!("ask {question}\nreply {{result}}\n"));
    world.file("root.md", "spawn inner.md\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    let shown = |command: &[&str], language: &str| {
        world.command(command).with("LANG", language).on_terminal(40).succeeds().stdout.clone()
    };
    let tree = ["tree", &id];
    assert!(shown(&tree, "C").contains("`- ") && shown(&tree, "C.UTF-8").contains("└─ "));
    for command in [&tree[..], &["ls"], &["show", &id], &["questions"], &["logs", &id], &["history"]] {
        let shown = shown(command, "C");
        assert!(shown.is_ascii(), "{command:?}: {shown}");
    }
    let watch = world.command(["watch"]).with("TERM", "xterm").with("LC_ALL", "POSIX");
    let (dashboard, screen) = watch.start_on_screen(40, 20);
    wait_until("the question is shown", || screen.text().contains("Which of"));
    assert!(screen.text().is_ascii(), "{}", screen.text());
    dashboard.types("q");
    dashboard.ends().succeeds();
    // Programs read this.
    world.file("third.md", "ask Why…?\n");
    world.spawn_paused("third.md");
    assert!(shown(&["questions", "--json"], "C").contains("Why…?"));
}
