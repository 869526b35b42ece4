//! The birthday chain on the real Claude Code, or one of `examples/patterns`, without an account: the model is a script on this machine.
//!
//! ```sh
//! cargo run --example demo
//! cargo run --example demo routing
//! ```
//!
//! Claude Code is installed into the build folder by npm, unless `AGENT_CLI_CLAUDE` names one. It runs with a separate home
//! folder and only reaches this machine.

#[path = "../../tests/support/mod.rs"]
mod support;

mod stage;

use stage::Stage;
use support::Pattern;

fn main() {
    match std::env::args().nth(1) {
        None => birthday(),
        Some(name) if Pattern::names().contains(&name) => play(&Pattern::named(&name)),
        Some(name) => {
            eprintln!("{name} is not a pattern: {}", Pattern::names().join(", "));
            std::process::exit(2);
        }
    }
}

/// The commands in the README of a pattern.
fn play(pattern: &Pattern) {
    let stage = Stage::of(pattern);
    pattern.commands().iter().for_each(|command| stage.show_line(command));
    println!();
    stage.show(&["tree", &stage.chain()]);
}

fn birthday() {
    println!("Four agents, each started by the one above. The deepest asks a question. The model is a script.");
    let stage = Stage::set();

    stage.show(&["spawn", "ins1.md"]);
    stage.say("Every agent is paused inside a tool call, and no process is left. Cron can poll as often as it likes.");
    let chain = stage.chain();
    stage.show(&["resume", &chain]);
    stage.show(&["resume", &chain]);
    stage.show(&["tree", &chain]);
    stage.say("A person answers, after a minute or a month.");
    stage.show(&["questions"]);
    stage.show(&["answer", &stage.question(), "Jan 1st"]);
    stage.say("The answer goes to the agent that asked, and the replies travel back up the chain.");
    stage.show(&["resume", &chain]);
    stage.say("What the agent that asked saw: a call that took a long time, and no signal.");
    stage.show_conversation_of_the_asker();
    stage.say("Resuming a finished chain prints the reply again and starts nothing.");
    stage.show(&["resume", &chain]);
}
