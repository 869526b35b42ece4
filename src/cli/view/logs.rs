//! `agent-cli logs`: prints what an agent said and did.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use clap::Args;
use jiff::Timestamp;
use jiff::civil::Date;

use crate::app::lists::logs::{self, Input};
use crate::app::lists::single_agent;
use crate::cli::arguments::id_completion;
use crate::cli::arguments::pager_option::PagerOption;
use crate::cli::arguments::since::{Since, since};
use crate::cli::arguments::whole_number;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::format::time_since;
use crate::cli::output::{self, hint, print_json, print_line, print_quoted, tell};
use crate::cli::report::event_lines::EventLines;
use crate::core::chain::frame_state::FrameState;
use crate::core::chain::progress_lines::ChainOutlook;
use crate::core::chain::tree::Tree;
use crate::core::events::activity::is_stalled;
use crate::core::events::agent_event::{AgentEvent, AgentEventKind};
use crate::core::id::FrameId;
use crate::local_zone::local_zone;
use crate::runtime::activity::chain_events::ChainEvents;
use crate::runtime::activity::follower::Follower;
use crate::store::Store;

/// Show what an agent said and did
///
/// Prints one line for each text, tool call, result, pause and end, from the first attempt to the last, and then all of
/// the reply. Lines of other days are below their date. With --follow, waits for more until the agent and everything below
/// it have ended, or wait for something outside this machine's processes, such as an answer. Following changes nothing and
/// costs nothing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli logs 4f2c1a90 --follow
  agent-cli logs 4f2c1a90 --follow --tail 20
  agent-cli logs 4f2c1a90 --chain --since 10m
  agent-cli logs 4f2c1a90 --chain --json | jq 'select(.type == \"tool_use\")'")]
pub(crate) struct Logs {
    /// Id of an agent, chain or session, the name of a chain, or `last`
    #[arg(add = id_completion::all_agents())]
    id: String,

    /// Print new events as they happen
    #[arg(short, long)]
    follow: bool,

    /// Include all agents below it, in chronological order
    #[arg(long)]
    chain: bool,

    /// Only events since this time (14:00, 2026-11-20) or this long ago (10m)
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true, value_parser = since)]
    since: Option<Since>,

    /// Only the last N events, and with --follow what comes after them
    #[arg(long, value_name = "N", value_parser = whole_number)]
    tail: Option<usize>,

    /// Print all of every text, call and result
    #[arg(long)]
    full: bool,

    /// Print a JSON object for each event (docs/events.md)
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    pager: PagerOption,
}

/// How long a chain that can continue may remain idle while its events are followed. No process runs between two agents.
const BETWEEN: Duration = Duration::from_secs(3);
/// The longest time between two checks. A notification triggers a check earlier.
const LOOK: Duration = Duration::from_millis(500);

impl Logs {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let _paged = self.pager.begin(self.json || self.follow);
        let store = context.store()?;
        let input = Input {
            id: self.id.clone(),
            with_descendants: self.chain,
            since: self.since.as_ref().map(|since| since.time),
            tail: self.tail,
            is_full: self.full,
            follows: self.follow,
        };
        let mut printer = Printer::new(&self);
        let mut events = logs::logs(&context.app(&store), &input, |event| printer.shows(event))?;
        printer.names(events.tree());
        while let Some(event) = events.next()? {
            if !printer.print(&event)? {
                return Ok(ExitStatus::Ok);
            }
        }
        let top = events.top;
        if self.follow {
            let (later, last) = events.into_later();
            printer.last = last;
            follow(&store, top, later, &mut printer)?;
        } else if printer.printed == 0 && !self.json {
            let is_group = store.frame(top)?.is_some_and(|frame| frame.task.is_group());
            let id = top.short();
            match self.since {
                _ if is_group && !self.chain => {
                    tell(&format!("a group has no events of its own: agent-cli logs {id} --chain"));
                }
                Some(_) => {
                    tell("no events since then");
                    hint(&format!(
                        "agent-cli logs {id}{} shows earlier ones",
                        if self.chain { " --chain" } else { "" }
                    ));
                }
                None if self.tail == Some(0) => {}
                None => tell("no events yet"),
            }
        }
        // The reply is older than what was asked for.
        let is_omitted = self.since.is_some() && !self.follow && printer.printed == 0;
        if context.caller.is_none()
            && !is_omitted
            && let Some(reply) = single_agent::reply_of(&store, top)?.filter(|reply| printer.lacks(reply))
        {
            print_line(&format!("\nreply:\n{}", reply.trim_end()))?;
        }
        Ok(ExitStatus::Ok)
    }
}

/// Prints events until no more can happen, or the reader has disappeared.
fn follow(store: &Store, top: FrameId, events: ChainEvents<'_>, printer: &mut Printer) -> Result<(), CliError> {
    let mut follower = Follower::new(store, events);
    let (mut can_continue_since, mut is_confirmed) = (None, false);
    loop {
        printer.names(follower.tree());
        while let Some(event) = follower.next()? {
            can_continue_since = None;
            if !printer.print(&event)? {
                return Ok(());
            }
        }
        let outlook = follower.outlook();
        if matches!(outlook, ChainOutlook::Waits(_) | ChainOutlook::Over) && !is_confirmed {
            // Earlier records may not have been read yet.
            is_confirmed = true;
            follower.refresh()?;
            continue;
        }
        is_confirmed = false;
        match outlook {
            ChainOutlook::Runs => {
                can_continue_since = None;
                printer.report_stalls(follower.tree());
            }
            ChainOutlook::CanContinue => {
                let since = *can_continue_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= BETWEEN {
                    tell(&format!("{} can continue, but nothing runs it", top.short()));
                    hint(&format!("agent-cli resume {}", top.short()));
                    return Ok(());
                }
            }
            ChainOutlook::Waits(why) => {
                why.iter().for_each(|(frame, why)| tell(&format!("{} {why}", frame.short())));
                return Ok(());
            }
            ChainOutlook::Over => return Ok(()),
        }
        follower.wait(LOOK)?;
        if output::has_no_reader() {
            return Ok(());
        }
    }
}

/// Prints events according to the options.
struct Printer {
    lines: EventLines,
    json: bool,
    since: Option<Timestamp>,
    printed: u64,
    /// When each agent's last event happened.
    last: HashMap<FrameId, Timestamp>,
    /// The agents that were reported as stalled and have been silent since then.
    stalled: HashSet<FrameId>,
    /// The day of the last line, in the reader's time zone. The first value is today.
    day: Date,
    /// The last text of an agent, if all of it was printed.
    said: Option<String>,
}

impl Printer {
    fn new(logs: &Logs) -> Self {
        let names = logs.chain.then(Default::default);
        let lines = EventLines { full: logs.full, width: output::width(), zone: local_zone(), names };
        let (last, stalled) = (HashMap::new(), HashSet::new());
        let day = lines.day(Timestamp::now());
        Self {
            lines,
            json: logs.json,
            since: logs.since.as_ref().map(|since| since.time),
            printed: 0,
            last,
            stalled,
            day,
            said: None,
        }
    }

    /// Records the names of the agents in a chain.
    fn names(&mut self, tree: &Tree) {
        if let Some(names) = &mut self.lines.names {
            names.extend(tree.parents_first().into_iter().map(|node| (node.id, node.title.clone())));
        }
    }

    /// Reports stalled agents. Each agent is reported once, until its next event.
    fn report_stalls(&mut self, tree: &Tree) {
        let now = Timestamp::now();
        let after = tree.whole().limits.stall_after();
        for node in tree.parents_first().iter().filter(|node| matches!(node.state, FrameState::Running { .. })) {
            let last = self.last.get(&node.id).map_or(node.since, |last| node.since.max(*last));
            let is_followed = self.lines.names.is_some() || node.id == tree.top();
            if is_followed && is_stalled(last, now, after) && self.stalled.insert(node.id) {
                tell(&format!("{} is stalled: no event for {}", node.id.short(), time_since(last, now)));
            }
        }
    }

    /// Whether it prints anything for an event.
    fn shows(&self, event: &AgentEvent) -> bool {
        self.json || self.lines.lines(event).is_some()
    }

    /// Whether a person has yet to see all of the reply.
    fn lacks(&self, reply: &str) -> bool {
        !self.json && !output::was_unread() && self.said.as_deref() != Some(reply.trim())
    }

    /// Prints an event. Returns whether the output still has a reader.
    fn print(&mut self, event: &AgentEvent) -> Result<bool, CliError> {
        self.last.insert(event.frame, event.at);
        self.stalled.remove(&event.frame);
        if self.since.is_some_and(|since| event.at < since) {
            return Ok(true);
        }
        if self.json {
            print_json(event)?;
            self.printed += 1;
        } else if let Some(lines) = self.lines.lines(event) {
            let day = self.lines.day(event.at);
            let heading = if day == self.day { String::new() } else { format!("{day}\n") };
            self.day = day;
            if let AgentEventKind::Text { text } = &event.what {
                self.said = Some(text.trim().to_owned()).filter(|text| self.lines.shows_all_of(text));
            }
            print_quoted(&(heading + &lines))?;
            self.printed += 1;
        }
        Ok(!output::was_unread())
    }
}
