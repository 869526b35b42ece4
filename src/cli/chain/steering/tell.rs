//! `agent-cli tell`: sends a message to a running or waiting agent.

use std::io::{self, Read};

use clap::Args;

use crate::app::chains::tell::{self, DeferredText, Input};
use crate::app::error::Refusal;
use crate::cli::arguments::id_completion;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::{print_json, print_line};
use crate::runtime::steering::tell::Arrives;

/// Send a message to a running or waiting agent
///
/// A running agent reads the message with the result of its next tool call, or when its turn ends. A waiting agent reads it
/// when it continues; the message does not wake it. The agent learns who wrote it, and gets the text exactly as given. An agent
/// can send messages to the agents that it has started. A finished agent reads no messages: `agent-cli resume ID --prompt`
/// continues it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli tell 4f2c1a90 \"Use the test server.\"
  agent-cli tell 4f2c1a90 < remarks.md")]
pub(crate) struct Tell {
    /// Id of the agent; its first four characters are enough if unique
    #[arg(add = id_completion::agents())]
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
        let input = Input { id: self.id, text: typed_text(self.text) };
        let outcome = tell::tell(&context.app_with_origin(&store), input)?;
        if self.json {
            print_json(&outcome.view())?;
        } else {
            let when = match outcome.arrives {
                Arrives::NextCall => "with the result of its next tool call",
                Arrives::NextWakeUp => "when it continues",
            };
            print_line(&format!("sent to {}: it reads that {when}", outcome.agent.short()))?;
        }
        Ok(ExitStatus::Ok)
    }
}

/// All of standard input, which must be UTF-8, and must end before it is too large for memory.
pub(in crate::cli::chain) fn standard_input() -> io::Result<String> {
    const LARGEST: u64 = 64 << 20;
    let mut text = Vec::new();
    io::stdin().lock().take(LARGEST + 1).read_to_end(&mut text)?;
    if text.len() as u64 > LARGEST {
        return Err(io::Error::other("it has more than 64 MiB"));
    }
    String::from_utf8(text).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// Reads a text from the command line, or else from standard input.
pub(in crate::cli::chain) fn typed_text(text: Option<String>) -> DeferredText {
    Box::new(|| match text.filter(|text| text != "-") {
        Some(text) => Ok(text),
        None => {
            let text = standard_input();
            let text =
                text.map_err(|error| Refusal::failure(format!("cannot read the text from standard input: {error}")))?;
            Ok(text.strip_suffix('\n').map(str::to_owned).unwrap_or(text))
        }
    })
}
