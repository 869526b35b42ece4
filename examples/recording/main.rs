//! What terminals of 80 and 40 columns show of a chain on the real Claude Code, whose model is a script on this machine; and the
//! animated picture of the README.
//!
//! ```sh
//! cargo run --example recording > docs/recording.md
//! cargo run --example recording -- --svg > docs/recording.svg
//! ```

mod animation;
#[path = "../../tests/support/pty.rs"]
mod pty;
#[path = "../demo/stage.rs"]
#[allow(dead_code, reason = "the demo shows more")]
mod stage;
#[path = "../../tests/support/mod.rs"]
mod support;
mod svg;

use std::process::{Child, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pty::Screen;
use stage::Stage;

/// Each tool runs until its file exists.
const FILES: [(&str, &str); 6] = [
    ("CLAUDE.md", include_str!("../../CLAUDE.md.template")),
    ("lead.md", "spawn tests.md docs.md\nreply {results}\n"),
    ("tests.md", "run sh run-tests\nreply all tests pass\n"),
    ("docs.md", "run sh build-docs\nreply the docs are built\n"),
    ("run-tests", "until test -e .tested; do sleep 0.1; done; echo 42 tests passed\n"),
    ("build-docs", "until test -e .built; do sleep 0.1; done; echo 12 pages\n"),
];

const BEGIN: &str = "# A recording

Made by `cargo run --example recording > docs/recording.md` on the real Claude Code; the model is a script. `lead.md` starts two agents.
A person follows them, stops one, and the chain goes on.
";

fn main() {
    if std::env::args().nth(1).is_some_and(|option| option == "--svg") {
        return animation::print();
    }
    println!("{BEGIN}");
    for columns in [80, 40] {
        println!("## {columns} columns\n");
        record(columns);
    }
}

fn record(columns: u16) {
    let stage = Stage::with(&FILES);
    let spawn = ["spawn", "lead.md", "--name", "release", "--permission-mode", "bypassPermissions"];
    let (spawned, screen) = on_terminal(&stage, &spawn, columns);
    wait_until(|| ["tests", "docs"].iter().all(|name| screen.text().contains(&format!("{name}.md: running Bash"))));
    block(&spawn, &screen);
    println!("In another terminal:\n");
    whole(&stage, &["ls"], columns);
    whole(&stage, &["logs", "release", "--chain"], columns);
    let docs = stage.id_of("docs.md");
    let stop = ["stop", &docs, "--reason", "not today"];
    let (stopping, said) = on_terminal(&stage, &stop, columns);
    wait_until(|| screen.text().contains("running tool may finish"));
    stage.file(".built", "");
    ends(stopping);
    block(&stop, &said);
    stage.file(".tested", "");
    ends(spawned);
    println!("The first terminal again, when the tests have passed:\n");
    block(&spawn, &screen);
    whole(&stage, &["tree", "release", "--cost"], columns);
}

/// A command on a terminal.
struct Running {
    child: Child,
    reader: JoinHandle<String>,
}

/// Starts a command on a terminal.
fn on_terminal(stage: &Stage, args: &[&str], columns: u16) -> (Running, Screen) {
    let (output, terminal) = pty::terminal(columns, pty::LINES, true).expect("there are terminals");
    let copy = || Stdio::from(terminal.try_clone().expect("a file can be opened once more"));
    let mut command = stage.command(args);
    // A pager would wait for a key.
    command.env("TERM", "xterm").env("PAGER", "cat").stdin(copy()).stdout(copy()).stderr(copy());
    let child = command.spawn().expect("the program can be started");
    let screen = Screen::new(columns, pty::LINES);
    let reader = pty::collect_screen(output, screen.clone());
    (Running { child, reader }, screen)
}

/// Shows a command until it ends.
fn whole(stage: &Stage, args: &[&str], columns: u16) {
    let (running, screen) = on_terminal(stage, args, columns);
    ends(running);
    block(args, &screen);
}

fn block(args: &[&str], screen: &Screen) {
    let words = args.iter().map(|word| if word.contains(' ') { format!("'{word}'") } else { (*word).to_owned() });
    println!("```console\n$ agent-cli {}\n{}```\n", words.collect::<Vec<_>>().join(" "), screen.text());
}

/// Waits until it has ended, and all of its output is on the screen.
fn ends(mut running: Running) {
    let status = running.child.wait().expect("it is a child");
    assert!(status.success(), "{status}");
    running.reader.join().expect("a terminal can be read");
}

fn wait_until(happened: impl Fn() -> bool) {
    for _ in 0..6_000 {
        if happened() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("it did not happen in a minute");
}
