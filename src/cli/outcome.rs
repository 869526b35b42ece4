//! What `spawn` and `resume` print: one of three results, or an error.

use serde::Serialize;

use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::output::{self, print_json, print_line};
use super::text::cut;
use crate::core::blocker::{Blocker, Blocking};
use crate::core::group::Member;
use crate::core::id::FrameId;
use crate::core::request::{External, Wish};
use crate::core::signal;
use crate::core::stream::Usage;
use crate::core::worktree::Worktree;
use crate::runtime::drive::{self, Busy, FrameError, Why};
use crate::runtime::standing::{self, Standing};
use crate::runtime::{RuntimeError, Settings, interrupt};
use crate::store::{Spent, Store, StoreError};

/// How the caller wants to be told.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Telling {
    /// Print one JSON object: id, status, reply, members, waiting_on, busy, errors, usage, cost_usd
    #[arg(long)]
    pub(super) json: bool,

    /// Exit with 75 while the tree waits
    #[arg(long)]
    exit_code: bool,
}

/// The object that `--json` prints.
#[derive(Debug, Serialize)]
struct Report<'a> {
    id: FrameId,
    status: &'static str,
    reply: Option<&'a str>,
    /// Of a group only.
    #[serde(skip_serializing_if = "Option::is_none")]
    members: Option<Vec<Listed<'a>>>,
    /// Of an agent that has one for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    worktree: Option<&'a Worktree>,
    waiting_on: &'a [Blocker],
    busy: &'a [Busy],
    errors: Vec<String>,
    usage: Usage,
    cost_usd: f64,
}

/// An agent of a group.
#[derive(Debug, Serialize)]
struct Listed<'a> {
    id: FrameId,
    task: &'a str,
    status: &'static str,
    reply: Option<&'a str>,
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worktree: Option<&'a Worktree>,
}

/// Drives the tree below `top` and tells the caller how it stands then.
pub(super) fn drive(
    context: &Context,
    store: &Store,
    settings: &Settings,
    top: FrameId,
    telling: Telling,
) -> Result<Exit, CliError> {
    context.start_log();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::failed(format!("failed to start the runner: {error}")))?;
    let driven = runtime.block_on(async {
        let listening =
            interrupt::listen().map_err(|source| RuntimeError::Io { what: "listen for signals".into(), source });
        drive::resume(store, settings, top, listening?).await
    });
    let driven = driven.map_err(|error| CliError::from(error).hint_resume(top))?;
    let standing = standing::after(store, top, driven)?;
    tell(&Told::new(store, top, standing, telling)?, telling)
}

/// How a tree stands, and, where the caller wants to know it, what it has cost.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) top: FrameId,
    pub(super) standing: Standing,
    pub(super) spent: Option<Spent>,
    /// The agents of a group, where the caller wants to know of them.
    pub(super) members: Vec<Member>,
    /// The worktree that the agent at the top has for itself, once it is over.
    pub(super) worktree: Option<Worktree>,
}

impl Told {
    pub(super) fn new(store: &Store, top: FrameId, standing: Standing, telling: Telling) -> Result<Self, StoreError> {
        let spent = telling.json.then(|| store.spent(top)).transpose()?;
        let members = if telling.json { store.members(top)? } else { Vec::new() };
        let may_be_over = matches!(standing, Standing::Done(_) | Standing::Failed(_));
        let frame = if may_be_over { store.frame(top)? } else { None };
        let worktree = frame.filter(|frame| frame.state.is_over()).and_then(|frame| frame.launch.worktree);
        Ok(Self { top, standing, spent, members, worktree })
    }
}

/// Tells the caller how the tree stands.
pub(super) fn tell(told: &Told, telling: Telling) -> Result<Exit, CliError> {
    let Told { top, standing, spent, members, worktree } = told;
    let top = *top;
    if let Some(spent) = spent {
        let members = (!members.is_empty()).then(|| members.iter().map(listed).collect());
        let worktree = worktree.as_ref();
        print_json(&Report { members, worktree, ..report(top, standing, spent.usage, spent.cost_usd) })?;
    }
    let say = |result: &str| if telling.json { Ok(()) } else { print_line(result) };
    if let Some(worktree) = worktree {
        output::tell(&worktree.whereabouts());
    }
    match standing {
        Standing::Done(reply) => {
            say(reply)?;
            Ok(Exit::Ok)
        }
        Standing::Waits { new, blockers, busy, errors } => {
            say(&if *new { format!("{} ({top})", signal::STARTED) } else { signal::ONGOING.to_owned() })?;
            tell_waits(top, blockers, busy);
            errors.iter().for_each(|error| output::tell(&format!("error: {} ({})", error.why, error.frame.short())));
            Ok(if telling.exit_code { Exit::Waiting } else { Exit::Ok })
        }
        Standing::PartlyFailed { errors, .. } | Standing::Failed(errors) => {
            if let Standing::PartlyFailed { replies, .. } = standing {
                say(replies)?;
            }
            let exit = if standing.is_refusal() { Exit::Claude } else { Exit::Failed };
            let mut lines = errors.iter().map(|error| format!("{} ({})", error.why, error.frame.short()));
            let first = CliError::new(exit, lines.next().unwrap_or_default());
            let error = errors.iter().map(|error| help(&error.why)).fold(first, CliError::hints);
            let error = lines.fold(error, CliError::also);
            Err(if errors.iter().any(|error| has_lost_its_session(&error.why)) {
                error
            } else {
                error.hint_resume(top)
            })
        }
        Standing::Interrupted => Err(CliError::new(Exit::Interrupted, "interrupted").hint_resume(top)),
    }
}

fn listed(member: &Member) -> Listed<'_> {
    let Member { id, task, state, reply, worktree } = member;
    let error = member.failure().map(|failure| failure.message.as_str());
    Listed { id: *id, task, status: state.name(), reply: reply.as_deref(), error, worktree: worktree.as_ref() }
}

fn report<'a>(id: FrameId, standing: &'a Standing, usage: Usage, cost_usd: f64) -> Report<'a> {
    let words = |errors: &[FrameError]| errors.iter().map(|error| error.why.to_string()).collect();
    let mut report = Report {
        id,
        status: "interrupted",
        reply: None,
        members: None,
        worktree: None,
        waiting_on: &[],
        busy: &[],
        errors: Vec::new(),
        usage,
        cost_usd,
    };
    match standing {
        Standing::Done(reply) => {
            report.status = "done";
            report.reply = Some(reply);
        }
        Standing::Waits { new, blockers, busy, errors } => {
            report.errors = words(errors);
            report.status = if *new { "started" } else { "ongoing" };
            report.waiting_on = blockers;
            report.busy = busy;
        }
        Standing::PartlyFailed { replies, errors } => {
            report.status = "failed";
            report.reply = Some(replies);
            report.errors = words(errors);
        }
        Standing::Failed(errors) => {
            report.status = "failed";
            report.errors = words(errors);
        }
        Standing::Interrupted => {}
    }
    report
}

fn tell_waits(top: FrameId, blockers: &[Blocker], busy: &[Busy]) {
    for busy in busy {
        let runner = busy.runner.map_or_else(String::new, |pid| format!(" (process {pid})"));
        output::tell(&format!("another process{runner} is driving {}", busy.frame.short()));
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
        output::tell(&format!("{waits} for {}", described(&blocker.what)));
    }
    let answer = blockers.iter().find_map(|blocker| match &blocker.what {
        Blocking::Question { id, .. } => Some(format!("{} TEXT", id.short())),
        Blocking::Permission { id, .. } => Some(format!("{} allow (or deny, and why)", id.short())),
        _ => None,
    });
    if let Some(answer) = answer {
        output::tell(&format!("hint: agent-cli answer {answer}, then agent-cli resume {}", top.short()));
    }
    if blockers.iter().any(|blocker| matches!(blocker.what, Blocking::Budget { .. })) {
        output::tell(&format!("hint: agent-cli resume {} --max-budget-usd USD raises the budget", top.short()));
    }
    if blockers.iter().any(|blocker| matches!(blocker.what, Blocking::Retry { .. })) {
        output::tell(&format!("hint: agent-cli resume {} --now tries again at once", top.short()));
    }
}

/// What a frame waits for, in words.
pub(super) fn described(what: &Blocking) -> String {
    const LONG: usize = 200;
    match what {
        Blocking::Question { id, question, .. } => format!("an answer to {}: {}", id.short(), cut(question, LONG)),
        Blocking::Permission { id, tool, input } => {
            let call = Wish::Permission { tool: tool.clone(), input: input.clone() }.command();
            format!("permission {}: {}", id.short(), cut(&call, LONG))
        }
        Blocking::External { wait: External::File(path) } => format!("the file {}", path.display()),
        Blocking::External { wait: External::Time(time) } => format!("the time {time:.0}"),
        Blocking::External { wait: External::Command(command) } => format!("success of: {}", cut(command, LONG)),
        Blocking::UsageLimit { resets_at } => format!("the usage limit of its account, until {resets_at:.0}"),
        Blocking::Retry { at, tries, why } => {
            format!("its next try at {at:.0}, after {tries} that failed: {}", cut(why, LONG))
        }
        Blocking::Budget { max_usd, spent_usd } => {
            format!("a larger budget: ${spent_usd:.4} of ${max_usd:.4} are spent")
        }
        Blocking::Parallel { most } => format!("a free place: other processes use all {most}"),
        Blocking::Agent => "something that its agent judges".to_owned(),
    }
}

fn has_lost_its_session(why: &Why) -> bool {
    matches!(why, Why::Refused(said) if said.contains("No conversation found"))
}

fn help(why: &Why) -> Option<String> {
    match why {
        Why::Program(_) => Some("install Claude Code, or name it with --claude PATH or AGENT_CLI_CLAUDE".to_owned()),
        Why::Refused(said) if said.contains("/login") => Some("run claude and log in with /login".to_owned()),
        why if has_lost_its_session(why) => {
            Some("its transcript is gone, and so is the kept copy: put one of them back, or start anew".to_owned())
        }
        Why::NoWorkingDirectory(cwd) => Some(format!("make {} again, or move it back", cwd.display())),
        Why::WorktreeGone(Worktree { repository, path, branch, .. }) => {
            Some(format!("git -C {} worktree add -f {} {branch}", repository.display(), path.display()))
        }
        Why::NoWorktree(_) | Why::Refused(_) | Why::Ended(_) => None,
    }
}
