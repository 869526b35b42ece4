//! `agent-cli ls`: lists chains.

use std::path::Path;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::app::lists::chains::{self, Input, Omitted, Outcome};
use crate::app::view::chain::{ChainState, ChainView};
use crate::cli::arguments::at_least_one;
use crate::cli::arguments::since::{Since, since};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::format::{age, fitted, one_line, room_for_last, toned_table};
use crate::cli::output::{self, ListCommand, Tone, TonedLine, hint, print_json, print_toned, tell};
use crate::cli::report::costs;
use crate::cli::report::status_report;
use crate::cli::report::waits::with_times;
use crate::core::chain::waiting_on::shown_state::{Actor, ShownState};
use crate::core::text::shell::shell_word;
use crate::core::text::wrap::wrapped_within;
use crate::local_zone::local_zone;
use crate::store::ChainFilter;

/// List this project's open chains, those that need you first
///
/// A chain is open until it is done. Its project is the git repository in which it was started, all worktrees included,
/// or else the directory. What is left out is counted on standard error. With --json, the newest chains come first.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:
  agent-cli ls
  agent-cli ls --status asks --all-projects
  agent-cli ls --search deploy --since 7d --all
  agent-cli ls --all --json",
    after_long_help = "States, those that need you first:
  asks               an agent asks you: `agent-cli inbox`
  approve?, plan?    an agent needs your approval: `agent-cli inbox`
  over budget        `agent-cli resume ID --max-budget-usd X` raises the budget
  can continue       `agent-cli resume ID` continues it
  abandoned          recorded as running, but its process was killed; any `resume` continues it
  interrupted        by Ctrl-C; `resume` continues it
  failed             with an error; `resume` tries again
  working            one of its agents runs
  limit until TIME   its account has reached its usage limit
  retry at TIME      after a temporary error
  waits              for a file, a time, a command, a process or a free slot; nothing runs
  paused             by `agent-cli pause`; `resume` continues it
  stopped            by `agent-cli stop`; `resume --prompt` continues it
  done               the agent at the top has replied

Examples:
  agent-cli ls
  agent-cli ls --status asks --all-projects
  agent-cli ls --search deploy --since 7d --all
  agent-cli ls --all --json"
)]
pub(crate) struct Ls {
    /// Also list chains that are done
    #[arg(short, long)]
    all: bool,

    /// Also list the chains of other projects
    #[arg(short = 'p', long)]
    all_projects: bool,

    /// Only list chains with this `status` or `state`; can be repeated
    #[arg(long, value_name = "STATUS", value_parser = state())]
    status: Vec<ChainState>,

    /// Only list chains with this text in their name or in a task
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,

    /// Only list chains whose own task is this file or has this text
    #[arg(long, value_name = "FILE")]
    task: Option<String>,

    /// Only list chains started since this time (14:00, 2026-11-20) or this long ago (3d)
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true, value_parser = since)]
    since: Option<Since>,

    /// List at most this many [default: 100, with --json all]
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one::<usize>)]
    limit: Option<usize>,

    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

/// Says how to select chains if a word follows `ls`, which takes none.
pub(crate) fn suggesting_selection(mut error: clap::Error) -> clap::Error {
    let is_of_ls = |usage: &ContextValue| usage.to_string().contains("agent-cli ls ");
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return error };
    let is_word = error.kind() == ErrorKind::UnknownArgument && !word.starts_with('-');
    if is_word && error.get(ContextKind::Usage).is_some_and(is_of_ls) {
        let option = ChainState::named(word).map_or("search", |_| "status");
        let tip = format!("agent-cli ls --{option} {} selects chains", shell_word(word));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

fn state() -> impl TypedValueParser<Value = ChainState> {
    let value = |state: ChainState| PossibleValue::new(state.name()).aliases(state.other_names());
    PossibleValuesParser::new(ChainState::all().map(value)).try_map(|name| ChainState::named(&name).ok_or("unknown"))
}

impl Ls {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let store = context.store()?;
        let input = Input {
            with_done: self.all,
            all_projects: self.all_projects,
            states: self.status.clone(),
            filter: ChainFilter {
                text: self.search.clone(),
                task: self.task.as_deref().map(title_of),
                since: self.since.as_ref().map(|since| since.time),
                ..ChainFilter::default()
            },
            by_state: !self.json,
            most: self.limit.or(if self.json { None } else { Some(MOST) }),
        };
        let app = context.app(&store);
        let Outcome { chains, omitted } = chains::chains(&app, &input)?;
        let is_agents = context.caller.is_some();
        if self.json {
            print_json(&chains)?;
        } else if omitted.is_empty && !(is_agents && self.selects()) && chains.is_empty() {
            tell_of_no_chains();
            return Ok(ExitStatus::Ok);
        } else if !chains.is_empty() {
            print_toned(&self.table(&chains, &app.directory, app.now))?;
            chains.iter().for_each(warn_of_budget);
        }
        if chains.is_empty() {
            self.tell_of_none(&omitted);
        }
        report(omitted, &self.command());
        if chains.is_empty() && self.selects() && !self.json && !chains::any(&app, self.all_projects)?.chains.is_empty()
        {
            hint(match self.all_projects {
                true => "agent-cli ls --all --all-projects lists all chains",
                false => "agent-cli ls --all lists all chains of this project",
            });
        }
        Ok(ExitStatus::Ok)
    }

    /// The command with its options that select chains.
    fn command(&self) -> ListCommand {
        let status = self.status.iter().map(|status| format!("--status {}", status.name()));
        let named =
            |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("--{name} {}", shell_word(value)));
        let since = self.since.as_ref().map(Since::option);
        let given: Vec<_> =
            status.chain(named("search", &self.search)).chain(named("task", &self.task)).chain(since).collect();
        let options =
            [(self.all, "--all"), (self.all_projects, "--all-projects"), (!given.is_empty(), &given.join(" "))];
        ListCommand::new("ls", "chain", &options)
    }

    /// Whether options select some of the chains.
    fn selects(&self) -> bool {
        !self.status.is_empty() || self.selects_by_text()
    }

    fn selects_by_text(&self) -> bool {
        self.search.is_some() || self.task.is_some() || self.since.is_some()
    }

    /// Says that no chain is listed, and why.
    fn tell_of_none(&self, omitted: &Omitted) {
        let place = if self.all_projects { "" } else { " in this project" };
        let open = if self.all { "" } else { "open " };
        let names: Vec<_> = self.status.iter().map(|state| state.name()).collect();
        match () {
            () if self.selects_by_text() => tell(&format!("no chain{place} matches")),
            () if !names.is_empty() => tell(&format!("no chain{place} has the status {}", names.join(" or "))),
            () if !omitted.is_empty => tell(&format!("no {open}chains{place}")),
            () => {}
        }
    }

    /// Formats the table. If the columns leave little room for the reason, it is below the row. A narrow terminal gets one
    /// column for the name or else the task, and a very narrow one only the columns that identify a chain and its purpose.
    fn table(&self, listed: &[ChainView], here: &Path, now: Timestamp) -> Vec<TonedLine> {
        let has = |columns| output::width().is_none_or(|width| width >= columns);
        let (is_wide, is_roomy) = (has(NARROW), has(ROOMY));
        let with_names = listed.iter().any(|chain| chain.name.is_some());
        let is_elsewhere = |chain: &ChainView| self.all_projects && chain.cwd != here;
        let with_directories = is_roomy && listed.iter().any(is_elsewhere);
        let columns = |cells: [String; 7]| {
            let shown = [true, true, is_wide, is_wide, with_names && is_roomy, with_directories, true];
            cells.into_iter().zip(shown).filter_map(|(cell, shown)| shown.then_some(cell)).collect::<Vec<_>>()
        };
        let title = |chain: &ChainView| {
            let name = chain.name.as_deref().filter(|_| !is_roomy).unwrap_or(&chain.task);
            let folder = chain.cwd.file_name().filter(|_| !is_roomy && is_elsewhere(chain));
            one_line(&folder.map_or(name.to_owned(), |folder| format!("{}: {name}", folder.display())))
        };
        let zone = local_zone();
        let last = if with_names && !is_roomy { "NAME" } else { "TASK" };
        let mut rows = vec![columns(["CHAIN", "STATE", "AGE", "COST", "NAME", "DIRECTORY", last].map(str::to_owned))];
        rows.extend(listed.iter().map(|chain| {
            columns([
                chain.id.short(),
                chain.state.words(now, &zone),
                age(chain.created, now),
                chain.cost.0.dollars(),
                chain.name.clone().unwrap_or_default(),
                chain.cwd.display().to_string(),
                title(chain),
            ])
        }));
        let beneath = output::width().filter(|_| room_for_last(&rows, STATE).is_some_and(|room| room < ROOM));
        let mut rows = rows.into_iter();
        let mut toned: Vec<_> = rows.next().map(|head| (head, Tone::Plain)).into_iter().collect();
        for (mut row, chain) in rows.zip(listed) {
            let reason = Some(reason(chain, now, &zone)).filter(|reason| !reason.is_empty());
            if let (None, Some(reason), Some(last)) = (beneath, &reason, row.last_mut()) {
                last.push_str(&format!("  {reason}"));
            }
            toned.push((row, tone(chain.state)));
            let Some((width, reason)) = beneath.zip(reason) else { continue };
            let lines = wrapped_within(&format!("  {}", fitted(&reason, LINES * width)), width, 2);
            toned.extend(lines.into_iter().map(|line| (vec![line], Tone::Plain)));
        }
        toned_table(&toned, STATE)
    }
}

/// Says that there are no chains at all.
pub(crate) fn tell_of_no_chains() {
    tell("no chains yet");
    hint("agent-cli spawn FILE starts one");
}

/// Shortens a task for lists: a file is shown without its folder.
fn title_of(task: &str) -> String {
    let name = Path::new(task).file_name().and_then(|name| name.to_str());
    name.filter(|_| !task.contains(char::is_whitespace)).unwrap_or(task).to_owned()
}

/// The default limit of the list.
const MOST: usize = 100;
/// The column that is never cut.
const STATE: usize = 1;
/// Terminals with fewer columns get a table with fewer columns, and a tree with reasons below the agents.
pub(crate) const NARROW: usize = 60;
/// Terminals with fewer columns get one column for names and tasks.
const ROOMY: usize = 80;
/// If the last column has fewer columns, the reasons are below the rows.
const ROOM: usize = 80;
/// About the most lines of a reason.
pub(crate) const LINES: usize = 3;

/// Why a chain is in its state, without details that the state already shows.
pub(crate) fn reason(chain: &ChainView, now: Timestamp, zone: &TimeZone) -> String {
    let id = chain.id.short();
    let first = chain.blocker();
    let more = chain.waiting_on.len().saturating_sub(1);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    let waits = || first.map_or_else(String::new, |first| with_times(first, now, zone) + &more);
    let lost = if chain.unrecorded.is_empty() { "" } else { "claude could not record a turn: no room; " };
    let reason = match chain.state {
        _ if chain.error.is_some() => return chain.error.as_deref().map_or_else(String::new, one_line),
        ShownState::Abandoned => return status_report::abandoned(chain.id),
        ShownState::Interrupted => format!("agent-cli resume {id} continues it"),
        ShownState::Working => working(chain, now, zone),
        ShownState::CanContinue => first.map_or_else(String::new, |_| format!("waits {}", waits())),
        ShownState::Done => String::new(),
        _ if chain.doing.is_empty() => waits(),
        _ => format!("{}; {} run", waits(), chain.doing.len()),
    };
    format!("{lost}{reason}")
}

/// The activity of a chain's agents, and what the other agents wait for.
fn working(chain: &ChainView, now: Timestamp, zone: &TimeZone) -> String {
    let first = chain.doing.values().max_by_key(|doing| (doing.stalled, doing.last_event));
    let others = chain.doing.len().saturating_sub(1);
    let more = if others > 0 { format!(", and {others} more run") } else { String::new() };
    let waits = chain.blocker().map_or_else(String::new, |first| format!("; waits {}", with_times(first, now, zone)));
    first.map_or_else(String::new, |doing| doing.words(now) + &more + &waits)
}

/// The tone that shows who must act.
pub(crate) fn tone(state: ShownState) -> Tone {
    match state.actor() {
        Actor::Asked => Tone::Asks,
        Actor::Resumer => Tone::Continues,
        Actor::Repairer => Tone::Bad,
        Actor::Runner => Tone::Good,
        Actor::Others => Tone::Waiting,
        Actor::Nobody => Tone::Quiet,
    }
}

/// Warns about a chain that has cost more than its budget. Agents that were running when the budget was exceeded continued.
fn warn_of_budget(chain: &ChainView) {
    if let Some(warning) = costs::passed(chain.id, &chain.cost.0, chain.max_budget_usd) {
        output::warn(&warning);
    }
}

/// Reports chains that are not listed.
fn report(omitted: Omitted, command: &ListCommand) {
    let chains = |count: u64| if count == 1 { "1 chain".to_owned() } else { format!("{count} chains") };
    let is = |count: u64| if count == 1 { "is" } else { "are" };
    let Omitted { elsewhere, done, more, .. } = omitted;
    command.tell_of_elsewhere(elsewhere);
    if done > 0 {
        tell(&format!("{} that {} done: {}", chains(done), is(done), command.with("--all")));
    }
    if more > 0 {
        let s = if more == 1 { "" } else { "s" };
        tell(&format!("{more} more chain{s}: {}", command.with("--limit N")));
    }
}
