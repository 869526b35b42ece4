//! The birthday chain on the real Claude Code, without an account: the model is a script on this machine.
//!
//! ```sh
//! cargo run --release --example demo
//! ```
//!
//! Claude Code is installed into the build folder by npm, unless `AGENT_CLI_CLAUDE` names one. It runs with a separate home
//! folder and only reaches this machine.

#[path = "../../tests/support/mod.rs"]
mod support;

mod stage;

use stage::Stage;

fn main() {
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
