//! A person at a terminal, from nothing to an answered question: one command, and one line typed.

use std::io::Write;
use std::process::Stdio;

use serde_json::json;

use crate::chain::Chain;
use crate::processes::wait_until;
use crate::pty::{Screen, collect_screen, terminal};
use crate::support::{Conversation, MessagesApi, Turn, on_every_version};

on_every_version!(a_person_starts_an_agent_and_answers_it_with_one_command);

fn model(said: &Conversation) -> Turn {
    match said.results_by_call().pop() {
        None => Turn::call(
            "AskUserQuestion",
            json!({"questions": [{"question": "Which colour?", "header": "Colour", "multiSelect": false,
                "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]}]}),
        ),
        Some((answer, _)) => Turn::text(answer),
    }
}

fn a_person_starts_an_agent_and_answers_it_with_one_command(version: &str) {
    let chain = Chain::with_model(version, MessagesApi::start(model));
    let (screen, terminal) = terminal(80, 40, true).unwrap();
    let shown = Screen::new(80, 40);
    let mut keyboard = screen.try_clone().unwrap();
    let collected = collect_screen(screen, shown.clone());
    let mut command = chain.command();
    let copy = || Stdio::from(terminal.try_clone().unwrap());
    command.args(["spawn", "--prompt", "Ask me which colour I like."]).env("TERM", "xterm");
    let mut spawn = command.stdin(copy()).stdout(copy()).stderr(copy()).spawn().unwrap();
    drop((command, terminal));
    wait_until("it asks", || shown.text().trim_end().ends_with("help\n>"));
    keyboard.write_all(b"2\r").unwrap();
    assert!(spawn.wait().unwrap().success(), "{}", shown.text());
    let printed = collected.join().unwrap();
    let left = shown.text();
    assert!(left.contains("\nanswered: 2: Blue\n") && left.contains("\"Which colour?\"=\"Blue\""), "{left}");
    assert!(!printed.contains("SGN_"), "{printed}");
}
