//! Prints the result of `spawn` and `resume`: one of three results, or an error.

use std::collections::BTreeSet;

use crate::app::chains::above::{self, ChainAbove};
use crate::app::chains::unattended;
use crate::app::error::AppError;
use crate::app::view;
use crate::app::view::chain_status::{ChainStatusView, WorktreeBelowView, worktrees_below};
use crate::app::view::denied::DeniedCallView;
use crate::app::view::outcome::Continuer;
use crate::claude::processes::process;
use crate::cli::error::CliError;
use crate::cli::error::hints;
use crate::cli::exit::ExitStatus;
use crate::cli::output::{self, PrintError, print_json, print_line};
use crate::cli::report::costs;
use crate::cli::report::denied_calls;
use crate::cli::report::question_text;
use crate::cli::report::waits::with_expiry;
use crate::core::agent::child_worktree::Worktree;
use crate::core::attempt::signal;
use crate::core::chain::progress_lines;
use crate::core::chain::waiting_on::{Blocker, Blocking};
use crate::core::id::FrameId;
use crate::runtime::RuntimeError;
use crate::runtime::requests::posted::filing::{self, Hindered};
use crate::runtime::run::driven::Busy;
use crate::runtime::run::frame_error::FrameError;
use crate::runtime::run::status::ChainStatus;
use crate::runtime::steering::afresh_advice::{self, AfreshAdvice};
use crate::store::{ChainOf, Store};

/// The output options of the caller.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct OutputOptions {
    /// Print events as JSON lines, then the result
    ///
    /// The events are those of the chain while it runs (docs/events.md), the result is the object of --json.
    #[arg(long)]
    pub(crate) stream: bool,

    /// Print a JSON object
    ///
    /// Its schema is docs/schema/chain-status.json.
    #[arg(long)]
    pub(crate) json: bool,

    /// Exit with status 75 while the chain waits
    #[arg(long)]
    pub(crate) exit_code: bool,

    /// Do not ask at the terminal what agents ask
    #[arg(long)]
    pub(crate) no_ask: bool,
}

/// The status of a chain, with everything that the caller should know about it.
#[derive(Debug)]
pub(crate) struct StatusReport {
    pub(crate) top: FrameId,
    pub(crate) status: ChainStatus,
    /// The object of `--json`, if requested.
    view: Option<ChainStatusView>,
    /// The worktree of the agent at the top, once that agent has ended.
    pub(crate) worktree: Option<Worktree>,
    /// The worktrees of the agents below it.
    pub(crate) worktrees_below: Vec<WorktreeBelowView>,
    /// The denied calls. Polls of a waiting chain do not report them.
    pub(crate) denied: Vec<DeniedCallView>,
    /// A warning, if the chain has cost more than its budget.
    pub(crate) over_budget: Option<String>,
    /// Closed posted questions whose folder cannot be written.
    unfiled: Vec<Hindered>,
    /// The agents that should start afresh.
    advice: Vec<AfreshAdvice>,
    /// The program that continues the chain after an answer or a pause, without a person.
    continued_by: Option<Continuer>,
    /// Whether this is a group whose parent was told of its end, so that its agents are retried one by one.
    is_told_group: bool,
    /// Whether its parent gets an earlier result than the one that a person has asked for since.
    has_outcome: bool,
    /// The chain above the agent, if the agent has ended for good.
    above: Option<ChainAbove>,
}

impl OutputOptions {
    /// Whether the result is printed as JSON.
    pub(crate) fn prints_json(self) -> bool {
        self.json || self.stream
    }

    /// Refuses --stream to agents. Their calls return once the request is recorded or has a result, so there are no events.
    pub(crate) fn refuse_to_agents(self) -> Result<(), CliError> {
        if self.stream {
            let error = CliError::usage("agents cannot use --stream");
            return Err(error.hint("leave it out; agent-cli logs shows what an agent did"));
        }
        Ok(())
    }
}

impl StatusReport {
    pub(crate) fn new(
        store: &Store,
        top: FrameId,
        status: ChainStatus,
        output_options: OutputOptions,
    ) -> Result<Self, AppError> {
        let status = with_limits(store, status)?;
        let above = if status.is_final() { above::of(store, top)? } else { None };
        // Polls read no files.
        let has_news = matches!(status, ChainStatus::Waits { new: true, .. });
        let advice = if has_news { afresh_advice::below(store, top)? } else { Vec::new() };
        let gather = || ChainStatusView::gather(store, top, &status, &advice, above.and_then(ChainAbove::command));
        let view = output_options.prints_json().then(gather).transpose()?;
        let may_be_over =
            matches!(status, ChainStatus::Done(_) | ChainStatus::PartlyFailed { .. } | ChainStatus::Failed(_));
        let frame = if may_be_over { store.frame(top)? } else { None };
        let worktrees_below = if may_be_over { worktrees_below(store, top)? } else { Vec::new() };
        let is_told_group = frame.as_ref().is_some_and(|frame| frame.task.is_group() && frame.parent.is_some());
        let has_outcome = frame.as_ref().is_some_and(|frame| frame.outcome.is_some());
        let worktree = frame.filter(|frame| frame.state.is_over()).and_then(|frame| frame.launch.worktree);
        let still_waits = matches!(status, ChainStatus::Waits { new: false, .. });
        let denied =
            if still_waits && !output_options.prints_json() { Vec::new() } else { view::denied::below(store, top)? };
        let chain = if still_waits { None } else { Some(store.chain_of(top)?) };
        let over_budget = match chain.filter(|chain| chain.limits.max_budget_usd.is_some()) {
            Some(ChainOf { root, limits, .. }) => costs::passed(root, &store.spent(root)?, limits.max_budget_usd),
            None => None,
        };
        let unfiled = filing::hindered(store, top)?;
        let continued_by = match &status {
            // If this is unknown, a hint says how to continue the chain.
            ChainStatus::Waits { blockers, .. } if needs_an_answer(blockers) || is_limited(blockers) => {
                unattended::continuer(store).unwrap_or_default()
            }
            _ => None,
        };
        Ok(Self {
            top,
            status,
            view,
            worktree,
            worktrees_below,
            denied,
            over_budget,
            unfiled,
            advice,
            continued_by,
            is_told_group,
            has_outcome,
            above,
        })
    }
}

/// Extends errors about reached limits with the options that would raise the limits.
fn with_limits(store: &Store, mut status: ChainStatus) -> Result<ChainStatus, RuntimeError> {
    if let ChainStatus::Waits { errors, .. } | ChainStatus::PartlyFailed { errors, .. } | ChainStatus::Failed(errors) =
        &mut status
    {
        let found = std::mem::take(errors).into_iter().map(|error| error.with_limit(store));
        *errors = found.collect::<Result<_, _>>()?;
    }
    Ok(status)
}

/// Reports the status of the chain to the caller. A result that cannot be printed, or is not read, is kept.
pub(crate) fn print(report: &StatusReport, output_options: OutputOptions) -> Result<ExitStatus, CliError> {
    let again = format!("agent-cli resume {} prints the result again", report.top.short());
    let exit = print_parts(report, output_options, &again)?;
    if output::was_unread() {
        output::hint(&unread(&again));
    } else if report.status.reply().is_some() && output::was_closed() {
        output::hint(&format!("standard output is closed or /dev/null: {again}"));
    }
    Ok(exit)
}

/// Says how to print a result `again` that was not read.
pub(super) fn unread(again: &str) -> String {
    format!("standard output was closed: {again}")
}

fn print_parts(report: &StatusReport, output_options: OutputOptions, again: &str) -> Result<ExitStatus, CliError> {
    let StatusReport { top, status, worktree, worktrees_below, denied, .. } = report;
    let top = *top;
    print_object(report).map_err(|error| CliError::from(error).hint(again))?;
    let say = |result: &str| {
        if output_options.prints_json() {
            Ok(())
        } else {
            print_line(result).map_err(|error| CliError::from(error).hint(again))
        }
    };
    if let Some(worktree) = worktree {
        output::tell(&worktree.whereabouts());
    }
    print_worktrees(top, worktrees_below, status.reply().unwrap_or_default());
    if !matches!(status, ChainStatus::Waits { new: false, .. }) {
        denied_calls::print_all(denied, top);
        report.over_budget.iter().for_each(|warning| output::warn(warning));
    }
    report.unfiled.iter().for_each(|unfiled| output::warn(&unfiled.in_words()));
    match status {
        ChainStatus::Done(reply) => {
            say(reply)?;
            let with = if report.has_outcome { ", which gets the earlier result" } else { "" };
            report.above.map(|above| hint_at_above(above, with)).iter().for_each(|hint| output::hint(hint));
            Ok(ExitStatus::Ok)
        }
        ChainStatus::Waits { new, blockers, busy, errors } => {
            // People read the messages below instead.
            let has_words = !(blockers.is_empty() && busy.is_empty());
            let in_words = has_words && !output_options.prints_json() && output::is_read_by_a_person();
            if !in_words {
                say(&if *new { format!("{} ({top})", signal::STARTED) } else { signal::ONGOING.to_owned() })?;
            }
            print_waits(blockers, busy);
            hint_at_waits(top, blockers, in_words, report.continued_by);
            for advice in &report.advice {
                output::tell(&format!("{} should start afresh: {}", advice.agent.short(), advice.reason.in_words()));
                output::hint(&format!("{} continues it in a new session, with a summary", advice.command()));
            }
            errors.iter().for_each(|error| output::error(&format!("{} ({})", error.kind, error.frame.short())));
            let lost = || errors.iter().filter(|error| error.kind.leaves_a_wait());
            lost().take(1).flat_map(|error| hints::of(error, top)).for_each(|hint| output::hint(&hint));
            let waits = |error: &FrameError| blockers.iter().any(|blocker| blocker.frame == error.frame);
            let failed = errors.iter().filter(|error| !error.kind.leaves_a_wait() && !waits(error));
            hints::beside_others(&failed.collect::<Vec<_>>()).iter().for_each(|hint| output::hint(hint));
            Ok(match output_options.exit_code {
                _ if lost().next().is_some() => ExitStatus::Failed,
                true => ExitStatus::Waiting,
                false => ExitStatus::Ok,
            })
        }
        ChainStatus::PartlyFailed { errors, .. } | ChainStatus::Failed(errors) => {
            if let ChainStatus::PartlyFailed { replies, .. } = status {
                say(replies)?;
            }
            let exit = if status.is_refusal() { ExitStatus::Claude } else { ExitStatus::Failed };
            let mut lines = errors.iter().map(|error| format!("{} ({})", error.kind, error.frame.short()));
            let first = CliError::new(exit, lines.next().unwrap_or_default());
            let without = if errors.len() == 1 { " without it" } else { " without them" };
            let above = report.above.map(|above| hint_at_above(above, without));
            let retried = |error: &FrameError| if report.is_told_group { error.frame } else { top };
            let helpful = errors.iter().flat_map(|error| hints::of(error, retried(error))).chain(above);
            Err(lines.fold(helpful.fold(first, CliError::hint), CliError::also))
        }
        ChainStatus::Interrupted => Err(CliError::new(ExitStatus::Interrupted, "interrupted").hint_resume(top)),
    }
}

/// Prints the object of `--json`, if it was requested.
pub(crate) fn print_object(report: &StatusReport) -> Result<(), PrintError> {
    report.view.as_ref().map_or(Ok(()), print_json)
}

fn print_waits(blockers: &[Blocker], busy: &[Busy]) {
    for busy in busy {
        let id = busy.frame.short();
        let (runner, lives) = match busy.runner {
            Some(pid) => (format!(" (process {pid})"), process::lives(pid)),
            None => (String::new(), true),
        };
        output::tell(&match lives {
            true => format!("another process{runner} is running {id}"),
            false => {
                format!("claude is running {id}, whose runner{runner} has ended; agent-cli stop {id} --now ends it")
            }
        });
    }
    for (at, blocker) in blockers.iter().enumerate() {
        let same = |other: &&Blocker| other.what == blocker.what;
        if blockers[..at].iter().any(|earlier| same(&earlier)) {
            continue;
        }
        let frame = blocker.frame.short();
        let waits = match blockers[at + 1..].iter().filter(same).count() {
            0 => format!("{frame} waits"),
            1 => format!("{frame} and 1 other wait"),
            others => format!("{frame} and {others} others wait"),
        };
        output::tell(&format!("{waits} for {}", with_expiry(&blocker.what)));
    }
}

/// Says how the chain `top`, which waits for `blockers`, continues. `in_words`: a person at a terminal reads it.
pub(crate) fn hint_at_waits(top: FrameId, blockers: &[Blocker], in_words: bool, continued_by: Option<Continuer>) {
    if in_words && needs_an_answer(blockers) {
        output::hint(&match continued_by {
            Some(by) => format!("agent-cli inbox asks you, and then {}", by.words()),
            None => format!("agent-cli resume {} asks you, and continues with your answer", top.short()),
        });
    } else {
        hint_at_answer(top, blockers, continued_by);
    }
    let paused = blockers.iter().filter_map(|blocker| match &blocker.what {
        Blocking::Paused { id, .. } => Some(*id),
        _ => None,
    });
    for id in paused.collect::<BTreeSet<_>>() {
        output::hint(&format!("agent-cli resume {} continues it", id.short()));
    }
    if blockers.iter().any(|blocker| matches!(blocker.what, Blocking::Budget { .. })) {
        output::hint(&format!("agent-cli resume {} --max-budget-usd USD raises the budget", top.short()));
    }
    if is_limited(blockers) {
        output::hint(&match continued_by {
            Some(by) => format!("after the limit has reset, {}", by.words()),
            None => format!(
                "after the limit has reset, agent-cli resume {} continues it; agent-cli watch does so on its own",
                top.short()
            ),
        });
    }
    if is_limited(blockers) || blockers.iter().any(|blocker| matches!(blocker.what, Blocking::Retry { .. })) {
        output::hint(&format!("agent-cli resume {} --now retries now", top.short()));
    }
}

/// Whether an agent could continue after a person's answer.
pub(crate) fn needs_an_answer(blockers: &[Blocker]) -> bool {
    blockers.iter().any(|blocker| {
        matches!(blocker.what, Blocking::Question { .. } | Blocking::Permission { .. } | Blocking::Plan { .. })
    })
}

/// Whether an agent waits for a usage limit.
fn is_limited(blockers: &[Blocker]) -> bool {
    blockers.iter().any(|blocker| matches!(blocker.what, Blocking::UsageLimit { .. }))
}

/// Says what becomes of the chain above an agent that has ended; `without`: how it continues.
pub(crate) fn hint_at_above(above: ChainAbove, without: &str) -> String {
    match above {
        ChainAbove::CanContinue(_, Some(by)) => format!("{}{without}", by.words()),
        ChainAbove::CanContinue(root, None) => {
            format!("agent-cli resume {} continues the chain{without}", root.short())
        }
        ChainAbove::Waits(root) => format!("agent-cli tree {} shows what the chain still waits for", root.short()),
    }
}

/// Says how to answer the first question.
fn hint_at_answer(top: FrameId, blockers: &[Blocker], continued_by: Option<Continuer>) {
    let answer = blockers.iter().find_map(|blocker| match &blocker.what {
        Blocking::Question { id, form } => {
            question_text::hint_at_file(form);
            Some(format!("{} {}", id.short(), question_text::to_answer_form(form)))
        }
        Blocking::Permission { id, .. } => {
            output::hint(&format!("agent-cli questions {} shows the whole call", id.short()));
            Some(format!("{} allow (or deny, with a reason)", id.short()))
        }
        Blocking::Plan { id, plan } => {
            output::hint(&format!("agent-cli questions {} shows the whole plan", id.short()));
            Some(format!("{} {}", id.short(), question_text::to_answer_plan(plan)))
        }
        _ => None,
    });
    if let Some(answer) = answer {
        let next = continued_by.map_or_else(|| format!("agent-cli resume {}", top.short()), |by| by.words().to_owned());
        output::hint(&format!("agent-cli answer {answer}, then {next}"));
    }
}

/// Reports agents that are recorded as running but have no runner. `top` is the chain to resume.
pub(crate) fn abandoned(top: FrameId) -> String {
    format!("abandoned by its runner; agent-cli resume {} continues it", top.short())
}

/// The most worktrees to list.
const MOST_WORKTREES: usize = 20;

/// Prints the worktrees that the final reply does not mention.
fn print_worktrees(top: FrameId, worktrees: &[WorktreeBelowView], reply: &str) {
    let unnamed: Vec<_> = worktrees.iter().filter(|below| !reply.contains(&below.worktree.branch)).collect();
    for WorktreeBelowView { id, task, worktree } in unnamed.iter().take(MOST_WORKTREES) {
        output::tell(&progress_lines::step(*id, task, &worktree.whereabouts()));
    }
    if unnamed.len() > MOST_WORKTREES {
        let more = unnamed.len() - MOST_WORKTREES;
        output::tell(&format!("{more} more agents have a branch: agent-cli resume {} --json names them", top.short()));
    }
}
