//! `agent-cli ls`: lists chains.

mod choice;

use std::collections::HashSet;

use clap::Args;
use clap::builder::PossibleValuesParser;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::app::view::chain::ChainView;
use crate::cli::arguments::at_least_one;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::format::{age, one_line, toned_table};
use crate::cli::output::moment;
use crate::cli::output::{self, ListCommand, Tone, TonedLine, hint, print_json, print_toned, tell};
use crate::cli::report::chain_status;
use crate::cli::report::costs;
use crate::cli::report::waits::described;
use crate::cli::view::ls::choice::{Choice, Hidden};
use crate::core::chain::frame_state::AgentStatus;
use crate::core::chain::waiting_on::{Blocker, Blocking};
use crate::core::requests::question::Form;
use crate::core::requests::request::External;
use crate::core::text::age::time_until;
use crate::store::Chains;

/// List the open chains of this project, newest first
///
/// A chain is open until it is done. Its project is the git repository in which it was started, all worktrees included,
/// or else the directory. What is left out is counted on standard error.
#[derive(Debug, Args)]
#[command(after_long_help = "States:
  ready      nothing keeps it from running
  running    one of its agents runs
  waiting    for an answer, an approval, a file, a time, a limit or a child; nothing runs
  paused     by `agent-cli pause`; `resume` continues it
  done       the agent at the top has replied
  failed     with an error, or stopped by `agent-cli stop`; `resume` tries again after an error,
             and `resume --prompt` continues what was stopped
  cancelled  interrupted by Ctrl-C; `resume` continues it
  abandoned  recorded as running, but its process was killed; any `resume` continues it")]
pub(crate) struct Ls {
    /// Also list chains that are done
    #[arg(short, long)]
    all: bool,

    /// Also list the chains of other projects
    #[arg(short = 'p', long)]
    all_projects: bool,

    /// Only list chains in this state (see below); can be repeated
    #[arg(long, value_name = "STATUS", value_parser = PossibleValuesParser::new(statuses()))]
    status: Vec<String>,

    /// List at most this many [default: 100, with --json all]
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one())]
    limit: Option<usize>,

    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

/// What `--status` takes: the states of an agent, and that of a chain whose runner died.
fn statuses() -> impl Iterator<Item = &'static str> {
    AgentStatus::ALL.into_iter().map(AgentStatus::name).chain(["abandoned"])
}

impl Ls {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let (store, now) = (context.store()?, Timestamp::now());
        let abandoned: HashSet<_> = store.abandoned()?.into_values().collect();
        let most = self.limit.unwrap_or(if self.json { usize::MAX } else { MOST });
        let choice = Choice {
            done: self.all,
            all_projects: self.all_projects,
            status: &self.status,
            most,
            abandoned: &abandoned,
        };
        let (chains, hidden) = match context.caller {
            // For an agent, its chains are the agents that it started.
            Some(caller) => (store.chains(Chains::StartedBy(caller.frame))?.chains, Hidden::default()),
            None => choice.of(&context.app(&store))?,
        };
        let of = |chain| ChainView::gather(&store, chain, &abandoned, now);
        let mut listed = chains.into_iter().map(of).collect::<Result<Vec<_>, _>>()?;
        listed.retain(|chain| self.status.is_empty() || self.status.iter().any(|status| is_in(chain, status)));
        listed.truncate(most);
        if self.json {
            print_json(&listed)?;
            hidden.report(&self.command(), listed.is_empty(), &[]);
            return Ok(ExitStatus::Ok);
        }
        if hidden.is_empty || listed.is_empty() && context.caller.is_some() {
            tell("no chains yet");
            hint("agent-cli spawn FILE starts one");
            return Ok(ExitStatus::Ok);
        }
        if !listed.is_empty() {
            print_toned(&self.table(&listed, now))?;
            listed.iter().for_each(warn_of_budget);
        }
        hidden.report(&self.command(), listed.is_empty(), &self.status);
        Ok(ExitStatus::Ok)
    }

    /// The command with the options that select chains.
    fn command(&self) -> ListCommand {
        let status: Vec<String> = self.status.iter().map(|status| format!("--status {status}")).collect();
        let options =
            [(self.all, "--all"), (self.all_projects, "--all-projects"), (!status.is_empty(), &status.join(" "))];
        ListCommand::new("ls", "chain", &options)
    }

    /// On a narrow terminal only what says which chain it is, and what for.
    fn table(&self, listed: &[ChainView], now: Timestamp) -> Vec<TonedLine> {
        let is_wide = output::width().is_none_or(|width| width >= NARROW);
        let with_names = listed.iter().any(|chain| chain.name.is_some());
        let columns = |cells: [String; 7]| {
            let shown = [true, true, is_wide, is_wide, with_names, is_wide && self.all_projects, true];
            cells.into_iter().zip(shown).filter_map(|(cell, shown)| shown.then_some(cell)).collect::<Vec<_>>()
        };
        let head = columns(["CHAIN", "STATE", "AGE", "COST", "NAME", "DIRECTORY", "TASK"].map(str::to_owned));
        let rows = listed.iter().map(|chain| {
            let state = if chain.abandoned { "abandoned" } else { chain.status.name() };
            columns([
                chain.id.short(),
                state.to_owned(),
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
        return chain_status::abandoned(chain.id);
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
                awaited(first, now, &TimeZone::system()),
                more(chain.waiting_on.len())
            )
        }
        _ if !chain.doing.is_empty() => {
            let first = chain.doing.values().max_by_key(|doing| (doing.stalled, doing.last_event));
            let others = chain.doing.len() - 1;
            let more = if others > 0 { format!(", and {others} more run") } else { String::new() };
            let waits = match chain.waiting_on.first() {
                Some(first) => format!("; waits {}", awaited(first, now, &TimeZone::system())),
                None => String::new(),
            };
            first.map_or_else(String::new, |doing| doing.words(now) + &more + &waits)
        }
        None if chain.can_continue => "can continue".to_owned(),
        _ => String::new(),
    }
}

/// What is waited for, with how long ago it was asked or how long it takes.
fn awaited(blocker: &Blocker, now: Timestamp, zone: &TimeZone) -> String {
    let what = described(&blocker.what);
    let until = |at: Timestamp| if at > now { format!(" (in {})", time_until(at, now)) } else { String::new() };
    match &blocker.what {
        Blocking::Question { form: Form { expires_at: Some(at), .. }, .. } => {
            format!("for {what}, asked {} ago, {}", age(blocker.since, now), moment::expiry(*at, now, zone))
        }
        Blocking::Question { .. } | Blocking::Permission { .. } | Blocking::Plan { .. } => {
            format!("for {what}, asked {} ago", age(blocker.since, now))
        }
        Blocking::External { wait: External::Time(at), .. } => format!("until {}", moment::moment(*at, now, zone)),
        Blocking::External { wait: External::Scheduled(scheduled), .. } => format!("for {what}{}", until(scheduled.at)),
        Blocking::UsageLimit { resets_at } => format!("for {what}{}", until(*resets_at)),
        Blocking::Retry { at, .. } => format!("for {what}{}", until(*at)),
        _ => format!("for {what}"),
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

/// Warns of a chain that has cost more than its budget: agents that ran when it was spent went on.
fn warn_of_budget(chain: &ChainView) {
    if let Some(warning) = costs::passed(chain.id, &chain.cost.0, chain.max_budget_usd) {
        output::warn(&warning);
    }
}

/// Whether this is the chain's state.
fn is_in(chain: &ChainView, status: &str) -> bool {
    chain.status.name() == status || status == "abandoned" && chain.abandoned
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::{FrameId, RequestId};

    #[test]
    fn a_wait_says_since_when_or_until_when() {
        let time = |text: &str| text.parse::<Timestamp>().unwrap();
        let now = time("2026-11-22T09:49:00Z");
        let said = |what| {
            awaited(
                &Blocker { frame: FrameId::random(), since: time("2026-11-22T07:49:00Z"), what },
                now,
                &TimeZone::UTC,
            )
        };
        let at = |text: &str| said(Blocking::External { wait: External::Time(time(text)), conditions: Vec::new() });
        assert_eq!(at("2026-11-22T11:49:30Z"), "until 11:49 (in 2 h)");
        assert_eq!(at("2026-12-24T18:00:00Z"), "until 2026-12-24 18:00 (in 32 d)");
        assert_eq!(at("2026-11-22T09:00:00Z"), "until 09:00");
        let id = RequestId::random();
        let question = said(Blocking::Question { id, form: Form::text("When?") });
        assert_eq!(question, format!("for an answer to {}: When?, asked 2 h ago", id.short()));
        let form = Form { expires_at: Some(time("2026-11-22T11:49:00Z")), ..Form::text("When?") };
        let question = said(Blocking::Question { id, form });
        let expected = format!("for an answer to {}: When?, asked 2 h ago, expires 11:49 (in 2 h)", id.short());
        assert_eq!(question, expected);
        let limit = said(Blocking::UsageLimit { resets_at: time("2026-11-22T09:59:00Z") });
        assert_eq!(limit, "for the usage limit to reset at 2026-11-22T09:59:00Z (in 10 min)");
    }
}
