//! `agent-cli resume`: resumes a chain; if an agent calls it, prints the result of a request.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Arg, Args};

use crate::app::asker::PersonsTask;
use crate::app::chains::estimate;
use crate::app::chains::resume::{self, Input, Named, Outcome, Resumed};
use crate::app::chains::run::NextRun;
use crate::app::chains::unattended;
use crate::app::config::setting::WARN_ABOVE_USD;
use crate::app::error::AppError;
use crate::app::{App, lookup};
use crate::cli::arguments::at_least_one;
use crate::cli::arguments::id_completion;
use crate::cli::arguments::limit_options::LimitOptions;
use crate::cli::arguments::linger_option::LingerOption;
use crate::cli::arguments::trailing_args::ForClaude;
use crate::cli::chain::answering::there_and_then;
use crate::cli::chain::steering::tell::typed_text;
use crate::cli::chain::unattended::resume_all::ResumeAll;
use crate::cli::chain::{drive, request_from_agent};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::{hint, tell, warn};
use crate::cli::report::estimate::{print_estimate, warning};
use crate::cli::report::status_report::{self, OutputOptions, StatusReport};
use crate::core::agent::overrides::Repair;
use crate::core::id::FrameId;
use crate::runtime::RunSettings;
use crate::store::Store;

/// Resume a chain, or show its status
///
/// Continues the chain where it stopped. Prints the reply once the agent is done (every time), `SGN_PEND_STARTED (ID)`
/// when the chain has begun to wait for something new, and `SGN_PEND_ONGOING` while it still waits for the same thing.
/// On a terminal, asks you what the agents ask, and continues with your answers. Enter leaves a question for later.
///
/// Polling a waiting chain takes milliseconds and does not start claude, so cron can do it as often as you like.
#[derive(Debug, Args)]
#[command(
    override_usage = "agent-cli resume [OPTIONS] ID [-- <CLAUDE ARGS>...]\n       agent-cli resume --all [OPTIONS]",
    after_help = "Examples, the last two for a crontab:
  agent-cli resume last
  agent-cli resume 4f2c1a90 --prompt \"Now translate it.\"
  * * * * * /usr/local/bin/agent-cli resume 4f2c1a90 >> chain.log 2>&1
  * * * * * /usr/local/bin/agent-cli resume --all >> chains.log 2>&1",
    mut_args(without_changes)
)]
pub(crate) struct Resume {
    /// A chain, agent, question or session: its id, name, or `last`
    ///
    /// The first four characters of an id are enough if unique.
    #[arg(required_unless_present = "all", add = id_completion::chains())]
    id: Option<String>,

    /// Continue every chain that can continue
    ///
    /// Prints a line for each. One line of a crontab is enough for all chains: waiting chains cost nothing. Chains that failed or were interrupted are
    /// left to you.
    #[arg(long, conflicts_with_all = ["id", "now", "stream", "model", "permission_mode", "args", "stream", "LimitOptions"])]
    all: bool,

    /// With --all: how many agents may run at once [default: 4]
    ///
    /// Counts the agents of all chains, whichever commands run them.
    #[arg(long, value_name = "N", requires = "all", conflicts_with = "id", value_parser = at_least_one::<u32>)]
    max_parallel_total: Option<u32>,

    // `agent-cli mcp` continues chains with this option.
    #[arg(long, hide = true, conflicts_with_all = ["all", "prompt", "afresh", "now", "estimate", "LimitOptions"])]
    unattended: bool,

    /// The claude program from now on
    ///
    /// The default is $AGENT_CLI_CLAUDE this once, or the chain's own.
    #[arg(long, value_name = "PATH")]
    claude: Option<PathBuf>,

    /// Continue a finished agent with a new instruction
    ///
    /// It is done, has failed or was stopped. `-` reads TEXT from standard input. The agent continues with its whole
    /// conversation, and its new reply is printed. The result for its parent does not change.
    #[arg(long, value_name = "TEXT", conflicts_with = "all")]
    prompt: Option<String>,

    /// Continue in a new session, with a summary
    ///
    /// For a conversation that has grown too long, or whose files have changed. One request asks the agent for a summary: its
    /// goal, decisions, the state of the files, open questions. Its new session has only this summary, its task and the
    /// results that it waits for. Other agents of the chain are not affected.
    #[arg(long, conflicts_with = "all")]
    afresh: bool,

    /// Do not wait for a usage limit or backoff
    #[arg(long)]
    now: bool,

    /// Do not report to agents which files changed while they waited
    #[arg(long, hide_short_help = true)]
    no_stale_check: bool,

    /// Model from now on
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    model: Option<String>,

    /// Permission mode from now on
    #[arg(long, value_name = "MODE", value_parser = NonEmptyStringValueParser::new(), add = id_completion::permission_modes())]
    permission_mode: Option<String>,

    /// Take files in this folder as questions from now on
    ///
    /// docs/question-files.md describes them.
    #[arg(long, value_name = "DIR", conflicts_with = "all")]
    questions_dir: Option<PathBuf>,

    /// Print the expected costs, and start nothing
    ///
    /// For each agent: the tokens of its conversation, whether they still are in the prompt cache and why not, and what
    /// sending them costs. With --model, --claude or arguments after --, as if the chain were continued with these.
    #[arg(long, conflicts_with_all = ["all", "stream", "exit_code", "LimitOptions"])]
    estimate: bool,

    #[command(flatten)]
    linger: LingerOption,

    #[command(flatten)]
    output_options: OutputOptions,

    #[command(flatten)]
    args: ForClaude,

    #[command(flatten)]
    limits: LimitOptions,
}

/// Adapts the help of options that `spawn` also has: for an existing chain, omitted options change nothing.
fn without_changes(argument: Arg) -> Arg {
    let text = match argument.get_id().as_str() {
        "max_depth" => "How deep agents may be nested [default: unchanged]",
        "max_agents" => "How many agents the chain may have [default: unchanged, but at least --max-depth]",
        "max_parallel" => "How many agents may run at once [default: unchanged]",
        "max_budget_usd" => "Stop starting agents once this much has been spent in total [default: unchanged]",
        "stall_after" => "Show an agent as stalled after this long without events [default: unchanged]",
        "args" => "New arguments for claude, in place of the earlier ones",
        _ => return argument,
    };
    argument.help(text).long_help(None)
}

impl Resume {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        context.set_linger(self.linger.time);
        let Self { output_options, max_parallel_total, .. } = self;
        let Some(id) = self.id else {
            let (claude, stale_check) = (self.claude, !self.no_stale_check);
            return ResumeAll { claude, stale_check, max_parallel_total, output_options }.run(context);
        };
        if self.unattended {
            context.asker().may(PersonsTask::ResumeAll)?;
            let store = context.store()?;
            let app = context.app(&store);
            let root = lookup::frame_named(&app, &id)?;
            let (claude, stale_check) = (self.claude, !self.no_stale_check);
            let all = ResumeAll { claude, stale_check, max_parallel_total, output_options };
            return if unattended::can_continue(&store, root)? {
                all.continue_these(context, &app, &[root])
            } else {
                Ok(ExitStatus::Ok)
            };
        }
        let args = Some(self.args.parsed()?).filter(|args| !args.is_empty());
        let input = Input {
            id,
            limits: self.limits.given(),
            repair: Repair {
                claude: self.claude,
                model: self.model,
                permission_mode: self.permission_mode,
                questions_dir: self.questions_dir,
                args,
            },
            prompt: self.prompt.map(|text| typed_text(Some(text))),
            afresh: self.afresh,
            now: self.now,
            stale_check: !self.no_stale_check,
        };
        if self.estimate {
            return estimate(context, input, output_options);
        }
        if context.caller.is_some() {
            output_options.refuse_to_agents()?;
        } else if input.changes_nothing()
            && let Some(report) = context.read_snapshot(|store| looked(store, &input.id, output_options)).flatten()
            && !there_and_then::asks(context, &report.status, output_options)
        {
            return status_report::print(&report, output_options);
        }
        let store = context.store()?;
        let (claude, stale_check) = (input.repair.claude.clone(), input.stale_check);
        let again = || Ok(RunSettings { stale_check, ..context.settings(claude.clone())? });
        let app = if input.changes_nothing() { context.app_to_poll(&store) } else { context.app_with_origin(&store) };
        match resume::resume(&app, input, context)? {
            Outcome::Result(result) => request_from_agent::print_result(&app, &result),
            Outcome::Chain(resumed) => {
                if let NextRun::Run(run) = &resumed.next {
                    warn_of_cost(context, &app, resumed.top, run)?;
                }
                go_on(context, &store, resumed, again, output_options)
            }
        }
    }
}

fn estimate(context: &Context, input: Input, output_options: OutputOptions) -> Result<ExitStatus, CliError> {
    context.asker().may(PersonsTask::SeeCosts)?;
    let store = context.store()?;
    let (app, run) = (context.app(&store), context.settings(input.repair.claude.clone())?);
    let estimate = resume::estimate(&app, input, context, &run)?;
    print_estimate(&estimate, output_options.json, app.now)?;
    Ok(ExitStatus::Ok)
}

/// Warns if it is expensive to send conversations that are no longer cached.
fn warn_of_cost(context: &Context, app: &App<'_>, top: FrameId, run: &RunSettings) -> Result<(), CliError> {
    let above_usd = context.usable_configuration()?.settings.value(&WARN_ABOVE_USD).and_then(|value| value.amount());
    let cold = estimate::cold_starts(app, top, run)?;
    if let Some(warning) = above_usd.and_then(|above_usd| warning(&cold, above_usd, app.now)) {
        warn(&warning);
        hint(&format!("agent-cli resume {} --estimate shows it for each agent", top.short()));
    }
    Ok(())
}

/// Returns the status of the chain, if nothing in it can run.
fn looked(store: &Store, id: &str, output_options: OutputOptions) -> Result<Option<StatusReport>, AppError> {
    let found = resume::look(store, id)?;
    found.map(|(top, status)| StatusReport::new(store, top, status, output_options)).transpose()
}

fn go_on(
    context: &Context,
    store: &Store,
    resumed: Resumed,
    again: impl Fn() -> Result<RunSettings, AppError>,
    output_options: OutputOptions,
) -> Result<ExitStatus, CliError> {
    let Resumed { top, named, repaired, next, driving } = resumed;
    if repaired > 0 {
        tell(&format!("agents that start with new options from now on: {repaired}"));
    }
    let status = drive::go_on(context, store, next, top, output_options);
    drop(driving);
    let exit = status.and_then(|status| there_and_then::finish(context, store, top, status, again, output_options));
    if let Some(Named { root, name }) = named.filter(|named| named.is_lost(store)) {
        tell(&format!("the chain {} is no longer named {name}: another chain has this name", root.short()));
    }
    exit
}
