//! `agent-cli ls`: lists chains.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::app::lists::chains::{self, Input, Omitted, Outcome};
use crate::app::view::chain::{ChainState, ChainView};
use crate::cli::arguments::at_least_one;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::format::{age, one_line, toned_table};
use crate::cli::output::{self, ListCommand, Tone, TonedLine, hint, print_json, print_toned, tell};
use crate::cli::report::costs;
use crate::cli::report::status_report;
use crate::cli::report::waits::with_times;
use crate::core::chain::frame_state::AgentStatus;

/// List the open chains of this project, newest first
///
/// A chain is open until it is done. Its project is the git repository in which it was started, all worktrees included,
/// or else the directory. What is left out is counted on standard error.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:
  agent-cli ls
  agent-cli ls --status waiting --all-projects
  agent-cli ls --all --json",
    after_long_help = "States:
  ready      nothing keeps it from running
  running    one of its agents runs
  waiting    for an answer, an approval, a file, a time, a limit or a child; nothing runs
  paused     by `agent-cli pause`; `resume` continues it
  done       the agent at the top has replied
  failed     with an error, or stopped by `agent-cli stop`; `resume` tries again after an error,
             and `resume --prompt` continues what was stopped
  cancelled  interrupted by Ctrl-C; `resume` continues it
  abandoned  recorded as running, but its process was killed; any `resume` continues it

Examples:
  agent-cli ls
  agent-cli ls --status waiting --all-projects
  agent-cli ls --all --json"
)]
pub(crate) struct Ls {
    /// Also list chains that are done
    #[arg(short, long)]
    all: bool,

    /// Also list the chains of other projects
    #[arg(short = 'p', long)]
    all_projects: bool,

    /// Only list chains in this state (see below); can be repeated
    #[arg(long, value_name = "STATUS", value_parser = state())]
    status: Vec<ChainState>,

    /// List at most this many [default: 100, with --json all]
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one())]
    limit: Option<usize>,

    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

fn state() -> impl TypedValueParser<Value = ChainState> {
    let parser = PossibleValuesParser::new(ChainState::all().map(ChainState::name));
    parser.try_map(|name| ChainState::all().find(|state| state.name() == name).ok_or("unknown"))
}

impl Ls {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let store = context.store()?;
        let input = Input {
            with_done: self.all,
            all_projects: self.all_projects,
            states: self.status.clone(),
            most: self.limit.or(if self.json { None } else { Some(MOST) }),
        };
        let app = context.app(&store);
        let Outcome { chains, omitted } = chains::chains(&app, &input)?;
        if self.json {
            print_json(&chains)?;
            report(omitted, &self.command(), chains.is_empty(), &[]);
            return Ok(ExitStatus::Ok);
        }
        if omitted.is_empty || chains.is_empty() && context.caller.is_some() {
            tell("no chains yet");
            hint("agent-cli spawn FILE starts one");
            return Ok(ExitStatus::Ok);
        }
        if !chains.is_empty() {
            print_toned(&self.table(&chains, app.now))?;
            chains.iter().for_each(warn_of_budget);
        }
        report(omitted, &self.command(), chains.is_empty(), &self.status);
        Ok(ExitStatus::Ok)
    }

    /// The command with the options that select chains.
    fn command(&self) -> ListCommand {
        let status: Vec<String> = self.status.iter().map(|status| format!("--status {}", status.name())).collect();
        let options =
            [(self.all, "--all"), (self.all_projects, "--all-projects"), (!status.is_empty(), &status.join(" "))];
        ListCommand::new("ls", "chain", &options)
    }

    /// On a narrow terminal, only the columns that identify a chain and its purpose.
    fn table(&self, listed: &[ChainView], now: Timestamp) -> Vec<TonedLine> {
        let is_wide = output::width().is_none_or(|width| width >= NARROW);
        let with_names = listed.iter().any(|chain| chain.name.is_some());
        let columns = |cells: [String; 7]| {
            let shown = [true, true, is_wide, is_wide, with_names, is_wide && self.all_projects, true];
            cells.into_iter().zip(shown).filter_map(|(cell, shown)| shown.then_some(cell)).collect::<Vec<_>>()
        };
        let head = columns(["CHAIN", "STATE", "AGE", "COST", "NAME", "DIRECTORY", "TASK"].map(str::to_owned));
        let rows = listed.iter().map(|chain| {
            let state = if chain.abandoned { ChainState::Abandoned } else { ChainState::Agent(chain.status) };
            columns([
                chain.id.short(),
                state.name().to_owned(),
                age(chain.created, now),
                costs::dollars(&chain.cost.0),
                chain.name.clone().unwrap_or_default(),
                chain.cwd.display().to_string(),
                format!("{}  {}", one_line(&chain.task), waits_or_continues(chain, now)).trim_end().to_owned(),
            ])
        });
        let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
        let tones = std::iter::once(Tone::Plain).chain(listed.iter().map(tone)).collect::<Vec<_>>();
        toned_table(&rows, 1, &tones)
    }
}

/// More than a person looks through.
const MOST: usize = 100;
/// Terminals with fewer columns get fewer columns of the table.
const NARROW: usize = 60;

/// What a chain waits for, or how it can continue.
fn waits_or_continues(chain: &ChainView, now: Timestamp) -> String {
    if chain.abandoned {
        return status_report::abandoned(chain.id);
    }
    if let Some(error) = &chain.error {
        return one_line(error);
    }
    if chain.status == AgentStatus::Cancelled {
        return format!("interrupted; agent-cli resume {} continues it", chain.id.short());
    }
    let more = |count: usize| if count > 1 { format!(", and for {} more", count - 1) } else { String::new() };
    match chain.waiting_on.first() {
        Some(first) if chain.doing.is_empty() && chain.status != AgentStatus::Done => {
            let continues = if chain.can_continue { "can continue; " } else { "" };
            let lost = if chain.unrecorded.is_empty() { "" } else { "claude could not record a turn: no room; " };
            format!(
                "{lost}{continues}waits {}{}",
                with_times(first, now, &TimeZone::system()),
                more(chain.waiting_on.len())
            )
        }
        _ if !chain.doing.is_empty() => {
            let first = chain.doing.values().max_by_key(|doing| (doing.stalled, doing.last_event));
            let others = chain.doing.len() - 1;
            let more = if others > 0 { format!(", and {others} more run") } else { String::new() };
            let waits = match chain.waiting_on.first() {
                Some(first) => format!("; waits {}", with_times(first, now, &TimeZone::system())),
                None => String::new(),
            };
            first.map_or_else(String::new, |doing| doing.words(now) + &more + &waits)
        }
        None if chain.can_continue => "can continue".to_owned(),
        _ => String::new(),
    }
}

fn tone(chain: &ChainView) -> Tone {
    match chain.status {
        _ if chain.abandoned => Tone::Bad,
        AgentStatus::Failed => Tone::Bad,
        AgentStatus::Done => Tone::Quiet,
        AgentStatus::Running => Tone::Good,
        _ if chain.can_continue => Tone::Good,
        _ => Tone::Waiting,
    }
}

/// Warns about a chain that has cost more than its budget: agents that were running at that time continued.
fn warn_of_budget(chain: &ChainView) {
    if let Some(warning) = costs::passed(chain.id, &chain.cost.0, chain.max_budget_usd) {
        output::warn(&warning);
    }
}

/// Reports what is not listed. `shows_nothing`: no chain in these states was listed.
fn report(omitted: Omitted, command: &ListCommand, shows_nothing: bool, states: &[ChainState]) {
    let chains = |count: u64| if count == 1 { "1 chain".to_owned() } else { format!("{count} chains") };
    let is = |count: u64| if count == 1 { "is" } else { "are" };
    let Omitted { elsewhere, done, more, .. } = omitted;
    if shows_nothing && !states.is_empty() {
        let names: Vec<_> = states.iter().map(|state| state.name()).collect();
        tell(&format!("no chain in this project is {}", names.join(" or ")));
    } else if shows_nothing && elsewhere + done > 0 {
        tell("no open chains in this project");
    }
    command.tell_of_elsewhere(elsewhere);
    if done > 0 {
        tell(&format!("{} that {} done: {}", chains(done), is(done), command.with("--all")));
    }
    if more > 0 {
        tell(&format!("{} more: {}", chains(more), command.with("--limit N")));
    }
}
