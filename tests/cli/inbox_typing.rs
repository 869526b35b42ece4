//! Text that a person types or pastes in the inbox reaches the agent byte for byte, or not at all.

use crate::gate::wait_until;
use crate::inbox::{answered, asking, opened, shows};
use crate::world::World;

/// The terminals: one whose cursor can be moved, and one that edits lines itself.
const TERMINALS: [(&str, &str); 2] = [("xterm", "\r"), ("dumb", "\n")];

#[test]
fn a_tab_is_a_part_of_the_answer() {
    for (terminal, enter) in TERMINALS {
        let world = World::new();
        let root = asking(&world, "Which columns?");
        let (inbox, screen) = world.command(["inbox"]).with("TERM", terminal).start_on_screen(80, 24);
        shows(&screen, "help\n>");
        inbox.types(format!("\ta\t\tb{enter}"));
        shows(&screen, "[Y/n]");
        assert_eq!(answered(&world), ["\ta\t\tb"], "{terminal}");
        inbox.types(format!("n{enter}"));
        inbox.ends().succeeds();
        assert_eq!(world.run(&["resume", &root]).stdout, "\ta\t\tb\n");
    }
}

#[test]
fn a_paste_that_is_not_marked_as_one_is_not_an_answer() {
    let lines: String = (1..=200).map(|line| format!("this is the line {line} of many\r")).collect();
    for (terminal, enter) in TERMINALS {
        let world = World::new();
        asking(&world, "one?");
        asking(&world, "two?");
        let (inbox, screen) = world.command(["inbox"]).with("TERM", terminal).start_on_screen(80, 24);
        shows(&screen, "help\n>");
        inbox.types(lines.replace('\r', enter));
        shows(&screen, "several lines arrived at once, so nothing was sent: use :edit for them\n>");
        assert_eq!(answered(&world), [""; 0], "{terminal}");
        inbox.types(format!("mine{enter}"));
        wait_until("it is recorded", || answered(&world) == ["mine"]);
        shows(&screen, "help\n>");
        inbox.types(format!(":q{enter}"));
        shows(&screen, "[Y/n]");
        inbox.types(format!("n{enter}"));
        inbox.ends().succeeds();
    }
}

#[test]
fn a_marked_paste_of_many_lines_is_one_answer() {
    let world = World::new();
    asking(&world, "one?");
    let lines: String = (1..=200).map(|line| format!("\tthis is the line {line} of many\r")).collect();
    let (inbox, screen) = opened(&world, &[], 80, 24);
    shows(&screen, "help\n>");
    inbox.types(format!("\u{1b}[200~{lines}\u{1b}[201~"));
    shows(&screen, "line 200 of many");
    inbox.types("\r");
    shows(&screen, "[Y/n]");
    inbox.types("n\r");
    inbox.ends().succeeds();
    assert_eq!(answered(&world), [lines.replace('\r', "\n")]);
}

#[test]
fn what_is_no_text_is_not_an_answer() {
    for (terminal, enter) in TERMINALS {
        let world = World::new();
        asking(&world, "When?");
        let (inbox, screen) = world.command(["inbox"]).with("TERM", terminal).start_on_screen(80, 24);
        shows(&screen, "help\n>");
        inbox.types([b"J\xe4nner", enter.as_bytes()].concat());
        shows(&screen, "the input is not UTF-8, so it was not sent\n>");
        inbox.types(format!("Jan{enter}"));
        shows(&screen, "[Y/n]");
        inbox.types(format!("n{enter}"));
        inbox.ends().succeeds();
        assert_eq!(answered(&world), ["Jan"]);
    }
}

#[test]
fn a_line_that_the_terminal_cuts_is_not_an_answer() {
    let long = "x".repeat(5000);
    let world = World::new();
    asking(&world, "When?");
    let (inbox, screen) = world.command(["inbox"]).with("TERM", "dumb").start_on_screen(80, 24);
    shows(&screen, "help\n>");
    inbox.types(format!("{long}\n"));
    shows(&screen, "nothing was sent: use :edit for it\n>");
    inbox.types("\u{4}");
    inbox.ends().succeeds();
    assert_eq!(answered(&world), [""; 0]);

    let (inbox, screen) = opened(&world, &[], 80, 100);
    shows(&screen, "help\n>");
    inbox.types(format!("{long}\r"));
    shows(&screen, "[Y/n]");
    inbox.types("n\r");
    inbox.ends().succeeds();
    assert_eq!(answered(&world), [long]);
}
