//! `agent-cli resume`: carries a chain on; called by an agent, asks what came of a request.

use std::path::PathBuf;

use clap::Args;

use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::limits::LimitOptions;
use super::outcome::{self, Telling, Told};
use super::output::print_line;
use crate::claude::program;
use crate::core::id::{FrameId, IdPrefix, SessionId};
use crate::core::launch::Launch;
use crate::core::signal;
use crate::runtime::requests::{self, Progress};
use crate::runtime::{RuntimeError, adopt, drive, standing};
use crate::store::{Store, StoreError, Target};

/// Carry a chain on where it stopped, or see how it stands
///
/// Prints the reply when the agent is done (again, if it was done before), `SGN_PEND_STARTED (ID)` when the tree waits
/// for something new, and `SGN_PEND_ONGOING` when it still waits for what it waited for. A tree that waits is asked in
/// milliseconds, without starting claude: call it from cron as often as you like.
#[derive(Debug, Args)]
#[command(after_help = "Example, every minute by cron:
  * * * * * agent-cli resume 4f2c1a90 >> chain.log")]
pub(super) struct Resume {
    /// A frame, any Claude session it ever had, or another Claude session; four characters or more
    id: String,

    /// The claude program [default: $AGENT_CLI_CLAUDE, or the one that the chain began with]
    #[arg(long, value_name = "PATH")]
    claude: Option<PathBuf>,

    /// Try again at once what waits for a usage limit, or for its next try
    #[arg(long)]
    now: bool,

    /// Do not tell agents which files changed while they waited
    #[arg(long)]
    no_stale_check: bool,

    #[command(flatten)]
    telling: Telling,

    #[command(flatten)]
    limits: LimitOptions,
}

impl Resume {
    pub(super) fn run(self, context: &Context) -> Result<Exit, CliError> {
        let only_looks = context.caller.is_none() && !self.limits.given().any() && !self.now;
        if let Some(told) = only_looks.then(|| context.glance(|store| self.look(store)).flatten()).flatten() {
            return outcome::tell(&told, self.telling);
        }
        if context.caller.is_some() {
            self.refuse_to_agents()?;
        }
        let store = context.store()?;
        let target = self.target(context, &store)?;
        if let Some(caller) = context.caller {
            return tell(match target {
                Target::Frame(frame) => requests::progress_for(&store, caller, frame)?,
                Target::Request(request) => requests::progress_of_request(&store, request)?,
            });
        }
        let top = match target {
            Target::Frame(frame) => frame,
            Target::Request(request) => {
                let frame = store.request_owner(request)?;
                let message = format!("{} is a request of {}, not a frame", request.short(), frame.short());
                return Err(CliError::new(Exit::NoSuchFrame, message).hint("agent-cli ls shows the chains"));
            }
        };
        if self.limits.given().any() {
            store.set_limits(top, self.limits.given())?;
        }
        if self.now {
            drive::end_pauses(&store, top)?;
        }
        match standing::poll(&store, top)? {
            Some(standing) => outcome::tell(&Told::new(&store, top, standing, self.telling)?, self.telling),
            None => {
                let mut settings = context.settings(self.claude)?;
                settings.stale_check = !self.no_stale_check;
                outcome::drive(context, &store, &settings, top, self.telling)
            }
        }
    }

    fn refuse_to_agents(&self) -> Result<(), CliError> {
        self.limits.refuse_to_agents()?;
        if self.now {
            return Err(CliError::usage("--now is for a person, and an agent called this").hint("leave it out"));
        }
        Ok(())
    }

    /// How the tree stands, if the id names one and nothing in it can run.
    fn look(&self, store: &Store) -> Result<Option<Told>, RuntimeError> {
        let top = match self.id.parse::<FrameId>() {
            // A whole id, as cron gives it, needs no search.
            Ok(top) => top,
            Err(_) => match self.id.parse::<IdPrefix>().map(|prefix| store.lookup(&prefix)) {
                Ok(Ok(Target::Frame(top))) => top,
                _ => return Ok(None),
            },
        };
        let standing = standing::poll(store, top)?;
        Ok(standing.map(|standing| Told::new(store, top, standing, self.telling)).transpose()?)
    }

    /// How an adopted session is started from now on.
    fn launch(&self, context: &Context) -> Result<Launch, CliError> {
        let settings = context.settings(self.claude.clone())?;
        let claude = program::locate(settings.claude.as_deref(), None, std::env::var_os("PATH").as_deref())?;
        Ok(Launch { claude, ..context.launch() })
    }

    /// What the id names. A session that is not known is adopted if Claude Code has it.
    fn target(&self, context: &Context, store: &Store) -> Result<Target, CliError> {
        let error = match store.lookup(&self.id.parse::<IdPrefix>()?) {
            Ok(target) => return Ok(target),
            Err(error) => error,
        };
        let session = self.id.trim().parse::<SessionId>();
        // A session is adopted for a person, not for an agent that tries an id.
        if let (StoreError::Unknown(_), Ok(session), None) = (&error, session, context.caller)
            && let Some(frame) = adopt::adopt(store, session, self.launch(context)?)?
        {
            return Ok(Target::Frame(frame));
        }
        Err(error.into())
    }
}

/// Tells an agent what came of its request.
pub(super) fn tell(progress: Progress) -> Result<Exit, CliError> {
    match progress {
        Progress::Over(text) => print_line(&text)?,
        Progress::PartlyFailed(replies) => {
            print_line(&replies)?;
            return Ok(Exit::Failed);
        }
        Progress::Open => print_line(signal::ONGOING)?,
        Progress::Failed(why) => return Err(CliError::failed(format!("the agent failed: {why}"))),
    }
    Ok(Exit::Ok)
}

/// The frame that an id names, for commands that only look.
pub(super) fn frame_named(store: &Store, id: &str) -> Result<FrameId, CliError> {
    match store.lookup(&id.parse::<IdPrefix>()?)? {
        Target::Frame(frame) => Ok(frame),
        Target::Request(request) => Ok(store.request_owner(request)?),
    }
}
