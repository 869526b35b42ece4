//! What `spawn` and `resume` print: one of three results, or an error.

use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::{self, print_json, print_line};
use crate::cli::report::denied;
use crate::cli::report::format::{cut, one_line};
use crate::cli::report::hints;
use crate::core::agent::worktree::Worktree;
use crate::core::attempt::decision::Note;
use crate::core::attempt::signal;
use crate::core::attempt::usage::Usage;
use crate::core::chain::group::Member;
use crate::core::chain::waiting_on::{Blocker, Blocking};
use crate::core::id::{FrameId, RequestId};
use crate::core::requests::approval;
use crate::core::requests::request::External;
use crate::core::text::extent;
use crate::runtime::housekeeping::removal;
use crate::runtime::run::driven::Busy;
use crate::runtime::run::frame_error::FrameError;
use crate::runtime::run::scheduler;
use crate::runtime::run::signals;
use crate::runtime::run::status::{self, Standing};
use crate::runtime::{RuntimeError, Settings};
use crate::store::{Spent, Store};

/// How the caller wants to be told.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Telling {
    /// Print one JSON object: id, status, reply, members, waiting_on, busy, errors, denied, usage, cost_usd
    #[arg(long)]
    pub(crate) json: bool,

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
    denied: &'a [denied::Listed],
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

/// Drives a tree that was just recorded. One whose `claude` refuses the command line before any work is removed again: it
/// could never work.
pub(crate) fn drive_new(
    context: &Context,
    store: &Store,
    settings: &Settings,
    top: FrameId,
    telling: Telling,
) -> Result<Exit, CliError> {
    let standing = driven(context, store, settings, top)?;
    if let Standing::Failed(errors) | Standing::PartlyFailed { errors, .. } = &standing
        && errors.iter().all(|error| hints::is_of_the_command_line(&error.why))
        && removal::remove_unused(store, top)?
    {
        let mut whys: Vec<String> = errors.iter().map(|error| error.why.to_string()).collect();
        whys.dedup();
        let helpful = errors.iter().filter_map(|error| hints::of_new(&error.why));
        let first = CliError::new(Exit::Claude, whys.remove(0));
        let error = whys.into_iter().fold(helpful.fold(first, CliError::hint), CliError::also);
        return Err(error);
    }
    tell(&Told::new(store, top, standing, telling)?, telling)
}

/// Drives the tree below `top` and tells the caller how it stands then.
pub(crate) fn drive(
    context: &Context,
    store: &Store,
    settings: &Settings,
    top: FrameId,
    telling: Telling,
) -> Result<Exit, CliError> {
    let standing = driven(context, store, settings, top)?;
    tell(&Told::new(store, top, standing, telling)?, telling)
}

fn driven(context: &Context, store: &Store, settings: &Settings, top: FrameId) -> Result<Standing, CliError> {
    context.start_log();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::failed(format!("failed to start the runner: {error}")))?;
    let driven = runtime.block_on(async {
        let listening =
            signals::listen().map_err(|source| RuntimeError::Io { what: "listen for signals".into(), source });
        scheduler::resume(store, settings, top, listening?).await
    });
    let driven = driven.map_err(|error| CliError::from(error).hint_resume(top))?;
    driven.notes.iter().for_each(|(frame, note)| tell_note(*frame, *note));
    Ok(status::after(store, top, driven)?)
}

fn tell_note(frame: FrameId, note: Note) {
    let frame = frame.short();
    match note {
        Note::InASentence(signal) => {
            output::tell(&format!("{frame} said {} inside a sentence, which is taken for a signal", signal.word()));
        }
        Note::PausesInARow(times) => {
            output::tell(&format!("{frame} said {} {times} times in a row with no request open", signal::STARTED));
            output::tell(
                "hint: each resume asks it once more; waits made with agent-cli ask or agent-cli wait cost nothing",
            );
        }
    }
}

/// How a tree stands, and, where the caller wants to know it, what it has cost.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) top: FrameId,
    pub(crate) standing: Standing,
    pub(crate) spent: Option<Spent>,
    /// The agents of a group, where the caller wants to know of them.
    pub(crate) members: Vec<Member>,
    /// The worktree that the agent at the top has for itself, once it is over.
    pub(crate) worktree: Option<Worktree>,
    /// The calls that were denied. A mere look at what still waits says nothing about them.
    pub(crate) denied: Vec<denied::Listed>,
}

impl Told {
    pub(crate) fn new(store: &Store, top: FrameId, standing: Standing, telling: Telling) -> Result<Self, RuntimeError> {
        let spent = telling.json.then(|| store.spent(top)).transpose()?;
        let members = if telling.json { store.members(top)? } else { Vec::new() };
        let may_be_over = matches!(standing, Standing::Done(_) | Standing::Failed(_));
        let frame = if may_be_over { store.frame(top)? } else { None };
        let worktree = frame.filter(|frame| frame.state.is_over()).and_then(|frame| frame.launch.worktree);
        let still_waits = matches!(standing, Standing::Waits { new: false, .. });
        let denied = if still_waits && !telling.json { Vec::new() } else { denied::below(store, top)? };
        Ok(Self { top, standing, spent, members, worktree, denied })
    }
}

/// Tells the caller how the tree stands. A result that cannot be printed, or that nobody reads, is kept.
pub(crate) fn tell(told: &Told, telling: Telling) -> Result<Exit, CliError> {
    let again = format!("agent-cli resume {} prints the result again", told.top.short());
    let exit = tell_all(told, telling, &again)?;
    if output::was_unread() {
        output::hint(&format!("nobody reads standard output: {again}"));
    }
    Ok(exit)
}

fn tell_all(told: &Told, telling: Telling, again: &str) -> Result<Exit, CliError> {
    let Told { top, standing, spent, members, worktree, denied } = told;
    let top = *top;
    if let Some(spent) = spent {
        let members = (!members.is_empty()).then(|| members.iter().map(listed).collect());
        let worktree = worktree.as_ref();
        print_json(&Report { members, worktree, denied, ..report(top, standing, spent.usage, spent.cost_usd) })
            .map_err(|error| error.hint(again))?;
    }
    let say = |result: &str| {
        if telling.json { Ok(()) } else { print_line(result).map_err(|error| error.hint(again)) }
    };
    if let Some(worktree) = worktree {
        output::tell(&worktree.whereabouts());
    }
    if !matches!(standing, Standing::Waits { new: false, .. }) {
        denied::tell_all(denied, top);
    }
    match standing {
        Standing::Done(reply) => {
            say(reply)?;
            Ok(Exit::Ok)
        }
        Standing::Waits { new, blockers, busy, errors } => {
            say(&if *new { format!("{} ({top})", signal::STARTED) } else { signal::ONGOING.to_owned() })?;
            tell_waits(top, blockers, busy);
            errors.iter().for_each(|error| output::error(&format!("{} ({})", error.why, error.frame.short())));
            Ok(if telling.exit_code { Exit::Waiting } else { Exit::Ok })
        }
        Standing::PartlyFailed { errors, .. } | Standing::Failed(errors) => {
            if let Standing::PartlyFailed { replies, .. } = standing {
                say(replies)?;
            }
            let exit = if standing.is_refusal() { Exit::Claude } else { Exit::Failed };
            let mut lines = errors.iter().map(|error| format!("{} ({})", error.why, error.frame.short()));
            let first = CliError::new(exit, lines.next().unwrap_or_default());
            let helpful = errors.iter().flat_map(|error| hints::of(&error.why, top));
            Err(lines.fold(helpful.fold(first, CliError::hint), CliError::also))
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
        denied: &[],
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
        Blocking::Permission { id, .. } => {
            output::hint(&format!("agent-cli questions {} shows the whole call", id.short()));
            Some(format!("{} allow (or deny, and why)", id.short()))
        }
        Blocking::Plan { id, plan } => {
            output::hint(&format!("agent-cli questions {} shows the whole plan", id.short()));
            Some(format!("{} allow --mode {} (or deny, and why)", id.short(), plan.modes.join("|")))
        }
        _ => None,
    });
    if let Some(answer) = answer {
        output::hint(&format!("agent-cli answer {answer}, then agent-cli resume {}", top.short()));
    }
    if blockers.iter().any(|blocker| matches!(blocker.what, Blocking::Budget { .. })) {
        output::hint(&format!("agent-cli resume {} --max-budget-usd USD raises the budget", top.short()));
    }
    if blockers.iter().any(|blocker| matches!(blocker.what, Blocking::Retry { .. })) {
        output::hint(&format!("agent-cli resume {} --now tries again at once", top.short()));
    }
}

/// That nobody runs what is on record as running. `top` is what to resume.
pub(crate) fn abandoned(top: FrameId) -> String {
    format!("abandoned by its runner; agent-cli resume {} continues it", top.short())
}

/// What a frame waits for, in words.
pub(crate) fn described(what: &Blocking) -> String {
    const LONG: usize = 200;
    match what {
        Blocking::Question { id, question, .. } => {
            let (first, more) = in_part(*id, question, question.lines().count(), question.chars().count(), LONG);
            format!(
                "an answer to {}: {first}{}",
                id.short(),
                more.map_or_else(String::new, |more| format!(" ({more})"))
            )
        }
        Blocking::Permission { id, tool, input, .. } => {
            let (lines, characters) = extent::extent(input);
            let shown = approval::summary(tool, input);
            let (first, more) = in_part(*id, &shown, lines, characters + tool.chars().count() + 2, LONG);
            format!("permission {}: {first}{}", id.short(), more.map_or_else(String::new, |more| format!(" ({more})")))
        }
        Blocking::Plan { id, plan } => {
            let text = plan.text.as_deref().unwrap_or_default();
            let (first, more) = in_part(*id, plan.summary(), text.lines().count(), text.chars().count(), LONG);
            format!(
                "approval {} of its plan: {first}{}",
                id.short(),
                more.map_or_else(String::new, |more| format!(" ({more})"))
            )
        }
        Blocking::External { wait: External::File(path) } => format!("the file {}", path.display()),
        Blocking::External { wait: External::Time(time) } => format!("the time {time:.0}"),
        Blocking::External { wait: External::Scheduled(scheduled) } => {
            let what = if scheduled.is_job() { "a job of its own" } else { "its wake-up" };
            format!("{what}, until {:.0}: {}", scheduled.at, cut(&scheduled.prompt, LONG))
        }
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

/// The first line of a question, and how much more there is, with the command that shows it.
pub(crate) fn in_part(
    id: RequestId,
    text: &str,
    lines: usize,
    characters: usize,
    most: usize,
) -> (String, Option<String>) {
    let first = text.trim_start().lines().next().unwrap_or_default();
    let seen = cut(first, most);
    let shown = if seen == one_line(first) { first } else { seen.trim_end_matches('…') };
    let more = extent::hidden(lines, characters, shown);
    let more = more.map(|more| format!("{more}: agent-cli questions {} shows all", id.short()));
    (seen, more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_not_shown_is_counted() {
        let id = RequestId::random();
        let part = |text: &str| in_part(id, text, text.lines().count(), text.chars().count(), 8);
        let more = |more| Some(format!("… {more}: agent-cli questions {} shows all", id.short()));
        assert_eq!(part("When?"), ("When?".into(), None));
        assert_eq!(part("漢字漢字"), ("漢字漢字".into(), None));
        assert_eq!(part("When exactly?"), ("When ex…".into(), more("6 more characters")));
        assert_eq!(part("漢字漢字漢字"), ("漢字漢…".into(), more("3 more characters")));
        assert_eq!(part("When?\nWhere?"), ("When?".into(), more("1 more line, 7 characters")));
    }
}
