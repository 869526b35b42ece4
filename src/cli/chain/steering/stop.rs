//! `agent-cli stop` and `agent-cli pause`: end or pause an agent and everything below it.

use clap::Args;

use crate::app::chains::above;
use crate::app::chains::stop::{self, Input, Outcome};
use crate::app::view::outcome::StopOutcome;
use crate::cli::arguments::{id_completion, several_ids};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::{self, print_json, print_line};
use crate::cli::report::status_report::hint_at_above;
use crate::core::chain::frame_state::FrameState;
use crate::core::steering::stop_order::StopKind;
use crate::store::Store;

/// Stop an agent, or a whole chain
///
/// Ends the agent and everything below it; siblings and the parent continue. A running tool finishes first, for up to a
/// minute ($AGENT_CLI_STOP_GRACE). The parent gets this result, as from a failed child: who stopped it and why, what it
/// had said, which tools it had used, and which files they had written. Open questions below it are withdrawn. Works
/// from any terminal. An agent can stop the agents that it has started.
///
/// Waits until the agent ends, or its runner stops responding, and prints what happened. If it is stopped several times,
/// all reasons are recorded. Stopping a finished agent does nothing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli stop 4f2c1a90 --reason \"wrong branch\"
  agent-cli stop 4f2c1a90 0b77d2e1 --now
  agent-cli resume 4f2c1a90 --prompt \"Undo what you did.\"")]
pub(crate) struct StopCommand {
    #[command(flatten)]
    options: Options,
}

/// Pause an agent, or a whole chain
///
/// Like `stop`, but the agent and everything below it can continue: `agent-cli resume ID` does that, with the id that
/// was paused, or one below or above it that was paused with it. A resume of the chain does not continue an agent that
/// was paused by its own id. The parent is not informed, and questions stay open.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli pause 4f2c1a90
  agent-cli tell 4f2c1a90 \"Use the test server.\"
  agent-cli resume 4f2c1a90")]
pub(crate) struct PauseCommand {
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, Args)]
struct Options {
    /// Id of an agent or a chain, or several; its first four characters are enough if unique
    #[arg(required = true, value_name = "ID", add = id_completion::agents())]
    ids: Vec<String>,

    /// Do not let a running tool finish
    #[arg(long)]
    now: bool,

    /// Why, for the parent and for people
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// Return at once: the process running the agent stops it
    #[arg(long)]
    no_wait: bool,

    /// Print a JSON object for each
    #[arg(long)]
    json: bool,
}

impl StopCommand {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        self.options.run(context, StopKind::Stop)
    }
}

impl PauseCommand {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        self.options.run(context, StopKind::Pause)
    }
}

impl Options {
    fn run(self, context: &Context, kind: StopKind) -> Result<ExitStatus, CliError> {
        let Self { ids, now, reason, no_wait, json } = self;
        let store = context.store()?;
        let waits = if no_wait { None } else { Some(context.stopping()?) };
        several_ids::for_each(ids, json, |id| {
            let input = Input { id, kind, now, reason: reason.clone(), waits };
            let outcome = stop::stop(&context.app(&store), input)?;
            if json {
                Ok(print_json(&outcome.view())?)
            } else {
                report(&store, &outcome, context.caller.is_some(), no_wait)
            }
        })
    }
}

fn report(store: &Store, outcome: &Outcome, is_agent: bool, no_wait: bool) -> Result<(), CliError> {
    print_line(&line(outcome))?;
    // Only people can continue a stopped agent, so agents get no hint.
    let hint = match outcome.outcome {
        _ if is_agent => None,
        StopOutcome::Stopped if outcome.agent.task.is_group() => {
            Some("tree ID shows its agents, each of which resume --prompt continues with a new instruction")
        }
        StopOutcome::Stopped => Some("resume ID --prompt TEXT continues it with a new instruction"),
        StopOutcome::Asked if !no_wait => Some("show ID shows whether it has ended"),
        StopOutcome::Paused => Some("resume ID continues it"),
        StopOutcome::Asked | StopOutcome::Replied | StopOutcome::Nothing => None,
    };
    if let Some(hint) = hint {
        output::hint(&format!("agent-cli {}", hint.replace("ID", &outcome.agent.id.short())));
    }
    if !is_agent && outcome.outcome == StopOutcome::Stopped {
        let above = above::of(store, outcome.agent.id)?;
        above.iter().for_each(|above| output::hint(&hint_at_above(*above, " without it")));
    }
    Ok(())
}

/// Describes the outcome in one line.
pub(crate) fn line(Outcome { agent, kind, stopped, outcome, .. }: &Outcome) -> String {
    let id = agent.id.short();
    let below = match stopped.agents.iter().filter(|(other, _)| *other != agent.id).count() {
        0 => String::new(),
        1 => " and 1 agent below it".to_owned(),
        others => format!(" and {others} agents below it"),
    };
    match (outcome, &stopped.after) {
        (StopOutcome::Nothing, FrameState::Done) => format!("{id} is done already"),
        (StopOutcome::Nothing, FrameState::Paused { .. }) => format!("{id} is paused already"),
        (StopOutcome::Nothing, state) if state.was_stopped() => format!("{id} was stopped already"),
        (StopOutcome::Nothing, state) => format!("{id} is not running: {}", state.name()),
        (StopOutcome::Asked, _) => match kind {
            StopKind::Stop => format!("asked {id}{below} to stop"),
            StopKind::Pause => format!("asked {id}{below} to pause"),
        },
        (StopOutcome::Replied, _) => format!("{id} had replied before it could be stopped"),
        (StopOutcome::Stopped, _) => format!("stopped {id}{below}"),
        (StopOutcome::Paused, _) => format!("paused {id}{below}"),
    }
}
