//! `agent-cli stop` and `agent-cli pause`: end or pause an agent and everything below it.

use clap::Args;
use serde::Serialize;

use crate::cli::arguments::candidates;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::lookup::frame_named;
use crate::cli::output::{self, print_json, print_line, tell};
use crate::core::chain::frame::Frame;
use crate::core::chain::state::FrameState;
use crate::core::id::FrameId;
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
/// Waits until the agent has ended, unless its runner does not react, and prints what happened. If it is stopped
/// several times, all reasons are recorded. Stopping an agent that is already over does nothing.
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

    /// Return at once: whoever runs the agent stops it
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

/// What became of an agent, as JSON.
#[derive(Serialize)]
struct AgentJson {
    id: FrameId,
    status: &'static str,
}

#[derive(Serialize)]
struct StoppedJson<'a> {
    id: FrameId,
    /// How it is now.
    status: &'static str,
    /// `stopped`, `paused`, `asked` (it still runs), `replied` (before it could be stopped), or `nothing` (it was over, or paused).
    outcome: &'static str,
    reason: Option<&'a str>,
    /// The agents that this was about, the deepest first.
    agents: Vec<AgentJson>,
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
            let agents = stopped.agents.iter().map(|(id, state)| AgentJson { id: *id, status: state.name() });
            let reason = wanted.reason.as_deref();
            let status = stopped.after.name();
            print_json(&StoppedJson { id, status, outcome, reason, agents: agents.collect() })?;
        } else {
            print_line(&said(&frame, &stopped, how, outcome))?;
        }
        match (outcome, how) {
            // Only people continue what was stopped.
            _ if context.caller.is_some() => {}
            ("stopped", _) if !self.json => {
                output::hint(&format!(
                    "agent-cli resume {} --prompt TEXT continues it with a new instruction",
                    id.short()
                ));
            }
            ("asked", _) if !self.json && !self.no_wait => {
                output::hint(&format!("agent-cli show {} shows whether it has ended", id.short()));
            }
            ("paused", _) if !self.json => output::hint(&format!("agent-cli resume {} continues it", id.short())),
            _ => {}
        }
        Ok(ExitStatus::Ok)
    }
}

fn outcome(stopped: &Stopped, how: StopKind) -> &'static str {
    let runs = |state: &FrameState| matches!(state, FrameState::Running { .. });
    match &stopped.after {
        _ if stopped.agents.is_empty() => "nothing",
        _ if stopped.agents.iter().any(|(_, state)| runs(state)) => "asked",
        FrameState::Done if stopped.before != FrameState::Done => "replied",
        _ if how == StopKind::Pause => "paused",
        _ => "stopped",
    }
}

/// What happened, in one line.
fn said(frame: &Frame, stopped: &Stopped, how: StopKind, outcome: &str) -> String {
    let id = frame.id.short();
    let below = match stopped.agents.iter().filter(|(other, _)| *other != frame.id).count() {
        0 => String::new(),
        1 => " and 1 agent below it".to_owned(),
        others => format!(" and {others} agents below it"),
    };
    match (outcome, &stopped.after) {
        ("nothing", FrameState::Done) => format!("{id} is done already"),
        ("nothing", FrameState::Paused { .. }) => format!("{id} is paused already"),
        ("nothing", state) if state.was_stopped() => format!("{id} was stopped already"),
        ("nothing", state) => format!("{id} is not running: {}", state.name()),
        ("asked", _) => match how {
            StopKind::Stop => format!("asked {id}{below} to stop"),
            StopKind::Pause => format!("asked {id}{below} to pause"),
        },
        ("replied", _) => format!("{id} had replied before it could be stopped"),
        (outcome, _) => format!("{outcome} {id}{below}"),
    }
}
