//! `agent-cli tell`: says something to an agent that runs or waits.

use std::io::{self, Read};

use clap::Args;

use crate::app::lookup::frame_named;
use crate::app::view::outcome::{Arrival, ToldView};
use crate::claude::processes::marks;
use crate::cli::arguments::candidates;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::{print_json, print_line};
use crate::core::chain::frame::Frame;
use crate::core::id::FrameId;
use crate::core::steering::message::Sender;
use crate::core::steering::stop_order::By;
use crate::runtime::steering::tell::{self, Arrives};
use crate::store::{Store, StoreError};

/// Send a message to a running or waiting agent
///
/// A running agent reads the message with the result of its next tool call, or when its turn ends. A waiting agent
/// reads it when it continues; the message does not wake it. The agent learns who wrote it, and gets the text exactly
/// as given. An agent can send messages to the agents that it has started. An agent that is over reads none: `agent-cli
/// resume ID --prompt` continues it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli tell 4f2c1a90 \"Use the test server.\"
  agent-cli tell 4f2c1a90 < remarks.md")]
pub(crate) struct Tell {
    /// Id of the agent; its first four characters are enough if unique
    #[arg(add = candidates::agents())]
    id: String,

    /// The text; `-`: standard input, without its final newline [default: -]
    text: Option<String>,

    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl Tell {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let store = context.store()?;
        let frame = agent_named(context, &store, &self.id)?;
        if context.caller.is_some_and(|caller| caller.frame == frame.id) {
            let error = CliError::usage("an agent cannot tell itself anything");
            return Err(error.hint("name an agent that it has started: agent-cli tree shows them"));
        }
        if frame.state.is_over() {
            return Err(StoreError::IsOver(frame.id).into());
        }
        let text = given(self.text)?;
        let (message, arrives) = tell::tell(&store, &frame, &text, &sender(context))?;
        let (arrives, said) = match arrives {
            Arrives::NextCall => (Arrival::NextCall, "it reads that with the result of its next tool call"),
            Arrives::NextWakeUp => (Arrival::NextWakeUp, "it reads that when it continues"),
        };
        if self.json {
            print_json(&ToldView { id: message, agent: frame.id, arrives })?;
        } else {
            print_line(&format!("sent to {}: {said}", frame.id.short()))?;
        }
        Ok(ExitStatus::Ok)
    }
}

/// The agent that an id names: not a group, which nobody can talk to.
pub(super) fn agent_named(context: &Context, store: &Store, id: &str) -> Result<Frame, CliError> {
    let id: FrameId = frame_named(&context.app(store), id)?;
    let frame = store.frame(id)?.ok_or(StoreError::UnknownFrame(id))?;
    if frame.task.is_group() {
        let error = CliError::usage(format!("{} is a group of agents", id.short()));
        return Err(error.hint(format!("agent-cli tree {} shows them: name one of them", id.short())));
    }
    Ok(frame)
}

/// Who calls this.
pub(super) fn sender(context: &Context) -> Sender {
    let by = context.caller.map_or(By::Person, |caller| By::Agent(caller.frame));
    Sender { by, origin: marks::origin() }
}

/// The text, or what standard input has.
pub(super) fn given(text: Option<String>) -> Result<String, CliError> {
    let text = match text.filter(|text| text != "-") {
        Some(text) => text,
        None => {
            let mut text = String::new();
            let read = io::stdin().read_to_string(&mut text);
            read.map_err(|error| CliError::failed(format!("cannot read the text from standard input: {error}")))?;
            text.strip_suffix('\n').map(str::to_owned).unwrap_or(text)
        }
    };
    match text.len() {
        _ if text.trim().is_empty() => {
            Err(CliError::usage("the text is empty").hint("agent-cli tell ID TEXT, or the text on standard input"))
        }
        length if length > LARGEST => {
            Err(CliError::usage(format!("the text has {length} bytes, where 1 MiB is allowed"))
                .hint("write it to a file, and name the file to the agent"))
        }
        _ => Ok(text),
    }
}

/// As much as instructions may have.
const LARGEST: usize = 1 << 20;
