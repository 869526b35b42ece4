//! `agent-cli spawn`: starts a chain; if an agent calls it, requests a child.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::app::chains::run;
use crate::app::config::launch;
use crate::app::config::setting;
use crate::app::config::sources::Configuration;
use crate::app::lookup;
use crate::claude::doctor::{crontab, surroundings};
use crate::claude::environment::inherited;
use crate::claude::environment::variables::Variables;
use crate::claude::installation::program;
use crate::claude::invocation::STATE_DIR;
use crate::claude::settings::permission_rules;
use crate::cli::arguments::candidates;
use crate::cli::arguments::claude_args::ForClaude;
use crate::cli::arguments::limits::LimitOptions;
use crate::cli::arguments::tasks::Tasks;
use crate::cli::chain::drive;
use crate::cli::chain::request;
use crate::cli::context::{CONFIG, Context, claude_session};
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::{hint, tell, warn};
use crate::cli::report::chain_status::OutputOptions;
use crate::core::agent::launch::{Launch, OnPermission};
use crate::core::agent::overrides::Overrides;
use crate::core::agent::permission_mode;
use crate::core::chain::frame::Task;
use crate::core::chain::limits::Limits;
use crate::core::id::ChainName;
use crate::core::text::duration::duration;
use crate::runtime::requests::agent_request::AgentRequest;
use crate::runtime::requests::fork::{self, BadSource, Source};
use crate::runtime::requests::record::{self, SpawnRequest};
use crate::runtime::worktrees::worktree;
use crate::runtime::{RunSettings, RuntimeError};
use crate::store::{Caller, Chains, Store};

/// Start one agent for each FILE of instructions
///
/// Runs the agent, and every agent that it starts, until nothing in the chain can run. Prints the reply when the agent
/// is done, or `SGN_PEND_STARTED (ID)` when the chain waits for something; `agent-cli resume ID` continues it.
///
/// Several files start several agents at once. Their replies are printed together, each under a heading, when all
/// agents have ended; ID is the id of the group. An agent that fails does not stop the others: the exit status is then
/// 1, and `resume ID` retries the failed ones.
///
/// When an agent calls this, the call is suspended and returns the child's reply. If calls cannot be suspended, it
/// prints `SGN_PEND_STARTED (ID)` at once: the child runs after the agent has ended its turn, and the reply arrives in
/// a later prompt.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli spawn ins1.md --permission-mode acceptEdits -- --max-turns 50
  agent-cli spawn review1.md review2.md --fork-from 4f2c1a90
  agent-cli spawn --prompt 'Which licence is this under?'")]
pub(crate) struct Spawn {
    #[command(flatten)]
    tasks: Tasks,

    /// Directory in which the agents work, with its project settings [default: the current directory]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// Give each agent its own git worktree, on a new branch from the last commit
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    worktree: Option<bool>,

    /// Name the chain, for use instead of its id
    #[arg(long, value_name = "NAME")]
    name: Option<ChainName>,

    /// Start from a copy of the conversation of another agent or any Claude session
    #[arg(long, value_name = "ID", add = candidates::agents())]
    fork_from: Option<String>,

    /// Model, as for `claude --model` [default with --fork-from: the model of that conversation]
    #[arg(long)]
    model: Option<String>,

    /// Permission mode, as for `claude --permission-mode` [default: $AGENT_CLI_PERMISSION_MODE]
    #[arg(long, value_name = "MODE")]
    permission_mode: Option<String>,

    /// When a tool call needs an approval: deny it, or pause and ask a person [default: the caller's choice, or deny]
    #[arg(long, value_name = "WHAT", value_parser = on_permission())]
    on_permission: Option<OnPermission>,

    /// Stop each of these agents when it has run for this long and its tool is done; waiting does not count
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    timeout: Option<u64>,

    /// Take files in this folder as questions: see docs/question-files.md
    ///
    /// An agent that ends its turn with a last line QUESTION_POSTED:NAME has asked what is in DIR/pending/NAME.json. The
    /// answer may be given as any other, or by a program in DIR/answered/NAME.json.
    #[arg(long, value_name = "DIR", value_parser = questions_dir)]
    questions_dir: Option<PathBuf>,

    /// The claude program to run [default: $AGENT_CLI_CLAUDE, or claude in PATH]
    #[arg(long, value_name = "PATH")]
    claude: Option<PathBuf>,

    /// Let agents pause by ending their turn with a signal, not inside a tool call
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    no_hooks: Option<bool>,

    /// Do not report to agents which files changed while they waited
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    no_stale_check: Option<bool>,

    #[command(flatten)]
    output_options: OutputOptions,

    #[command(flatten)]
    args: ForClaude,

    // Last, because its heading applies to all options that follow.
    #[command(flatten)]
    limits: LimitOptions,
}

impl Spawn {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let Some(caller) = context.caller else { return self.start(context) };
        let json = self.output_options.prints_json();
        request::make(context, caller, json, |store| self.resolve(store, caller))
    }

    /// The calling agent's request.
    pub(crate) fn resolve(self, store: &Store, caller: Caller) -> Result<AgentRequest, CliError> {
        self.limits.refuse_to_agents()?;
        self.output_options.refuse_to_agents()?;
        if self.claude.is_some() || self.no_hooks.is_some() || self.no_stale_check.is_some() {
            let message = "agents cannot use --no-hooks, --no-stale-check or --claude";
            return Err(CliError::usage(message).hint("leave them out"));
        }
        if self.questions_dir.is_some() {
            return Err(CliError::usage("agents cannot use --questions-dir")
                .hint("leave it out: your agents have the folder that the chain has"));
        }
        if self.name.is_some() {
            return Err(CliError::usage("agents cannot name chains").hint("leave --name out"));
        }
        let apart = self.worktree.unwrap_or(false);
        let request = self.request(apart, |id| Ok(fork::source_for_agent(store, caller, &id.parse()?)?))?;
        let overrides = Overrides {
            model: self.model,
            permission_mode: self.permission_mode,
            on_permission: self.on_permission,
            args: self.args.parsed()?,
            timeout: self.timeout,
        };
        Ok(AgentRequest::Spawn(Box::new(request), overrides))
    }

    /// The request, checked. `source` finds the conversation to begin with.
    fn request(
        &self,
        apart: bool,
        source: impl FnOnce(&str) -> Result<Source, CliError>,
    ) -> Result<SpawnRequest, CliError> {
        let tasks = self.tasks.checked()?;
        let named = self.cwd.as_deref().map(working_directory).transpose()?;
        self.args.parsed()?;
        let source = self.fork_from.as_deref().map(source).transpose()?;
        let cwd = match (&source, named) {
            (Some(source), Some(named)) if named != source.cwd => {
                return Err(RuntimeError::from(BadSource::Elsewhere(source.cwd.clone())).into());
            }
            (Some(source), _) => source.cwd.clone(),
            (None, Some(named)) => named,
            (None, None) => working_directory(Path::new("."))?,
        };
        Ok(SpawnRequest { tasks, cwd, apart, source })
    }

    fn start(self, context: &Context) -> Result<ExitStatus, CliError> {
        let named = self.cwd.as_deref().unwrap_or(Path::new("."));
        let found = context.configuration(&working_directory(named)?)?;
        let configured = &found.settings;
        let of_this_shell = launch::launch(configured, &Variables::of_process());
        let apart = self.worktree.unwrap_or(configured.is_on(&setting::WORKTREE));
        let request = self.request(apart, |id| {
            let store = context.store()?;
            Ok(fork::source(&store, &lookup::id_of(&context.app(&store), id)?, &of_this_shell)?)
        })?;
        let claude = self.claude.or_else(|| configured.given(&setting::CLAUDE)?.path());
        let settings = context.settings(claude)?;
        let path = std::env::var_os("PATH");
        let of_source = request.source.as_ref().and_then(|source| source.model.clone());
        let limits = Limits::default().changed(self.limits.given().or(launch::limits(configured)));
        let launch = Launch {
            claude: program::locate(settings.claude.as_deref(), None, path.as_deref())?,
            model: self.model.or(of_source).or_else(|| configured.text(&setting::MODEL)),
            permission_mode: self.permission_mode.or(of_this_shell.permission_mode),
            args: launch::args(configured)?.and(&self.args.parsed()?),
            no_hooks: self.no_hooks.unwrap_or(configured.is_on(&setting::NO_HOOKS)),
            no_stale_check: self.no_stale_check.unwrap_or(configured.is_on(&setting::NO_STALE_CHECK)),
            on_permission: self.on_permission.unwrap_or(launch::on_permission(configured)),
            timeout: self.timeout.or_else(|| configured.seconds(&setting::TIMEOUT)),
            questions_dir: self.questions_dir.map_or_else(|| launch::questions_dir(configured), |dir| Ok(Some(dir)))?,
            ..of_this_shell
        }
        .with_native_questions();
        say_what_needs_trust(&found);
        if launch.on_permission == OnPermission::Ask && !launch.native_questions {
            let message = "--on-permission ask does not work with --no-hooks or --permission-prompt-tool";
            return Err(CliError::usage(message).hint("leave one of them out"));
        }
        request.tasks.iter().try_for_each(|named| readable(&named.task, &request.cwd, &launch))?;
        let store = context.store()?;
        let app = context.app(&store);
        warn_of_reach(&store, &settings, &launch, Some(request.cwd.as_path()).filter(|_| !request.apart));
        run::check(&store, &settings, &launch, &request.cwd)?;
        let top = record::start(&store, &request, &launch, limits, claude_session(), self.name)?;
        say_what_is_dropped(&app.variables);
        if request.apart && worktree::has_uncommitted_changes(&request.cwd) {
            let cwd = request.cwd.display();
            tell(&format!("the worktree starts from the last commit, without the uncommitted changes in {cwd}"));
        }
        let exit = drive::drive_new(context, &store, &settings, top, self.output_options)?;
        // It may be resumed from a different directory.
        let waits = store.frame(top)?.is_some_and(|frame| !frame.state.is_over());
        // Whoever has started chains before knows it.
        if waits && store.chains(Chains::Newest { most: 2, kinds: None })?.chains.len() == 1 {
            warn_of_login(&request.cwd, &app.variables, &launch);
        }
        Ok(exit)
    }
}

/// Names the values of the project's file that do not count because the user has not trusted it.
fn say_what_needs_trust(found: &Configuration) {
    let untrusted = found.settings.ignored.iter().filter(|it| it.needs_trust);
    let keys: Vec<_> = untrusted.map(|it| it.setting.key).collect();
    if let (Some(file), false) = (&found.project, keys.is_empty()) {
        warn(&format!(
            "{} also sets {}: ignored, because you have not trusted the file",
            file.display(),
            keys.join(", ")
        ));
        hint("read it, then run agent-cli config trust");
    }
}

/// Warns about agents that could move away the folder of what says which commands are run: from `acceptEdits` on, Claude Code lets
/// agents move what is in their directories. It is no error, because a person may work in their home directory.
fn warn_of_reach(store: &Store, settings: &RunSettings, launch: &Launch, cwd: Option<&Path>) {
    if !launch.covers(permission_mode::ACCEPT_EDITS) {
        return;
    }
    let real = |path: &Path| fs::canonicalize(path).ok();
    let config = settings.config.as_deref().filter(|config| config.exists());
    let named = config.map(|config| ("the config file", CONFIG, config.to_owned()));
    let led_to = config.and_then(real).map(|config| ("the config file", CONFIG, config));
    let state = ("the state directory", STATE_DIR, store.dir().path().to_owned());
    let added = launch.args.pairs().filter(|(name, _)| *name == "--add-dir").filter_map(|(_, value)| value);
    let added = added.filter_map(|dir| real(&cwd.unwrap_or(Path::new("/")).join(dir)));
    let dirs: Vec<PathBuf> = cwd.map(Path::to_owned).into_iter().chain(added).collect();
    let mut places = named.into_iter().chain(led_to).chain([state]);
    let found = places.find_map(|place| dirs.iter().find(|dir| place.2.starts_with(dir)).map(|dir| (place, dir)));
    let Some(((what, variable, place), dir)) = found else { return };
    warn(&format!(
        "agents that may change files in {} could replace {what} {}, which says what is run as you",
        dir.display(),
        place.display()
    ));
    hint(&format!("set {variable} to a place outside of it, or have them work elsewhere: --cwd DIR"));
}

/// Names the variables that somebody has set for Claude Code and that agents do not get.
fn say_what_is_dropped(variables: &Variables) {
    let dropped = inherited::dropped_on_purpose(variables.set());
    if !dropped.is_empty() {
        let s = if dropped.len() == 1 { "" } else { "s" };
        warn(&format!("agents do not get the variable{s} {}, which could break a chain", dropped.join(", ")));
        hint("put what agents need into the settings of Claude Code; docs/protocol.md lists what they inherit");
    }
}

/// Warns about a login that is missing if a chain with these launch options is resumed from another environment.
fn warn_of_login(cwd: &Path, variables: &Variables, launch: &Launch) {
    let around = surroundings::look(cwd, variables, launch);
    if !around.login_only_here.is_empty() {
        let missing = crontab::only_here(&around.login_only_here);
        warn(&format!("{missing}: agent-cli resume from cron would not have it"));
        hint(&format!("{}, or into the crontab; agent-cli doctor --cron checks", crontab::put_into(&around)));
    }
}

/// Refuses instructions that the agent could not read: Claude Code has no rule for some paths.
fn readable(task: &Task, cwd: &Path, launch: &Launch) -> Result<(), CliError> {
    let Task::File(path) = task else { return Ok(()) };
    let is_readable = match permission_rules::is_always_asked_about(path) {
        true => false,
        false => path.starts_with(cwd) || permission_rules::read(path).is_some(),
    };
    if is_readable || launch.is_unrestricted() || launch.on_permission == OnPermission::Ask {
        return Ok(());
    }
    let message = format!("an agent would need an approval to read {}", path.display());
    Err(CliError::usage(message).hint(
        "rename it: Claude Code cannot allow a path that contains ?, or a name that ends in a space, a dot or \\",
    ))
}

pub(super) fn questions_dir(named: &str) -> Result<PathBuf, String> {
    launch::real_questions_dir(named.as_ref())
}

/// A number of seconds, at least one.
fn timeout(text: &str) -> Result<u64, String> {
    let seconds = duration(text)?.as_secs().try_into().ok();
    seconds.filter(|seconds| *seconds > 0).ok_or_else(|| "give at least one second".to_owned())
}

fn on_permission() -> impl TypedValueParser<Value = OnPermission> {
    let named = |name: String| if name == "ask" { OnPermission::Ask } else { OnPermission::Deny };
    PossibleValuesParser::new(["deny", "ask"]).map(named)
}

fn working_directory(named: &Path) -> Result<PathBuf, CliError> {
    let cannot = |why: &str| CliError::usage(format!("cannot work in {}: {why}", named.display()));
    let cwd = fs::canonicalize(named).map_err(|error| cannot(&error.to_string()))?;
    if !cwd.is_dir() {
        return Err(cannot("it is not a directory"));
    }
    match cwd.to_str() {
        Some(text) if !text.chars().any(char::is_control) => Ok(cwd),
        _ => Err(cannot("its path is not UTF-8 or contains a control character").hint("rename it")),
    }
}
