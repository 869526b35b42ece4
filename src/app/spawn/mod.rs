//! Starts a chain for a person, or requests agents for an agent.

pub(crate) mod in_background;
pub(crate) mod instructions;
pub(crate) mod named_file;
pub(crate) mod note;
mod schema;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::app::chains;
use crate::app::chains::estimate::Estimator;
use crate::app::config::chain_defaults;
use crate::app::config::setting;
use crate::app::config::sources::Configuration;
use crate::app::error::{AppError, Refusal};
use crate::app::housekeeping::hosts::{begins_anywhere, shared};
use crate::app::spawn::note::SpawnNote;
use crate::app::view::estimate::{AgentEstimateView, EstimateView, Starts};
use crate::app::{App, GivenText, lookup};
use crate::claude::environment::variables::Variables;
use crate::claude::installation::program;
use crate::claude::invocation::SESSION;
use crate::claude::options;
use crate::claude::settings::permission_rules;
use crate::core::agent::launch::{Launch, OnPermission};
use crate::core::agent::overrides::Overrides;
use crate::core::chain::frame::Task;
use crate::core::chain::limits::{Limits, NewLimits};
use crate::core::housekeeping::hosting::Labels;
use crate::core::id::{ChainName, FrameId, SessionId};
use crate::core::requests::request::SpawnForm;
use crate::runtime::requests::agent_lookup;
use crate::runtime::requests::agent_request::AgentRequest;
use crate::runtime::requests::fork::{self, BadSource, ForkSource};
use crate::runtime::requests::spawn_request::{self, NamedTask, SpawnRequest};
use crate::runtime::worktrees::remote;
use crate::runtime::{RunSettings, RuntimeError};
use crate::store::Caller;

/// A request to start agents. Settings provide the omitted values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Input {
    /// The instructions of each agent: a file that the agent reads, or a text. At least one.
    pub(crate) tasks: Vec<GivenText>,
    /// The working directory of the agents. The default is the asker's directory.
    pub(crate) cwd: Option<PathBuf>,
    /// Whether each agent works in its own git worktree.
    pub(crate) worktree: Option<bool>,
    /// The name of the git remote to which the worktrees are pushed.
    pub(crate) remote: Option<String>,
    pub(crate) name: Option<ChainName>,
    /// The labels of the host that runs the chain, if that need not be this one.
    pub(crate) on: Option<Labels>,
    /// The conversation that the agents start with, if it is not empty.
    pub(crate) fork: Option<ForkOf>,
    /// How the reply is used.
    pub(crate) form: SpawnForm,
    /// Whether the agents form their own chain, for which the asker does not wait.
    pub(crate) detached: bool,
    pub(crate) model: Option<String>,
    pub(crate) permission_mode: Option<String>,
    pub(crate) on_permission: Option<OnPermission>,
    /// How many agents each agent may start with Claude Code's own tools.
    pub(crate) native_agents: Option<u32>,
    /// The file with the JSON Schema of the replies.
    pub(crate) schema: Option<PathBuf>,
    /// Whether an agent gets an object with the results.
    pub(crate) json: bool,
    /// In seconds.
    pub(crate) timeout: Option<u64>,
    pub(crate) questions_dir: Option<PathBuf>,
    pub(crate) claude: Option<PathBuf>,
    pub(crate) no_hooks: Option<bool>,
    pub(crate) no_stale_check: Option<bool>,
    /// Arguments for `claude`.
    pub(crate) args: Vec<String>,
    pub(crate) limits: NewLimits,
}

/// A conversation to start with.
#[derive(Clone, Debug)]
pub(crate) enum ForkOf {
    /// The asker's own conversation. With `cold`, options may prevent its forks from sharing the prompt cache.
    Asker { cold: bool },
    /// The conversation of the agent or session with this id or name.
    Named(String),
}

/// A new chain, which is not running yet.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) chain: FrameId,
    pub(crate) cwd: PathBuf,
    pub(crate) launch: Launch,
    /// The settings with which to run it.
    pub(crate) run: RunSettings,
}

/// Builds the caller's request for agents. Writes nothing.
pub(super) fn request(
    app: &App<'_>,
    caller: Caller,
    input: Input,
    standard_input: &mut dyn Read,
) -> Result<AgentRequest, AppError> {
    refuse_to_agents(&input)?;
    let is_apart = input.worktree.unwrap_or(false);
    let tasks = instructions::tasks(&app.directory, &input.tasks, standard_input)?;
    let request = checked(app, &input, tasks, is_apart, |of| {
        Ok(match of {
            ForkOf::Asker { cold } => {
                if !cold {
                    refuse_to_miss_the_cache(&input)?;
                }
                fork::source_of_caller(app.store, caller)?
            }
            ForkOf::Named(id) => fork::source_for_agent(app.store, caller, &id.parse()?)?,
        })
    })?;
    let below = agent_lookup::reads_only_in(app.store, caller)?;
    let schema = input.schema.as_deref().map(|named| schema::read(app, named, below.as_deref())).transpose()?;
    let Input { model, permission_mode, on_permission, native_agents, timeout, args, .. } = input;
    let args = options::parse(&args).map_err(Refusal::from)?;
    let overrides = Overrides { model, permission_mode, on_permission, native_agents, args, timeout, schema };
    Ok(AgentRequest::Spawn(Box::new(request), overrides))
}

/// Refuses options with which a fork would miss its caller's prompt cache. Such a fork costs as much as the whole
/// conversation.
fn refuse_to_miss_the_cache(input: &Input) -> Result<(), Refusal> {
    let (option, why) = if input.model.is_some() {
        ("--model", "the cache belongs to one model")
    } else if input.worktree == Some(true) {
        ("--worktree", "the conversation begins with the working directory")
    } else if input.native_agents == Some(0) {
        ("--native-agents off", "tools come before the conversation")
    } else if !input.args.is_empty() {
        ("arguments after --", "tools, agents, settings and prompts come before the conversation")
    } else {
        return Ok(());
    };
    let message = format!("a fork with {option} would not share the caller's prompt cache: {why}");
    Err(Refusal::new(message).hint("leave it out, or add --cold to pay for reading the conversation anew"))
}

fn refuse_to_agents(input: &Input) -> Result<(), Refusal> {
    // The caller's reply is exactly the new agent's reply, so it cannot mention the worktree.
    if input.form == SpawnForm::Handoff && input.worktree == Some(true) {
        let message = "--handoff does not work with --worktree: the reply would not say where the work is";
        return Err(Refusal::new(message).hint("leave one of them out"));
    }
    if input.limits.any() {
        return Err(Refusal::limits_of_agents());
    }
    if input.claude.is_some() || input.no_hooks.is_some() || input.no_stale_check.is_some() {
        let message = "agents cannot use --no-hooks, --no-stale-check or --claude";
        return Err(Refusal::new(message).hint("leave them out"));
    }
    if input.questions_dir.is_some() {
        return Err(Refusal::new("agents cannot use --questions-dir")
            .hint("leave it out: your agents have the folder that the chain has"));
    }
    if input.name.is_some() {
        return Err(Refusal::new("agents cannot name chains").hint("leave --name out"));
    }
    if input.remote.is_some() {
        return Err(Refusal::new("agents cannot choose remotes").hint("leave --remote out"));
    }
    if input.on.is_some() {
        return Err(Refusal::new("agents cannot choose hosts").hint("leave --on out"));
    }
    Ok(())
}

/// A chain that passed all checks and can be recorded.
struct Prepared {
    request: SpawnRequest,
    launch: Launch,
    limits: Limits,
    name: Option<ChainName>,
    on: Option<Labels>,
    run: RunSettings,
}

/// Records a new chain of agents with these instructions. `run` are the asker's settings for running chains. `tell` is called
/// with each note for a person as soon as it is known.
pub(crate) fn start(
    app: &App<'_>,
    input: Input,
    tasks: Vec<NamedTask>,
    configuration: &Configuration,
    run: RunSettings,
    tell: &mut dyn FnMut(SpawnNote),
) -> Result<Outcome, AppError> {
    let Prepared { request, launch, limits, name, on, run } = prepare(app, input, tasks, configuration, run, tell)?;
    launch.questions_dir.as_deref().map_or(Ok(()), chain_defaults::make_questions_dir)?;
    // Before the chain is recorded: git may take longer than other processes leave a new chain to this one.
    let uncommitted = note::uncommitted(&request);
    let chain = spawn_request::start(app.store, &request, &launch, limits, session(&app.variables), name, on)?;
    note::dropped(&app.variables).into_iter().chain(uncommitted).for_each(tell);
    Ok(Outcome { chain, cwd: request.cwd, launch, run })
}

/// Estimates the first requests of such a chain. Records nothing.
pub(crate) fn estimate(
    app: &App<'_>,
    input: Input,
    tasks: Vec<NamedTask>,
    configuration: &Configuration,
    run: RunSettings,
    tell: &mut dyn FnMut(SpawnNote),
) -> Result<EstimateView, AppError> {
    let Prepared { request, launch, run, .. } = prepare(app, input, tasks, configuration, run, tell)?;
    let mut estimator = Estimator::new(app, &run);
    let mut agents = Vec::new();
    for named in &request.tasks {
        let first = estimator.of_new(&launch, &request.cwd, request.source.as_ref())?;
        let task = named.task.title();
        agents.push(AgentEstimateView { id: None, task, starts: Starts::Now, afresh: None, request: first });
    }
    Ok(EstimateView::new(None, agents))
}

/// Checks everything about a new chain.
fn prepare(
    app: &App<'_>,
    input: Input,
    tasks: Vec<NamedTask>,
    configuration: &Configuration,
    mut run: RunSettings,
    tell: &mut dyn FnMut(SpawnNote),
) -> Result<Prepared, AppError> {
    match input.form {
        SpawnForm::Call => {}
        SpawnForm::Handoff => {
            return Err(Refusal::new("only an agent can hand off: the call ends its turn")
                .hint("leave --handoff out")
                .into());
        }
        SpawnForm::Background if input.detached => {}
        SpawnForm::Background => {
            return Err(Refusal::new("only an agent has a background: it continues beside those that it calls there")
                .hint("use --detach: it prints the id of the chain, which runs on its own")
                .into());
        }
    }
    let settings = &configuration.settings;
    let of_environment = chain_defaults::launch(settings, &app.variables);
    let is_apart = input.worktree.unwrap_or(settings.is_on(&setting::WORKTREE));
    let mut request = checked(app, &input, tasks, is_apart, |of| match of {
        ForkOf::Asker { .. } => Err(Refusal::new("only an agent can fork: there is no conversation to start with")
            .hint("name one: --fork-from ID")
            .into()),
        ForkOf::Named(id) => Ok(fork::source(app.store, &lookup::id_of(app, id)?, &of_environment)?),
    })?;
    if input.remote.is_some() && !is_apart {
        return Err(Refusal::new("--remote does not work without --worktree: only worktrees are pushed")
            .hint("add --worktree, or leave --remote out")
            .into());
    }
    let remote = input.remote.clone().or_else(|| settings.text(&setting::REMOTE)).filter(|_| is_apart);
    request.remote = remote.map(|name| remote::resolve(&request.cwd, &name).map_err(RuntimeError::from)).transpose()?;
    let claude = input.claude.clone().or_else(|| settings.given(&setting::CLAUDE)?.path());
    run.claude = claude.map(|named| program_named(app, named)).or(run.claude);
    let limits = Limits::default().changed(input.limits.or(chain_defaults::limits(settings)));
    let (name, on) = (input.name.clone(), input.on.clone());
    if on.is_some() {
        shared(app.store)?;
        begins_anywhere(is_apart && request.remote.is_none(), request.source.is_some())?;
    }
    let launch = launch_options(app, input, configuration, of_environment, &request, &run)?;
    run.claude = run.claude.map(|_| launch.claude.clone());
    note::untrusted(configuration).into_iter().for_each(&mut *tell);
    note::settings(app, &request, &launch).into_iter().for_each(&mut *tell);
    note::undefined(app, &request, &launch).into_iter().for_each(&mut *tell);
    note::can_ask(&launch, &request.cwd)?;
    request.tasks.iter().try_for_each(|named| readable(&named.task, &request.cwd, &launch))?;
    let works_in = Some(request.cwd.as_path()).filter(|_| !request.apart);
    note::reach(app.store, &run, &launch, works_in).into_iter().for_each(tell);
    chains::run::check(app.store, &run, &launch, &request.cwd)?;
    Ok(Prepared { request, launch, limits, name, on, run })
}

/// Builds the launch options of the agents. Options take precedence over settings.
fn launch_options(
    app: &App<'_>,
    input: Input,
    configuration: &Configuration,
    of_environment: Launch,
    request: &SpawnRequest,
    run: &RunSettings,
) -> Result<Launch, AppError> {
    let settings = &configuration.settings;
    let of_source = request.source.as_ref().and_then(|source| source.model.clone());
    let launch = Launch {
        claude: program::locate(run.claude.as_deref(), None, app.variables.value("PATH"))
            .map_err(RuntimeError::from)?,
        model: input.model.or(of_source).or_else(|| settings.text(&setting::MODEL)),
        permission_mode: input.permission_mode.or(of_environment.permission_mode),
        args: chain_defaults::args(settings)?.and(&options::parse(&input.args).map_err(Refusal::from)?),
        no_hooks: input.no_hooks.unwrap_or(settings.is_on(&setting::NO_HOOKS)),
        no_stale_check: input.no_stale_check.unwrap_or(settings.is_on(&setting::NO_STALE_CHECK)),
        native_agents: input.native_agents.or_else(|| settings.count(&setting::NATIVE_AGENTS)),
        on_permission: input.on_permission.unwrap_or(chain_defaults::on_permission(settings)),
        schema: input.schema.as_deref().map(|named| schema::read(app, named, None)).transpose()?,
        timeout: input.timeout.or_else(|| settings.seconds(&setting::TIMEOUT)),
        questions_dir: match input.questions_dir {
            None => chain_defaults::questions_dir(settings)?,
            Some(named) => Some(chain_defaults::new_questions_dir(&app.path(&named))?),
        },
        ..of_environment
    };
    Ok(launch.with_native_questions())
}

/// Builds the request for agents. `source` finds the conversation to begin with.
fn checked(
    app: &App<'_>,
    input: &Input,
    tasks: Vec<NamedTask>,
    is_apart: bool,
    source: impl FnOnce(&ForkOf) -> Result<ForkSource, AppError>,
) -> Result<SpawnRequest, AppError> {
    let named = input.cwd.as_deref().map(|named| working_directory(&app.directory, Some(named))).transpose()?;
    options::parse(&input.args).map_err(Refusal::from)?;
    let source = input.fork.as_ref().map(source).transpose()?;
    let cwd = match (&source, named) {
        (Some(source), Some(named)) if named != source.cwd => {
            return Err(RuntimeError::from(BadSource::Elsewhere(source.cwd.clone())).into());
        }
        (Some(source), _) => source.cwd.clone(),
        (None, named) => named.map_or_else(|| working_directory(&app.directory, None), Ok)?,
    };
    Ok(SpawnRequest {
        tasks,
        cwd,
        apart: is_apart,
        remote: None,
        source,
        form: input.form,
        detached: input.detached,
        json: input.json,
    })
}

/// Resolves the working directory of the agents. The default is the asker's `directory`.
pub(crate) fn working_directory(directory: &Path, named: Option<&Path>) -> Result<PathBuf, Refusal> {
    let named = named.unwrap_or(Path::new("."));
    let cannot = |why: &str| Refusal::new(format!("cannot work in {}: {why}", named.display()));
    let cwd = fs::canonicalize(directory.join(named)).map_err(|error| cannot(&error.to_string()))?;
    if !cwd.is_dir() {
        return Err(cannot("it is not a directory"));
    }
    match cwd.to_str() {
        Some(text) if !text.chars().any(char::is_control) => Ok(cwd),
        _ => Err(cannot("its path is not UTF-8 or contains a control character").hint("rename it")),
    }
}

/// Resolves the name of a program. A name without a slash is looked up in `PATH`. Errors about a missing file show the given
/// name.
fn program_named(app: &App<'_>, named: PathBuf) -> PathBuf {
    let is_path = named.as_os_str().as_encoded_bytes().contains(&b'/');
    Some(app.path(&named)).filter(|path| is_path && path.exists()).unwrap_or(named)
}

/// Refuses instructions that the agent could not read, because Claude Code's rules cannot express some paths.
fn readable(task: &Task, cwd: &Path, launch: &Launch) -> Result<(), Refusal> {
    let Task::File(path) = task else { return Ok(()) };
    let is_always_asked_about = permission_rules::is_always_asked_about(path);
    let is_readable = !is_always_asked_about && (path.starts_with(cwd) || permission_rules::read(path).is_some());
    if is_readable || launch.is_unrestricted() || launch.on_permission == OnPermission::Ask {
        return Ok(());
    }
    let message = format!("an agent would need an approval to read {}", path.display());
    Err(Refusal::new(message).hint(
        "rename it: Claude Code cannot allow a path that contains ?, or a name that ends in a space, a dot or \\",
    ))
}

/// The Claude Code session in whose tool call a person starts the chain.
fn session(variables: &Variables) -> Option<SessionId> {
    variables.value(SESSION)?.to_str()?.parse().ok()
}

#[cfg(test)]
mod tests;
