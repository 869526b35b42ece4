//! Every kind of question in the inbox: its text, and its answers.

use serde_json::json;

use crate::inbox::{answered, opened, shows};
use crate::pty::Screen;
use crate::world::World;

fn shown(world: &World, screen: &Screen) -> String {
    shows(screen, "help\n>");
    world.named(&screen.text())
}

/// Answers the question on the screen and leaves the inbox. Returns the reply of the chain's agent.
fn reply(world: &World, typed: &str, root: &str) -> String {
    let (inbox, screen) = opened(world, &[], 80, 40);
    shows(&screen, "help\n>");
    inbox.types(format!("{typed}\r"));
    shows(&screen, "[Y/n]");
    inbox.types("n\r");
    inbox.ends().succeeds();
    world.run(&["resume", root]).succeeds().stdout.clone()
}

#[test]
fn a_plan_is_shown_whole_and_allowed_in_a_mode() {
    let world = World::with_hooks();
    let plan = json!({"plan": "# Tidy up\n\n1. rm \u{1b}[2J\u{202e}old", "planFilePath": "/plans/p.md"});
    world.file("root.md", format!("call ExitPlanMode {plan}\nreply {{result}}\n"));
    let root = world.run(&["spawn", "root.md", "--permission-mode", "plan"]).started();
    let (inbox, screen) = opened(&world, &[], 80, 40);
    insta::assert_snapshot!(shown(&world, &screen), @r"

    (1 of 1) [ID2:8] of root.md in the chain [ID1:8], [TIME] ([AGE] ago)
    a plan, with which the agent wants to leave plan mode
      │  # Tidy up
      │
      │  1. rm \u{1b}[2J\u{202e}old
    then it continues in mode default
    or acceptEdits
    or auto
    or dontAsk
    allow, allow default|acceptEdits|auto|dontAsk, or deny and why
    or :edit :skip :back :quit, :? for help
    >
    ");
    inbox.types("allow bypassPermissions\r");
    shows(&screen, "a reason\n>");
    inbox.types(":q\r");
    inbox.ends().succeeds();
    assert_eq!(answered(&world), [""; 0]);
    let approved = reply(&world, "allow acceptEdits", &root);
    assert!(approved.starts_with("User has approved your plan."), "{approved}");
    assert!(world.log().starts[1].argv.contains(&"--permission-mode=acceptEdits".to_owned()));
}

#[test]
fn options_are_chosen_by_number_key_or_text() {
    let ask = "run agent-cli ask 'Which tests?' --option unit='fast ones' --option browser --multiple --free-text \
               --context 'All were green.' --default unit --expires 2100-01-01T00:00:00Z\nreply {result}\n";
    for (typed, got) in [("2, unit", "browser, unit"), ("none of them", "none of them"), (":text 1", "1")] {
        let world = World::with_hooks();
        world.file("root.md", ask);
        let root = world.spawn_paused("root.md");
        if typed == ":text 1" {
            let (inbox, screen) = opened(&world, &[], 40, 40);
            let text = shown(&world, &screen);
            let (form, _) = text.split_once("expires ").expect("it expires");
            insta::assert_snapshot!(form, @r"

            (1 of 1) [ID2:8] of root.md in the
            chain [ID1:8], [TIME] ([AGE] ago)
              │  Which tests?
            context:
              │  All were green.
              1. unit
              │  fast ones
              2. browser
              (choose one or more, or answer with
              any text)
            default: unit
            ");
            inbox.types("3\r");
            shows(&screen, "browser\n>");
            inbox.types(":q\r");
            inbox.ends().succeeds();
        }
        assert_eq!(reply(&world, typed, &root), format!("{got}\n"));
    }
}

#[test]
fn a_written_file_is_shown_as_a_diff() {
    for (typed, recorded) in [("y", "allow"), ("deny not this file", "deny not this file")] {
        let world = World::new();
        world.file("root.md", "ask May I?\nreply {result}\n");
        world.spawn_paused("root.md");
        world.file("notes.txt", "one\ntwo\nthree\n");
        let input = json!({"file_path": "notes.txt", "content": "one\ntwo and\u{1b}[31m a half\nthree\n"});
        let kind = json!({"permission": {"tool": "Write", "input": input}});
        let database = world.database();
        database.execute("UPDATE requests SET detail = ?1", [kind.to_string()]).expect("it can be written");
        let (inbox, screen) = opened(&world, &[], 40, 40);
        insta::allow_duplicates! {
            insta::assert_snapshot!(shown(&world, &screen), @r"

            (1 of 1) [ID2:8] of root.md in the
            chain [ID1:8], [TIME] ([AGE] ago)
            Write
              file_path:
              │  notes.txt
              change of the file as it is now:
              1 │  one
              2 │ -two
              2 │ +two and\u{1b}[31m a half
              3 │  three
            where it runs:
              │  [PROJECT]
            allow, or deny and why
            or :edit :skip :back :quit, :? for help
            >
            ");
        }
        inbox.types(format!("{typed}\r"));
        shows(&screen, "[Y/n]");
        inbox.types("n\r");
        inbox.ends().succeeds();
        assert_eq!(answered(&world), [recorded]);
    }
}
