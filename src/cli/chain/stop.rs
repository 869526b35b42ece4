//! `agent-cli stop` and `agent-cli pause`: end or pause an agent and everything below it.

use clap::Args;

use crate::app::view::outcome::{StopOutcome, StoppedAgentView, StoppedView};
use crate::cli::arguments::candidates;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::lookup::frame_named;
use crate::cli::output::{self, print_json, print_line, tell};
use crate::core::chain::frame::Frame;
use crate::core::chain::state::FrameState;
use crate::core::steering::stop::{By, Stop as Wanted, StopKind};
use crate::runtime::steering::stop::{self, Stopped};
use crate::store::StoreError;

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
  agent-cli stop 4f2c1a90 --now
  agent-cli resume 4f2c1a90 --prompt \"Undo what you did.\"")]
pub(crate) struct Stop {
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
pub(crate) struct Pause {
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, Args)]
struct Options {
    /// Id of an agent or a chain; its first four characters are enough if unique
    #[arg(add = candidates::agents())]
    id: String,

    /// Do not let a running tool finish
    #[arg(long)]
    now: bool,

    /// Why, for the parent and for people
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// Return at once: the process running the agent stops it
    #[arg(long)]
    no_wait: bool,

    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// It is part of what the parent is told, and of lists.
const LONGEST_REASON: usize = 1_000;

impl Stop {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        self.options.run(context, StopKind::Stop)
    }
}

impl Pause {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        // An agent could not continue what it has paused.
        context.only_for_people("agents cannot pause agents", "stop it with agent-cli stop, or end your turn")?;
        self.options.run(context, StopKind::Pause)
    }
}

impl Options {
    fn run(self, context: &Context, how: StopKind) -> Result<ExitStatus, CliError> {
        let store = context.store()?;
        let id = frame_named(context, &store, &self.id)?;
        if context.caller.is_some_and(|caller| caller.frame == id) {
            return Err(CliError::usage("an agent cannot stop itself").hint("end your turn"));
        }
        let frame = store.frame(id)?.ok_or(StoreError::UnknownFrame(id))?;
        let by = context.caller.map_or(By::Person, |caller| By::Agent(caller.frame));
        let reason = self.reason.filter(|reason| !reason.trim().is_empty());
        if reason.as_ref().is_some_and(|reason| reason.len() > LONGEST_REASON) {
            let message = format!("a reason may have {LONGEST_REASON} bytes");
            return Err(CliError::usage(message).hint("agent-cli tell ID TEXT is for longer texts"));
        }
        let wanted = Wanted { how, now: self.now, by, reason, of: id, report: None };
        let waits = if self.no_wait { None } else { Some(context.stopping()?) };
        if waits.is_some() && !self.now && matches!(frame.state, FrameState::Running { .. }) {
            tell(&format!("the running tool of {} may finish; --now does not wait for it", id.short()));
        }
        let stopped = stop::stop(&store, &frame, &wanted, waits)?;
        let outcome = outcome(&stopped, how);
        if self.json {
            let agents = stopped.agents.iter().map(|(id, state)| StoppedAgentView { id: *id, status: state.status() });
            let (status, reason) = (stopped.after.status(), wanted.reason);
            print_json(&StoppedView { id, status, outcome, reason, agents: agents.collect() })?;
        } else {
            print_line(&said(&frame, &stopped, how, outcome))?;
        }
        // Only people continue what was stopped.
        let hint = match outcome {
            _ if context.caller.is_some() || self.json => None,
            StopOutcome::Stopped => Some("resume ID --prompt TEXT continues it with a new instruction"),
            StopOutcome::Asked if !self.no_wait => Some("show ID shows whether it has ended"),
            StopOutcome::Paused => Some("resume ID continues it"),
            StopOutcome::Asked | StopOutcome::Replied | StopOutcome::Nothing => None,
        };
        if let Some(hint) = hint {
            output::hint(&format!("agent-cli {}", hint.replace("ID", &id.short())));
        }
        Ok(ExitStatus::Ok)
    }
}

fn outcome(stopped: &Stopped, how: StopKind) -> StopOutcome {
    let runs = |state: &FrameState| matches!(state, FrameState::Running { .. });
    match &stopped.after {
        _ if stopped.agents.is_empty() => StopOutcome::Nothing,
        _ if stopped.agents.iter().any(|(_, state)| runs(state)) => StopOutcome::Asked,
        FrameState::Done if stopped.before != FrameState::Done => StopOutcome::Replied,
        _ if how == StopKind::Pause => StopOutcome::Paused,
        _ => StopOutcome::Stopped,
    }
}

/// What happened, in one line.
fn said(frame: &Frame, stopped: &Stopped, how: StopKind, outcome: StopOutcome) -> String {
    let id = frame.id.short();
    let below = match stopped.agents.iter().filter(|(other, _)| *other != frame.id).count() {
        0 => String::new(),
        1 => " and 1 agent below it".to_owned(),
        others => format!(" and {others} agents below it"),
    };
    match (outcome, &stopped.after) {
        (StopOutcome::Nothing, FrameState::Done) => format!("{id} is done already"),
        (StopOutcome::Nothing, FrameState::Paused { .. }) => format!("{id} is paused already"),
        (StopOutcome::Nothing, state) if state.was_stopped() => format!("{id} was stopped already"),
        (StopOutcome::Nothing, state) => format!("{id} is not running: {}", state.name()),
        (StopOutcome::Asked, _) => match how {
            StopKind::Stop => format!("asked {id}{below} to stop"),
            StopKind::Pause => format!("asked {id}{below} to pause"),
        },
        (StopOutcome::Replied, _) => format!("{id} had replied before it could be stopped"),
        (StopOutcome::Stopped, _) => format!("stopped {id}{below}"),
        (StopOutcome::Paused, _) => format!("paused {id}{below}"),
    }
}
