//! A command's surroundings: the state directory, the calling agent, the terminal.

use std::cell::RefCell;
use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;

use crate::claude::environment::config_dir::named_config_dir;
use crate::claude::environment::recorded;
use crate::claude::environment::variables::Variables;
use crate::claude::invocation::{ATTEMPT, FRAME, SESSION, STATE_DIR};
use crate::claude::processes::marks::{self, Mark};
use crate::cli::arguments::duration::duration;
use crate::cli::error::CliError;
use crate::cli::output;
use crate::cli::output::log;
use crate::core::agent::launch::Launch;
use crate::core::attempt::stopping::GRACE;
use crate::core::id::SessionId;
use crate::runtime::notifications::config_file::{self, BadConfig, ConfigFile};
use crate::runtime::notifications::sender::{Sender, Voice};
use crate::runtime::programs;
use crate::runtime::protocol::Asking;
use crate::runtime::{RunSettings, RuntimeError, Stopping};
use crate::store::{Caller, Notifications, StateDir, Store};

/// The surroundings of a command.
#[derive(Debug)]
pub(crate) struct Context {
    verbose: bool,
    /// The agent that started this process, directly or indirectly; `None`: a person did.
    pub(crate) caller: Option<Caller>,
    /// The ancestor process that revealed the agent, if this process's environment does not name it.
    found_above: Option<i32>,
    /// What sends notifications while this command drives chains.
    sender: RefCell<Option<Sender>>,
}

/// Names the `claude` to use.
pub(crate) const CLAUDE: &str = "AGENT_CLI_CLAUDE";
/// How long the running tool of a stopped agent may take to finish.
const STOP_GRACE: &str = "AGENT_CLI_STOP_GRACE";
/// How long `claude` may continue with background work after a reply, in chains that this shell starts.
const BACKGROUND_GRACE: &str = "AGENT_CLI_BACKGROUND_GRACE";
const QUESTIONS_EXPIRE: &str = "AGENT_CLI_QUESTIONS_EXPIRE";
/// How many unanswered questions a chain that this shell starts may ask within an hour.
const QUESTIONS_PER_HOUR: &str = "AGENT_CLI_QUESTIONS_PER_HOUR";
/// Names the config file.
pub(crate) const CONFIG: &str = "AGENT_CLI_CONFIG";
/// The permission mode of agents if no option sets it: for chains that call this program without options.
const PERMISSION_MODE: &str = "AGENT_CLI_PERMISSION_MODE";

impl Context {
    pub(crate) fn from_environment(verbose: bool) -> Result<Self, CliError> {
        let own = caller()?;
        let mut context = Self { verbose, caller: own, found_above: None, sender: RefCell::default() };
        // The farthest ancestor counts, because the agent may have started nearer ones with any environment. Other
        // state directories do not count.
        let state_dir = context.state_dir().ok();
        let above = state_dir.and_then(|dir| marks::marks().filter(|mark| mark.is_of(&dir)).last());
        if let Some(Mark { process, frame, attempt, .. }) = above {
            let caller = Caller { frame, attempt };
            context.found_above = (own != Some(caller)).then_some(process);
            context.caller = Some(caller);
        }
        Ok(context)
    }

    /// Refuses commands for people to agents: the one place that tells them apart.
    pub(crate) fn only_for_people(&self, refusal: &str, hint: &str) -> Result<(), CliError> {
        let Some(caller) = self.caller else { return Ok(()) };
        let error = CliError::usage(refusal).hint(hint);
        Err(match self.found_above {
            None => error,
            Some(process) => error.hint(format!(
                "process {process}, above this one, belongs to agent {}: use a shell that no agent has started",
                caller.frame.short()
            )),
        })
    }

    pub(crate) fn store(&self) -> Result<Store, CliError> {
        Ok(Store::open(&self.state_dir()?)?)
    }

    /// What `look` finds in an idle store; `None` if the store has to be opened.
    pub(crate) fn read_snapshot<T>(&self, look: impl FnOnce(&Store) -> Result<T, RuntimeError>) -> Option<T> {
        let dir = self.state_dir().ok()?;
        Store::read_snapshot(&dir, |store| Ok(look(store).ok())).flatten()
    }

    pub(crate) fn state_dir(&self) -> Result<PathBuf, CliError> {
        let dir = named_state_dir()
            .or_else(StateDir::default_path)
            .ok_or_else(|| CliError::failed("no home directory to keep state in").hint(format!("set {STATE_DIR}")))?;
        std::path::absolute(&dir)
            .map_err(|error| CliError::failed(format!("{} cannot be used: {error}", dir.display())))
    }

    /// What the hook and the approval tool need to know about the calling agent; `None`: no agent calls.
    pub(crate) fn asking(&self) -> Result<Option<Asking>, CliError> {
        let Some(caller) = self.caller else { return Ok(None) };
        let home = env::var("HOME").unwrap_or_default();
        Ok(Some(Asking { caller, state_dir: self.state_dir()?, own_program: own_program()?, home }))
    }

    /// Settings for a run. `claude` is what the user named on the command line.
    pub(crate) fn settings(&self, claude: Option<PathBuf>) -> Result<RunSettings, CliError> {
        let claude = claude.or_else(named_claude);
        let (own_program, stopping) = (own_program()?, stopping()?);
        Ok(RunSettings { config: config_path(), claude, own_program, stale_check: true, stopping, places: None })
    }

    /// Checks a chain's launch options before they are recorded. `cwd`: where its first agent works.
    pub(crate) fn check(
        &self,
        store: &Store,
        settings: &RunSettings,
        launch: &Launch,
        cwd: &Path,
    ) -> Result<(), CliError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| CliError::failed(format!("failed to start the runner: {error}")))?;
        Ok(runtime.block_on(programs::check(store, settings, launch, cwd))?)
    }

    /// The parts of this shell's environment that a new frame records, so that it can be resumed from another shell.
    pub(crate) fn launch(&self) -> Result<Launch, CliError> {
        Ok(Launch {
            background_grace: length_of_time(BACKGROUND_GRACE)?.map(|grace| grace.as_secs()),
            questions_per_hour: number(QUESTIONS_PER_HOUR)?,
            questions_expire: length_of_time(QUESTIONS_EXPIRE)?.map(|after| after.as_secs().max(1)),
            permission_mode: env::var(PERMISSION_MODE).ok().filter(|mode| !mode.is_empty()),
            path: env::var("PATH").ok(),
            config_dir: named_config_dir(),
            environment: recorded::of(&Variables::of_process()),
            ..Launch::default()
        })
    }

    /// The config file of a person, as it is; `None`: there is none.
    pub(crate) fn config(&self) -> Result<Option<ConfigFile>, BadConfig> {
        config_path().map_or(Ok(None), |path| config_file::read(&path))
    }

    /// Starts to send notifications, if a person wants any. A process of an agent sends none, and decides nothing about them:
    /// the agent could have given it any config file.
    pub(crate) fn start_notifications(&self) -> Result<(), CliError> {
        if self.caller.is_some() || self.sender.borrow().is_some() {
            return Ok(());
        }
        let config = match self.config() {
            Ok(config) => config,
            Err(error) => {
                output::warn(&error.to_string());
                output::hint(&error.hint);
                return Ok(());
            }
        };
        let Some(config) = config else { return self.forget_config() };
        for problem in &config.problems {
            output::warn(&format!("{}: {problem}", config.path.display()));
        }
        if config.commands.of.is_empty() {
            return self.forget_config();
        }
        let sender = Sender::start(&self.store()?, config, &own_program()?, VOICE)?;
        self.sender.replace(Some(sender));
        Ok(())
    }

    /// The same for a command that stays: it does what the config file says at any time.
    pub(crate) fn follow_config(&self) -> Result<(), CliError> {
        if let (None, Some(path)) = (self.caller, config_path()) {
            self.sender.replace(Some(Sender::follow(&self.store()?, path, &own_program()?, VOICE)?));
        }
        Ok(())
    }

    /// Notes nothing any more for a config file that has no commands now, or is gone. One that this process cannot see, as under
    /// cron, keeps its say.
    fn forget_config(&self) -> Result<(), CliError> {
        let is_over = |config: &PathBuf| {
            config_path().as_ref() == Some(config) || config.try_exists().is_ok_and(|exists| !exists)
        };
        Ok(self.store()?.outbox().subscribe(|before| before.filter(|it| !is_over(&it.config)))?)
    }

    /// Sends what is due before the command ends.
    pub(crate) fn finish_notifications(&self) {
        if self.sender.borrow().is_none() && self.are_notifications_due() {
            // Whatever is wrong has no effect on what the command did.
            if let Err(error) = self.start_notifications() {
                let _ = error.report();
            }
        }
        if let Some(sender) = self.sender.take() {
            sender.finish();
        }
    }

    /// Whether a command that only polls has something to send.
    fn are_notifications_due(&self) -> bool {
        let has_commands = || self.config().is_ok_and(|config| config.is_some_and(|it| !it.commands.of.is_empty()));
        let Ok(dir) = self.state_dir() else { return false };
        if self.caller.is_some() || !has_commands() || StateDir::new(&dir).is_ok_and(|dir| !dir.database().exists()) {
            return false;
        }
        let next = |store: &Store| store.outbox().list(Notifications::NextDue);
        let found = Store::read_snapshot(&dir, next).or_else(|| next(&self.store().ok()?).ok());
        found.unwrap_or_default().iter().any(|next| next.due <= Timestamp::now())
    }

    /// Starts to report progress.
    pub(crate) fn start_log(&self) {
        log::start(self.verbose);
    }
}

const VOICE: Voice = Voice { tell: output::tell, warn: output::warn, hint: output::hint };

fn own_program() -> Result<PathBuf, CliError> {
    env::current_exe().map_err(|error| CliError::failed(format!("failed to find this program's own path: {error}")))
}

/// The state directory from the environment. An empty name counts as unset.
pub(crate) fn named_state_dir() -> Option<PathBuf> {
    env::var_os(STATE_DIR).filter(|dir| !dir.is_empty()).map(PathBuf::from)
}

/// Where the config file is, if it exists; `None`: there is no home directory. An empty name counts as unset.
pub(crate) fn config_path() -> Option<PathBuf> {
    let named = env::var_os(CONFIG).filter(|name| !name.is_empty()).map(PathBuf::from);
    let usual = || dirs::config_dir().map(|dir| dir.join("agent-cli").join("config.toml"));
    std::path::absolute(named.or_else(usual)?).ok()
}

/// The same, if only this shell's environment says so: a service would look elsewhere.
pub(crate) fn config_of_this_shell() -> Option<PathBuf> {
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    config_path().filter(|_| is_set(CONFIG) || is_set("XDG_CONFIG_HOME"))
}

/// The `claude` from the environment. An empty name counts as unset.
pub(crate) fn named_claude() -> Option<PathBuf> {
    env::var_os(CLAUDE).filter(|name| !name.is_empty()).map(PathBuf::from)
}

/// The Claude Code session in whose tool call this runs, if it is a person's.
pub(crate) fn claude_session() -> Option<SessionId> {
    env::var(SESSION).ok()?.parse().ok()
}

/// Whether this runs in a tool call of an agent.
pub(crate) fn is_called_by_an_agent() -> bool {
    env::var_os(FRAME).is_some() || env::var_os(ATTEMPT).is_some()
}

fn caller() -> Result<Option<Caller>, CliError> {
    let (frame, attempt) = match (env::var_os(FRAME), env::var_os(ATTEMPT)) {
        (None, None) => return Ok(None),
        (frame, attempt) => (frame.unwrap_or_default(), attempt.unwrap_or_default()),
    };
    let ids = frame.to_str().and_then(|frame| frame.parse().ok()).zip(attempt.to_str().and_then(|id| id.parse().ok()));
    let (frame, attempt) = ids.ok_or_else(|| {
        CliError::usage(format!("{FRAME} and {ATTEMPT} are set, but are not ids"))
            .hint(format!("agent-cli sets them for its agents: unset {FRAME} {ATTEMPT}"))
    })?;
    Ok(Some(Caller { frame, attempt }))
}

/// How agents are stopped: the user sets how long their tools may take to finish.
pub(crate) fn stopping() -> Result<Stopping, CliError> {
    Ok(Stopping { grace: length_of_time(STOP_GRACE)?.unwrap_or(GRACE), tell: output::tell })
}

/// The number in a variable, at least 1. An empty one counts as unset.
fn number(name: &str) -> Result<Option<u64>, CliError> {
    let Some(text) = env::var(name).ok().filter(|text| !text.is_empty()) else { return Ok(None) };
    match text.parse() {
        Ok(number @ 1..) => Ok(Some(number)),
        _ => Err(CliError::usage(format!("{name} is not a number of at least 1: {text}"))),
    }
}

/// The duration in a variable. An empty one counts as unset.
fn length_of_time(name: &str) -> Result<Option<Duration>, CliError> {
    let Some(text) = env::var(name).ok().filter(|text| !text.is_empty()) else { return Ok(None) };
    let bad = |why| CliError::usage(format!("{name} is not a duration: {why}"));
    Ok(duration(&text).map_err(bad)?.try_into().ok())
}
