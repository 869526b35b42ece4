//! `agent-cli tree`: shows chains as trees.

use std::collections::HashMap;

use clap::Args;
use jiff::Timestamp;

use crate::app::lists::chains;
use crate::app::lists::tree::{self, Input, ListedTree, Outcome};
use crate::app::view::agent::{Abandoned, AgentView};
use crate::cli::arguments::{at_least_one, id_completion};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::format::{cut, fitted, time_since};
use crate::cli::output::{self, ListCommand, Tone, TonedLine, hint, print_json, print_toned, tell};
use crate::cli::report::status_report;
use crate::cli::report::waits::described;
use crate::cli::view::ls::{LINES, NARROW, tell_of_no_chains, tone};
use crate::core::agent::usage::Spent;
use crate::core::chain::tree::Tree;
use crate::core::id::FrameId;

use crate::core::text::wrap::{columns, wrapped_within};
use crate::local_zone::local_zone;

/// Show every agent of a chain as a tree, and what each waits for
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli tree
  agent-cli tree 4f2c1a90
  agent-cli tree last --json")]
pub(crate) struct TreeCommand {
    /// Id of an agent, chain or session, the name of a chain, or `last` [default: this project's chains that are not done]
    #[arg(add = id_completion::all_agents())]
    id: Option<String>,

    /// Also show the chains of other projects
    #[arg(short = 'p', long, conflicts_with = "id")]
    all_projects: bool,

    /// Show at most this many chains, the newest [default: 100, with --json all]
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one::<usize>, conflicts_with = "id")]
    limit: Option<usize>,

    /// Show what each agent cost, and the total
    #[arg(long)]
    cost: bool,

    /// Print a JSON array of agents, parents before children
    #[arg(long)]
    json: bool,
}

impl TreeCommand {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let (store, all_projects) = (context.store()?, self.all_projects);
        let most = self.limit.or(if self.json { None } else { Some(MOST) });
        let app = context.app(&store);
        let found = tree::tree(&app, &Input { id: self.id, all_projects, most })?;
        let report = || report(&found, &[(self.cost, "--cost"), (all_projects, "--all-projects")]);
        if self.json {
            print_json(&found.trees.iter().flat_map(|listed| &listed.agents).collect::<Vec<_>>())?;
            report();
            return Ok(ExitStatus::Ok);
        }
        for ListedTree { tree, agents, .. } in &found.trees {
            print_toned(&drawn(tree, agents, app.now, &found.abandoned, self.cost))?;
        }
        if !found.trees.is_empty() {
            report();
            return Ok(ExitStatus::Ok);
        }
        let finished = chains::any(&app, all_projects)?;
        if finished.omitted.is_empty {
            tell_of_no_chains();
            return Ok(ExitStatus::Ok);
        }
        tell(if all_projects { "no open chains" } else { "no open chains in this project" });
        report();
        if !finished.chains.is_empty() {
            let all = if all_projects { " --all-projects" } else { "" };
            hint(&format!("agent-cli ls --all{all} also lists finished chains"));
        }
        Ok(ExitStatus::Ok)
    }
}

/// Reports chains that are not listed.
fn report(found: &Outcome, options: &[(bool, &str)]) {
    let command = ListCommand::new("tree", "chain", options);
    command.tell_of_elsewhere(found.elsewhere);
    match found.more {
        0 => {}
        1 => tell(&format!("1 more chain: {}", command.with("--limit N"))),
        more => tell(&format!("{more} more chains: {}", command.with("--limit N"))),
    }
}

/// The default limit of the list.
const MOST: usize = 100;

/// Draws each agent on a line below its parent.
fn drawn(tree: &Tree, agents: &[AgentView], now: Timestamp, abandoned: &Abandoned, with_costs: bool) -> Vec<TonedLine> {
    let mut lines = Vec::new();
    let sums = with_costs.then(|| summed(agents));
    // The lines to draw before an agent's children. The children are printed after the agent.
    let mut bars = HashMap::from([(tree.top(), String::new())]);
    for agent in agents {
        let siblings = agent.parent.filter(|_| agent.id != tree.top()).map(|parent| tree.children(parent));
        let bar = bars.get(&agent.id).cloned().unwrap_or_default();
        let (corner, next) = match siblings.and_then(<[_]>::last) {
            None => ("", ""),
            Some(last) if *last == agent.id => ("└─ ", "   "),
            Some(_) => ("├─ ", "│  "),
        };
        let children = tree.children(agent.id);
        let cost = sums.as_ref().map(|sums| {
            let (own, all) = (agent.cost.0.dollars(), sums.get(&agent.id).map(Spent::dollars));
            match all.filter(|_| !children.is_empty()) {
                Some(all) => format!("{own} (in all {all})  "),
                None => format!("{own}  "),
            }
        });
        let cost = cost.unwrap_or_default();
        let Line { state, task, reason } = line(tree, agent, now, abandoned);
        let before = format!("{bar}{corner}{cost}{} ", agent.id.short());
        let whole = format!("{before}{state}{task}{reason}");
        let below = format!("{bar}{next}{}", if children.is_empty() { "   " } else { "│  " });
        let beneath = output::width().filter(|width| *width < NARROW && columns(&whole) > *width);
        let beneath = beneath.filter(|width| width.saturating_sub(columns(&below)) >= ROOM);
        let line = if beneath.is_some() { format!("{before}{state}{task}") } else { whole };
        let text = output::width().map_or_else(|| line.clone(), |width| fitted(&line, width));
        let part = before.len().min(text.len())..(before.len() + state.len()).min(text.len());
        // Cutting the line may split the state.
        let part = if text.is_char_boundary(part.end) { part } else { 0..0 };
        lines.push(TonedLine { text, part, tone: tone(agent.state) });
        if let Some(width) = beneath {
            let room = width - columns(&below);
            let reason = wrapped_within(&fitted(reason.trim_start(), LINES * room), room, 0);
            lines.extend(reason.into_iter().map(|line| TonedLine {
                text: format!("{below}{line}"),
                part: 0..0,
                tone: Tone::Plain,
            }));
        }
        bars.extend(children.iter().map(|child| (*child, format!("{bar}{next}"))));
    }
    lines
}

/// A reason that does not fit on the line is below it if it has at least so much room there.
const ROOM: usize = 20;

const UNRECORDED: &str = "  claude could not record its last turn: no room";

/// The cost of each agent, including all agents below it.
fn summed(agents: &[AgentView]) -> HashMap<FrameId, Spent> {
    let mut all: HashMap<_, _> = agents.iter().map(|agent| (agent.id, agent.cost.0)).collect();
    // Children come after their parents.
    for agent in agents.iter().rev() {
        let own = all.get(&agent.id).copied().unwrap_or_default();
        if let Some(above) = agent.parent.and_then(|parent| all.get_mut(&parent)) {
            *above = above.plus(own);
        }
    }
    all
}

/// What is shown of an agent, after its id.
struct Line {
    state: String,
    task: String,
    /// What it does or waits for, or why it failed.
    reason: String,
}

fn line(tree: &Tree, agent: &AgentView, now: Timestamp, abandoned: &Abandoned) -> Line {
    let task = cut(&agent.task, 60);
    if let Some(root) = abandoned.get(&agent.id) {
        return Line { state: status_report::abandoned(*root), task: format!("  {task}"), reason: String::new() };
    }
    let mut line = String::new();
    if let Some(doing) = &agent.doing {
        line.push_str(&format!("  {}", doing.words(now)));
    }
    let mut reasons: Vec<_> = agent.waiting_on.iter().map(|blocker| described(&blocker.what)).collect();
    match tree.get(agent.id).map_or(0, |node| tree.children_awaited_by(node)) {
        0 => {}
        _ if agent.handed_off_to.is_some() => {}
        1 => reasons.insert(0, "its child".to_owned()),
        several => reasons.insert(0, format!("{several} children")),
    }
    if !reasons.is_empty() {
        line.push_str(&format!("  waits for {}", reasons.join(", and for ")));
    }
    if let Some(successor) = agent.handed_off_to {
        line.push_str(&format!("  handed off to {}", successor.short()));
    }
    if agent.unrecorded {
        line.push_str(UNRECORDED);
    }
    if let Some(error) = &agent.error {
        line.push_str(&format!("  {}", cut(error, 200)));
    }
    let state = agent.state.words(now, &local_zone());
    Line { state, task: format!(" ({})  {task}", time_since(agent.since, now)), reason: line }
}
