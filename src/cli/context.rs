//! What a command knows of its surroundings: the state directory, the calling agent, the terminal.

use std::env;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::error::CliError;
use crate::claude::command::{ATTEMPT, FRAME, STATE_DIR, named_config_dir};
use crate::core::launch::Launch;
use crate::runtime::{RuntimeError, Settings};
use crate::store::{Caller, StateDir, Store};

/// The surroundings of a command.
#[derive(Debug)]
pub(super) struct Context {
    verbose: bool,
    /// The agent in whose tool call this runs.
    pub(super) caller: Option<Caller>,
}

/// Filters what is told on standard error, as `RUST_LOG` does elsewhere: `debug`, `agent_cli::runtime=trace`.
const LOG: &str = "AGENT_CLI_LOG";
/// Names the `claude` to use.
pub(super) const CLAUDE: &str = "AGENT_CLI_CLAUDE";
/// What agents may do where no option says it: for chains that call this program without options.
const PERMISSION_MODE: &str = "AGENT_CLI_PERMISSION_MODE";

impl Context {
    pub(super) fn from_environment(verbose: bool) -> Result<Self, CliError> {
        Ok(Self { verbose, caller: caller()? })
    }

    pub(super) fn store(&self) -> Result<Store, CliError> {
        Ok(Store::open(&self.state_dir()?)?)
    }

    /// What `look` sees in a store at rest; `None` when the store has to be opened.
    pub(super) fn glance<T>(&self, look: impl FnOnce(&Store) -> Result<T, RuntimeError>) -> Option<T> {
        let dir = self.state_dir().ok()?;
        Store::glance(&dir, |store| Ok(look(store).ok())).flatten()
    }

    pub(super) fn state_dir(&self) -> Result<PathBuf, CliError> {
        let dir = named_state_dir().or_else(StateDir::default_path).ok_or_else(|| {
            CliError::failed("there is no home directory to keep the state in").hint(format!("set {STATE_DIR}"))
        })?;
        std::path::absolute(&dir)
            .map_err(|error| CliError::failed(format!("{} cannot be used: {error}", dir.display())))
    }

    /// Settings for a run. `claude` is what the user named on the command line.
    pub(super) fn settings(&self, claude: Option<PathBuf>) -> Result<Settings, CliError> {
        let own_program = env::current_exe()
            .map_err(|error| CliError::failed(format!("failed to find this program's own path: {error}")))?;
        let claude = claude.or_else(named_claude);
        Ok(Settings { claude, own_program, stale_check: true })
    }

    /// What of this shell a new frame records, so that it can be carried on from another one.
    pub(super) fn launch(&self) -> Launch {
        Launch {
            permission_mode: env::var(PERMISSION_MODE).ok().filter(|mode| !mode.is_empty()),
            path: env::var("PATH").ok(),
            config_dir: named_config_dir(),
            ..Launch::default()
        }
    }

    /// Starts telling what happens: warnings always, more for a person who watches or asks.
    pub(super) fn start_log(&self) {
        let level = if self.verbose || io::stderr().is_terminal() { LevelFilter::INFO } else { LevelFilter::WARN };
        let named = env::var(LOG).ok().and_then(|filter| filter.parse::<Targets>().ok());
        let filter = named.unwrap_or_else(|| Targets::new().with_target("agent_cli", level));
        let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_target(false).without_time();
        tracing_subscriber::registry().with(lines.with_ansi(io::stderr().is_terminal())).with(filter).init();
    }
}

/// The state directory that the environment names. An empty name is none.
pub(super) fn named_state_dir() -> Option<PathBuf> {
    env::var_os(STATE_DIR).filter(|dir| !dir.is_empty()).map(PathBuf::from)
}

/// The `claude` that the environment names. An empty name is none.
pub(super) fn named_claude() -> Option<PathBuf> {
    env::var_os(CLAUDE).filter(|name| !name.is_empty()).map(PathBuf::from)
}

fn caller() -> Result<Option<Caller>, CliError> {
    let (frame, attempt) = match (env::var_os(FRAME), env::var_os(ATTEMPT)) {
        (None, None) => return Ok(None),
        (frame, attempt) => (frame.unwrap_or_default(), attempt.unwrap_or_default()),
    };
    let ids = frame.to_str().and_then(|frame| frame.parse().ok()).zip(attempt.to_str().and_then(|id| id.parse().ok()));
    let (frame, attempt) = ids.ok_or_else(|| {
        CliError::usage(format!("{FRAME} and {ATTEMPT} are set, but not to ids"))
            .hint(format!("agent-cli sets them for its agents: unset {FRAME} {ATTEMPT}"))
    })?;
    Ok(Some(Caller { frame, attempt }))
}
