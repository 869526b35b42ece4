//! The context of a command: the state directory, the calling agent and the configuration.

mod configuration;
mod environment;
mod opening;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashSet;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::app::chains::run::RunSurroundings;
use crate::app::config::chain_defaults;
use crate::app::config::layers::Settings;
use crate::app::config::setting::{
    LABELS, LEASE, LINGER as LINGER_SETTING, LOG, PRICES, SHARED_DIRECTORIES, STOP_GRACE, TRACES,
};
use crate::app::config::sources::{self, Configuration, Source};
use crate::app::error::{AppError, Refusal};
use crate::app::spawn::in_background::Surroundings;
use crate::app::{App, Asker};
use crate::claude::environment::variables::Variables;
use crate::claude::installation::program;
use crate::claude::processes::marks::{self, Mark, Runner};
pub(crate) use crate::cli::context::environment::{
    CLAUDE, CONFIG, config_of_this_shell, config_path, is_called_by_an_agent, named_claude, named_state_dir,
};
use crate::cli::context::environment::{caller, own_program};
use crate::cli::error::CliError;
use crate::cli::output;
use crate::cli::output::log;
use crate::core::agent::launch::Launch;
use crate::core::attempt::stop_steps::GRACE;
use crate::core::housekeeping::hosting::{NotALabel, Offer};
use crate::core::requests::lingering::LINGER;
use crate::runtime::conclude::spans::Spans;
use crate::runtime::notifications::config_file::{BadConfig, ConfigFile};
use crate::runtime::notifications::sender::{Sender, Voice};
use crate::runtime::protocol::{Asking, Patience};
use crate::runtime::requests::agent_lookup;
use crate::runtime::{HostTerms, RunSettings, RuntimeError, Stopping};
use crate::store::{Caller, StateDir, Store, StoreError, Subscribing};

/// The context of a command.
#[derive(Debug)]
pub(crate) struct Context {
    verbose: bool,
    /// The agent that started this process, directly or indirectly. `None` if a person did.
    pub(crate) caller: Option<Caller>,
    /// The ancestor process that identifies the agent, if this process's environment does not name the agent.
    found_above: Option<i32>,
    /// Sends notifications while this command runs chains.
    sender: RefCell<Option<Sender>>,
    /// The user's config file, once it has been read.
    user_file: OnceCell<Result<Option<Source>, BadConfig>>,
    /// How long calls linger, if the command's options set it.
    linger: Cell<Option<Duration>>,
    /// The server that `--store` names.
    server: Option<String>,
    /// Whether the server that the person named was applied to the state directory.
    is_chosen: Cell<bool>,
    /// The settings files about which the person was told that they cannot be used.
    told_of: RefCell<HashSet<PathBuf>>,
    /// Where spans are sent.
    spans: OnceCell<Option<Arc<Spans>>>,
    /// A store on a server that was opened, or could not be, and that nothing uses now.
    opened: RefCell<Option<Result<Store, StoreError>>>,
}

impl Context {
    /// The context in a process that no agent has started.
    pub(crate) fn of_person() -> Self {
        Self {
            verbose: false,
            caller: None,
            found_above: None,
            sender: RefCell::default(),
            user_file: OnceCell::new(),
            linger: Cell::default(),
            server: None,
            is_chosen: Cell::new(false),
            told_of: RefCell::default(),
            spans: OnceCell::new(),
            opened: RefCell::default(),
        }
    }

    pub(crate) fn from_environment(verbose: bool) -> Result<Self, CliError> {
        let own = caller()?;
        let mut context = Self { verbose, caller: own, ..Self::of_person() };
        // The farthest ancestor counts, because the agent may have started nearer ancestors with any environment. Ancestors
        // with another state directory do not count.
        let state_dir = context.place().ok();
        // Several state directories may use one server.
        let counts = |mark: &Mark, dir: &Path| mark.is_of(dir) || Store::is_shared(&mark.state_dir);
        let above = state_dir.and_then(|dir| marks::marks().filter(|mark| counts(mark, &dir)).last());
        if let Some(Mark { process, frame, attempt, .. }) = above {
            let caller = Caller { frame, attempt };
            context.found_above = (own != Some(caller)).then_some(process);
            context.caller = Some(caller);
        }
        Ok(context)
    }

    /// Sets the server that `--store` names.
    pub(crate) fn with_server(self, server: Option<String>) -> Result<Self, CliError> {
        if self.caller.is_some() && server.is_some() {
            return Err(CliError::usage("agents cannot choose where chains are recorded").hint("leave out --store"));
        }
        Ok(Self { server, ..self })
    }

    /// The caller of this command. Only commands that record a person's identity look it up.
    pub(crate) fn asker(&self) -> Asker {
        let runner = if self.caller.is_none() { self.runner() } else { None };
        Asker { agent: self.caller, found_above: self.found_above, runner, ..Asker::default() }
    }

    /// The ancestor process that runs agents, unless this belongs to a command of `[on]`.
    fn runner(&self) -> Option<i32> {
        let Runner { process, notifications } = marks::runner(StateDir::is_lock_of_runner)?;
        let is_of_command = || {
            let store = self.store().ok()?;
            agent_lookup::is_of_notification(&store, &notifications).ok()
        };
        (notifications.is_empty() || is_of_command() != Some(true)).then_some(process)
    }

    /// The base of relative paths. Only operations that need the directory fail if it was removed.
    pub(crate) fn directory() -> PathBuf {
        env::current_dir().unwrap_or_default()
    }

    /// The context for this command's use cases.
    pub(crate) fn app<'a>(&self, store: &'a Store) -> App<'a> {
        App { asker: self.asker(), ..self.app_to_poll(store) }
    }

    /// Like [`Self::app`], for a use case that is no decision of a person: a poll does not look at the processes above it again.
    pub(crate) fn app_to_poll<'a>(&self, store: &'a Store) -> App<'a> {
        let asker = Asker { agent: self.caller, found_above: self.found_above, ..Asker::default() };
        let variables = Variables::of_process();
        App { store, asker, directory: Self::directory(), variables, now: Timestamp::now() }
    }

    /// Like [`Self::app`], for operations that record a person's identity.
    pub(crate) fn app_with_origin<'a>(&self, store: &'a Store) -> App<'a> {
        let app = self.app(store);
        App { asker: Asker { origin: marks::origin(), ..app.asker }, ..app }
    }

    /// Like [`Self::app_with_origin`], with everything that distinguishes a person from a process that an agent started.
    pub(crate) fn app_to_decide<'a>(&self, store: &'a Store) -> App<'a> {
        let app = self.app_with_origin(store);
        App { asker: Asker { sessions: marks::sessions().collect(), ..app.asker }, ..app }
    }

    /// The calling agent's details for the hook and the approval tool. `None` if no agent calls.
    pub(crate) fn asking(&self) -> Result<Option<Asking>, CliError> {
        let Some(caller) = self.caller else { return Ok(None) };
        let home = env::var("HOME").unwrap_or_default();
        let (state_dir, own_program) = (self.state_dir()?, own_program()?);
        Ok(Some(Asking { caller, state_dir, own_program, home, patience: Patience::default() }))
    }

    /// The settings for a run. `claude` is the program that the user named on the command line.
    pub(crate) fn settings(&self, claude: Option<PathBuf>) -> Result<RunSettings, AppError> {
        let claude = claude.or_else(named_claude);
        let (own_program, settings) = (own_program()?, self.usable_configuration()?.settings);
        let configured = || settings.seconds(&LINGER_SETTING).map(Duration::from_secs);
        let linger = self.linger.get().or_else(configured).unwrap_or(LINGER);
        let (config, prices) = (config_path(), settings.prices(&PRICES));
        let stopping = stopping(&settings);
        let (host, spans) = (host_terms(&settings)?, self.spans(&settings));
        let places = None;
        Ok(RunSettings {
            config,
            claude,
            own_program,
            stale_check: true,
            stopping,
            linger,
            places,
            prices,
            host,
            spans,
        })
    }

    /// Sends spans to the collector that the settings name. A process that an agent has started sends none, because the agent could
    /// have named any collector.
    fn spans(&self, settings: &Settings) -> Option<Arc<Spans>> {
        let start = || {
            let url = settings.text(&TRACES).filter(|url| self.caller.is_none() && !url.is_empty())?;
            let started = Spans::new(&url).inspect_err(|error| {
                output::warn(&format!("no traces are sent: {}: {error}", TRACES.key));
                output::hint("agent-cli config set traces http://127.0.0.1:4318");
            });
            started.ok().map(Arc::new)
        };
        self.spans.get_or_init(start).clone()
    }

    /// Sets how long calls linger, from the command's options.
    pub(crate) fn set_linger(&self, time: Option<Duration>) {
        self.linger.set(time);
    }

    /// The options for stopping agents, from the user's settings.
    pub(crate) fn stopping(&self) -> Result<Stopping, AppError> {
        Ok(stopping(&self.usable_configuration()?.settings))
    }

    /// The launch options of a new chain that is started from this shell.
    pub(crate) fn launch(&self) -> Result<Launch, AppError> {
        Ok(chain_defaults::launch(&self.usable_configuration()?.settings, &Variables::of_process()))
    }

    /// Reads the commands in a person's config file, and reports all problems of the file. `None` if there is no file.
    pub(crate) fn config(&self) -> Result<Option<ConfigFile>, BadConfig> {
        config_path().map_or(Ok(None), |path| sources::commands_in(&path))
    }

    /// As [`Self::config`], for a command that reports the problems itself.
    pub(crate) fn config_to_report(&self) -> Result<Option<ConfigFile>, BadConfig> {
        config_path().iter().for_each(|path| self.tells_of(path));
        self.config()
    }

    /// Starts sending notifications, if a person has subscribed to any. An agent's process sends none and changes no
    /// subscription, because the agent could have given it any config file.
    pub(crate) fn start_notifications(&self) -> Result<(), CliError> {
        if self.caller.is_some() || self.sender.borrow().is_some() {
            return Ok(());
        }
        let config = match self.config() {
            Ok(config) => config,
            Err(error) => {
                self.warn_of(&error);
                return Ok(());
            }
        };
        self.warn_of_problems(&self.usable_configuration()?);
        let Some(config) = config else { return self.forget_config() };
        if config.commands.of.is_empty() {
            return self.forget_config();
        }
        let sender = Sender::start(&self.store()?, config, &own_program()?, VOICE)?;
        self.sender.replace(Some(sender));
        Ok(())
    }

    /// Like [`Self::start_notifications`], for a command that keeps running: changes of the config file take effect.
    pub(crate) fn follow_config(&self) -> Result<(), CliError> {
        if let (None, Some(path)) = (self.caller, config_path()) {
            self.tells_of(&path);
            self.sender.replace(Some(Sender::follow(
                &self.store()?,
                path,
                sources::commands_in,
                &own_program()?,
                VOICE,
            )?));
        }
        Ok(())
    }

    /// Ends the subscription if the config file no longer contains commands, or no longer exists. The subscription stays in
    /// effect if this process cannot see the file, as under cron.
    fn forget_config(&self) -> Result<(), CliError> {
        let is_over = |config: &PathBuf| {
            config_path().as_ref() == Some(config) || config.try_exists().is_ok_and(|exists| !exists)
        };
        let store = self.store()?;
        // Other hosts have config files at the same path.
        let known = if Store::is_shared(store.dir().path()) { None } else { store.outbox().subscription()? };
        match known.filter(|it| is_over(&it.config)) {
            Some(over) => Ok(store.outbox().subscribe(&Subscribing::NoLonger(over.config))?),
            None => Ok(()),
        }
    }

    /// Sends pending notifications before the command ends. Only a driver also sends those that other commands have left.
    pub(crate) fn finish_notifications(&self, is_driver: bool) {
        if is_driver && self.sender.borrow().is_none() && self.are_notifications_due() {
            // An error must not affect the result of the command.
            if let Err(error) = self.start_notifications() {
                let _ = error.report();
            }
        }
        if let Some(sender) = self.sender.take() {
            sender.finish();
        }
    }

    /// Starts the log.
    pub(crate) fn start_log(&self) {
        let filter = self.usable_configuration().ok().and_then(|found| found.settings.text(&LOG));
        log::start(self.verbose, filter);
    }
}

const VOICE: Voice = Voice { tell: output::tell, warn: output::warn, hint: output::hint };

impl RunSurroundings for Context {
    fn run_settings(&self, claude: Option<PathBuf>) -> Result<RunSettings, AppError> {
        self.settings(claude)
    }

    fn launch(&self) -> Result<Launch, AppError> {
        self.launch()
    }

    fn claude(&self, named: Option<&Path>) -> Result<PathBuf, AppError> {
        let named = named.map(Path::to_owned).or_else(named_claude);
        let path = env::var_os("PATH");
        Ok(program::locate(named.as_deref(), None, path.as_deref()).map_err(RuntimeError::from)?)
    }
}

impl Surroundings for Context {
    fn configuration(&self, cwd: &Path) -> Result<Configuration, AppError> {
        self.configuration(cwd)
    }
}

/// How this host takes part in a shared database.
fn host_terms(settings: &Settings) -> Result<HostTerms, AppError> {
    let bad = |error: NotALabel| Refusal::new(format!("labels: {error}")).hint("agent-cli config edit");
    let labels = settings.words(&LABELS).join(" ").parse().map_err(bad)?;
    let shared = settings.words(&SHARED_DIRECTORIES).into_iter().map(PathBuf::from).collect();
    let lease = settings.seconds(&LEASE).map_or_else(|| HostTerms::default().lease, Duration::from_secs);
    // A guard needs some time to end its agent.
    let lease = lease.clamp(Duration::from_secs(2), Duration::from_secs(3600));
    Ok(HostTerms { lease, offer: Offer { labels, shared } })
}

/// The options for stopping agents.
fn stopping(settings: &Settings) -> Stopping {
    Stopping { grace: settings.seconds(&STOP_GRACE).map_or(GRACE, Duration::from_secs), tell: output::tell }
}
