//! `agent-cli resume`: resumes a chain; if an agent calls it, prints the result of a request.

use std::path::PathBuf;

use clap::{Arg, Args};

use crate::app::lookup;
use crate::claude::installation::program;
use crate::cli::arguments::candidates;
use crate::cli::arguments::claude_args::ForClaude;
use crate::cli::arguments::limits::LimitOptions;
use crate::cli::chain::drive;
use crate::cli::chain::request;
use crate::cli::chain::spawn::questions_dir;
use crate::cli::chain::tell;
use crate::cli::chain::unattended::resume_all::ResumeAll;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::tell;
use crate::cli::report::chain_status::{self, OutputOptions, StatusReport};
use crate::core::agent::launch::Launch;
use crate::core::agent::launch_changes::Repair;
use crate::core::chain::frame_state::FrameState;
use crate::core::id::{FrameId, IdPrefix, SessionId};
use crate::core::requests::request::RequestResult;
use crate::runtime::requests::record;
use crate::runtime::requests::{adopt, agent_lookup};
use crate::runtime::run::frame_error::first_agent;
use crate::runtime::run::status;
use crate::runtime::steering::try_again;
use crate::runtime::{RunSettings, RuntimeError};
use crate::store::{ChainChange, ChainOf, Instruction, ResultUse, Scope, Store, StoreError, Target};

/// Drives the chain below `top` if something in it can run, and reports its status.
pub(super) fn continued(
    context: &Context,
    store: &Store,
    settings: impl FnOnce() -> Result<RunSettings, CliError>,
    top: FrameId,
    output_options: OutputOptions,
) -> Result<ExitStatus, CliError> {
    match status::poll(store, top)? {
        Some(status) => chain_status::print(&StatusReport::new(store, top, status, output_options)?, output_options),
        None => drive::drive(context, store, &settings()?, top, output_options),
    }
}

/// Resume a chain, or show its status
///
/// Continues the chain where it stopped. Prints the reply once the agent is done (every time), `SGN_PEND_STARTED (ID)`
/// when the chain has begun to wait for something new, and `SGN_PEND_ONGOING` while it still waits for the same thing.
/// Polling a waiting chain takes milliseconds and does not start claude, so cron can do it as often as you like.
#[derive(Debug, Args)]
#[command(
    override_usage = "agent-cli resume [OPTIONS] ID [-- <CLAUDE ARGS>...]\n       agent-cli resume --all [OPTIONS]",
    after_help = "Examples, for a crontab:
  * * * * * agent-cli resume 4f2c1a90 >> chain.log
  * * * * * agent-cli resume --all >> chains.log",
    mut_args(without_changes)
)]
pub(crate) struct Resume {
    /// Id of a chain, an agent, a question or a Claude session; its first four characters are enough if unique
    #[arg(required_unless_present = "all", add = candidates::chains())]
    id: Option<String>,

    /// Continue every chain that can continue, and print a line for each
    ///
    /// One line of a crontab is enough for all chains: what waits costs nothing. Chains that failed or were interrupted
    /// are left to you.
    #[arg(long, conflicts_with_all = ["id", "now", "stream", "model", "permission_mode", "args", "stream", "LimitOptions"])]
    all: bool,

    /// With --all: how many agents may run at once over all chains, whichever commands run them [default: 4]
    #[arg(long, value_name = "N", requires = "all", conflicts_with = "id", value_parser = clap::value_parser!(u32).range(1..))]
    max_parallel_total: Option<u32>,

    /// The claude program from now on [default: $AGENT_CLI_CLAUDE this once, or the chain's own]
    #[arg(long, value_name = "PATH")]
    claude: Option<PathBuf>,

    /// Continue an agent that is done, failed or stopped with a new instruction; `-`: from standard input
    ///
    /// The agent continues with its whole conversation, and its new reply is printed. The result for its parent does
    /// not change.
    #[arg(long, value_name = "TEXT", conflicts_with = "all")]
    prompt: Option<String>,

    /// Retry now instead of waiting for a usage limit or backoff
    #[arg(long)]
    now: bool,

    /// Do not report to agents which files changed while they waited
    #[arg(long)]
    no_stale_check: bool,

    /// Model from now on, as for `claude --model`
    #[arg(long)]
    model: Option<String>,

    /// Permission mode from now on, as for `claude --permission-mode`
    #[arg(long, value_name = "MODE")]
    permission_mode: Option<String>,

    /// Take files in this folder as questions from now on: see docs/question-files.md
    #[arg(long, value_name = "DIR", value_parser = questions_dir, conflicts_with = "all")]
    questions_dir: Option<PathBuf>,

    #[command(flatten)]
    output_options: OutputOptions,

    #[command(flatten)]
    args: ForClaude,

    #[command(flatten)]
    limits: LimitOptions,
}

/// A new instruction for an agent, which must be over.
fn instruction(context: &Context, store: &Store, id: FrameId, prompt: String) -> Result<Instruction, CliError> {
    let frame = tell::agent_named(context, store, &id.to_string())?;
    if !frame.state.is_over() {
        let error = CliError::usage(format!("{} is still {}", id.short(), frame.state.name()));
        return Err(error.hint(format!("agent-cli tell {} TEXT sends it a message", id.short())));
    }
    Ok(Instruction { text: tell::given(Some(prompt))?, sender: tell::sender(context) })
}

/// Explains the options that `spawn` has, too, for a chain that exists: what is not given stays as it is.
fn without_changes(argument: Arg) -> Arg {
    let text = match argument.get_id().as_str() {
        "max_depth" => "How deep agents may be nested from now on [default: unchanged]",
        "max_agents" => "How many agents the chain may have from now on [default: unchanged, but at least --max-depth]",
        "max_parallel" => "How many agents may run at the same time from now on [default: unchanged]",
        "max_budget_usd" => {
            "Stop starting agents once this much has been spent in total, in US dollars [default: unchanged]"
        }
        "stall_after" => "Show an agent as stalled when nothing has happened in it for this long [default: unchanged]",
        "args" => "Arguments for every claude process from now on, replacing all earlier ones [default: unchanged]",
        _ => return argument,
    };
    argument.help(text)
}

impl Resume {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let Some(id) = self.id.clone() else {
            let Self { claude, no_stale_check, max_parallel_total, output_options, .. } = self;
            let all = ResumeAll { claude, stale_check: !no_stale_check, max_parallel_total, output_options };
            return all.run(context);
        };
        let repairs = self.repairs()?;
        let changes = self.limits.given().any() || self.now || repairs || self.prompt.is_some();
        let only_looks = context.caller.is_none() && !changes;
        if let Some(report) =
            only_looks.then(|| context.read_snapshot(|store| self.look(store, &id)).flatten()).flatten()
        {
            return chain_status::print(&report, self.output_options);
        }
        if context.caller.is_some() {
            self.refuse_to_agents()?;
        }
        let store = context.store()?;
        let target = self.target(context, &store, &id)?;
        if let Some(caller) = context.caller {
            let result = record::result_for(&store, caller, target)?;
            let printed = request::print_result(result.clone());
            // A failure is printed as the error of this command.
            let is_failure = matches!(result, Some(RequestResult::Failed(_) | RequestResult::Unanswered { .. }));
            // Only after printing: an agent that reads a result twice has lost nothing.
            if let Some(read) = result.filter(|_| is_failure || printed.is_ok()) {
                match store.use_results(caller, ResultUse::LookedUp(target, &read)) {
                    // Nobody gives this attempt anything any more.
                    Err(StoreError::StaleCaller { .. }) => {}
                    used => drop(used.map_err(RuntimeError::from)?),
                }
            }
            return printed;
        }
        let top = lookup::chain_of(&store, target)?;
        let ChainOf { root, name, .. } = store.chain_of(top)?;
        let launch = repairs.then(|| self.repair(context, &store, top)).transpose()?;
        let prompt = self.prompt.clone();
        let instruction = prompt.map(|prompt| instruction(context, &store, top, prompt)).transpose()?;
        // Whatever is refused was refused by now, or is in this transaction.
        let change = ChainChange { limits: self.limits.given(), launch, instruction };
        if change != ChainChange::default() {
            let changed = store.change_chain(top, change)?;
            if changed > 0 {
                tell(&format!("agents that start with new options from now on: {changed}"));
            }
        }
        if self.now {
            try_again::end_pauses(&store, top)?;
        }
        let settings = || {
            let stale_check = !self.no_stale_check;
            Ok(RunSettings { stale_check, ..context.settings(self.claude)? })
        };
        let exit = continued(context, &store, settings, top, self.output_options);
        if let (Some(name), Ok(ChainOf { name: None, .. })) = (name, store.chain_of(root)) {
            tell(&format!("the chain {} is no longer named {name}: another chain has this name", root.short()));
        }
        exit
    }

    fn refuse_to_agents(&self) -> Result<(), CliError> {
        self.limits.refuse_to_agents()?;
        self.output_options.refuse_to_agents()?;
        if self.prompt.is_some() {
            return Err(CliError::usage("agents cannot give others new instructions")
                .hint("agent-cli spawn --prompt TEXT starts an agent with them"));
        }
        if self.now || self.repairs()? {
            let message = "agents cannot use --now or change how claude is started";
            return Err(CliError::usage(message).hint("leave it out"));
        }
        Ok(())
    }

    /// Whether the chain's launch options change.
    fn repairs(&self) -> Result<bool, CliError> {
        let args = !self.args.parsed()?.is_empty();
        let of_chain = self.claude.is_some() || self.questions_dir.is_some();
        Ok(args || of_chain || self.model.is_some() || self.permission_mode.is_some())
    }

    /// The new launch options for the agents of a chain, which Claude Code accepts.
    fn repair(&self, context: &Context, store: &Store, top: FrameId) -> Result<Repair, CliError> {
        let Some(frame) = store.frame(top)? else { return Err(StoreError::UnknownFrame(top).into()) };
        if frame.root != top {
            let message =
                format!("{} was started by an agent: options can be changed only for the whole chain", top.short());
            return Err(CliError::usage(message)
                .hint(format!("use the id of the chain: agent-cli resume {}", frame.root.short())));
        }
        if frame.state == FrameState::Done {
            let message = format!("{} is done: its options no longer matter", top.short());
            return Err(CliError::usage(message).hint(format!("agent-cli resume {} prints its reply", top.short())));
        }
        let path = std::env::var_os("PATH");
        let named = self.claude.as_deref();
        let claude = named.map(|named| program::locate(Some(named), None, path.as_deref())).transpose()?;
        let args = Some(self.args.parsed()?).filter(|args| !args.is_empty());
        let (model, permission_mode) = (self.model.clone(), self.permission_mode.clone());
        let questions_dir = self.questions_dir.clone();
        let repair = Repair { claude, model, permission_mode, questions_dir, args };
        if let Some(first) = first_agent(store, top)? {
            let repaired = first.launch.clone().repaired(&first.launch, &repair);
            context.check(store, &context.settings(self.claude.clone())?, &repaired, &first.cwd)?;
        }
        Ok(repair)
    }

    /// The status of the tree, if the id names one and nothing in it can run.
    fn look(&self, store: &Store, id: &str) -> Result<Option<StatusReport>, RuntimeError> {
        let top = match id.parse::<FrameId>() {
            // A complete id, as cron passes it, needs no search.
            Ok(top) => top,
            Err(_) => match id.parse::<IdPrefix>().map(|prefix| store.lookup(Scope::All, &prefix)) {
                Ok(Ok(target)) => lookup::chain_of(store, target)?,
                _ => return Ok(None),
            },
        };
        let status = status::poll(store, top)?;
        status.map(|status| StatusReport::new(store, top, status, self.output_options)).transpose()
    }

    /// The new launch options of an adopted session.
    fn launch(&self, context: &Context) -> Result<Launch, CliError> {
        let settings = context.settings(self.claude.clone())?;
        let claude = program::locate(settings.claude.as_deref(), None, std::env::var_os("PATH").as_deref())?;
        let of_this_shell = context.launch()?;
        let permission_mode = self.permission_mode.clone().or(of_this_shell.permission_mode);
        let (model, args) = (self.model.clone(), self.args.parsed()?);
        let questions_dir = self.questions_dir.clone();
        Ok(Launch { claude, model, permission_mode, args, questions_dir, ..of_this_shell })
    }

    /// Finds what the id names. An unknown session is adopted if Claude Code has it.
    fn target(&self, context: &Context, store: &Store, name: &str) -> Result<Target, CliError> {
        let id = lookup::id_of(&context.app(store), name)?;
        if let Some(caller) = context.caller {
            return Ok(agent_lookup::named_or_started(store, caller, &id)?);
        }
        let error = match store.lookup(Scope::All, &id) {
            Ok(target) => return Ok(target),
            Err(error) => error,
        };
        if let (StoreError::Unknown(_), Ok(session)) = (&error, name.trim().parse::<SessionId>())
            && let Some(frame) = adopt::adopt(store, session, self.launch(context)?)?
        {
            return Ok(Target::Frame(frame));
        }
        Err(error.into())
    }
}
