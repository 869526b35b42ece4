//! `agent-cli tree`: chains as trees.

use std::collections::{BTreeMap, HashMap};

use clap::Args;
use jiff::Timestamp;
use serde::Serialize;

use crate::cli::arguments::{at_least_one, candidates};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::lookup::{Projects, frame_named, here};
use crate::cli::output::format::{age, cut, fitted};
use crate::cli::output::{self, ListCommand, hint, print, print_json, tell};
use crate::cli::report::chain_status;
use crate::cli::report::costs::{self, SpentJson};
use crate::cli::report::waits::described;
use crate::core::agent::worktree::Worktree;
use crate::core::attempt::usage::Spent;
use crate::core::chain::state::FrameState;
use crate::core::chain::tree::{Node, Tree};
use crate::core::chain::waiting_on::Blocker;
use crate::core::id::FrameId;
use crate::runtime::activity::now::{Doing, activities};
use crate::runtime::run::external_waits;
use crate::store::{self, Alike, Attempts, Chains, Extent, Store, WorktreesOf};

/// Show a chain as a tree: every agent, its state, what it waits for and for how long
#[derive(Debug, Args)]
pub(crate) struct TreeCommand {
    /// Id of an agent, chain or session, the name of a chain, or `last` [default: this project's chains that are not done]
    #[arg(add = candidates::all_agents())]
    id: Option<String>,

    /// Also show the chains of other projects
    #[arg(short = 'p', long, conflicts_with = "id")]
    all_projects: bool,

    /// Show at most this many chains, the newest [default: 100, with --json all]
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one(), conflicts_with = "id")]
    limit: Option<usize>,

    /// Show what each agent cost, and all together
    #[arg(long)]
    cost: bool,

    /// Print a JSON array of agents, parents before children
    #[arg(long)]
    json: bool,
}

/// The frames that nobody runs, each with its root.
type Abandoned = HashMap<FrameId, FrameId>;

/// What running agents do.
type Activities = BTreeMap<FrameId, Doing>;

/// What each frame has cost.
type Costs = HashMap<FrameId, Spent>;

/// A frame, as `--json` lists it: parents before their children.
#[derive(Debug, Serialize)]
struct FrameJson<'a> {
    id: FrameId,
    parent: Option<FrameId>,
    task: &'a str,
    status: &'static str,
    /// Whether it is recorded as running but nothing runs it.
    abandoned: bool,
    /// Whether `claude` could not record its last turn, which is done again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unrecorded: bool,
    since: Timestamp,
    error: Option<&'a str>,
    waiting_on: Vec<Blocker>,
    /// Only for an agent that runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    doing: Option<Doing>,
    /// Only for an agent that has its own worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    worktree: Option<Worktree>,
    /// What it has cost itself.
    #[serde(flatten)]
    spent: SpentJson,
}

impl TreeCommand {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let store = context.store()?;
        let tops = match (&self.id, context.caller) {
            (Some(id), _) => vec![frame_named(context, &store, id)?],
            (None, Some(caller)) => vec![caller.frame],
            (None, None) => self.open(&store)?,
        };
        let now = Timestamp::now();
        let abandoned = store::abandoned(&store)?;
        let mut trees = tops.into_iter().map(|top| store.tree(top)).collect::<Result<Vec<_>, _>>()?;
        trees.iter_mut().try_for_each(|tree| external_waits::observe(&store, tree, now))?;
        if self.json {
            let mut all = Vec::new();
            for tree in &trees {
                let mut worktrees: HashMap<_, _> =
                    store.worktrees(WorktreesOf::Chain(tree.top()))?.into_iter().collect();
                let costs = costs_of(&store, tree, now)?;
                let listed = tree.parents_first().into_iter().map(|node| listed(tree, node, now, &abandoned));
                let mut activities = activities(&store, tree, now)?;
                all.extend(listed.map(|listed| FrameJson {
                    doing: activities.remove(&listed.id).filter(|_| !listed.abandoned),
                    worktree: worktrees.remove(&listed.id),
                    spent: costs.get(&listed.id).copied().unwrap_or_default().into(),
                    ..listed
                }));
            }
            print_json(&all)?;
            return Ok(ExitStatus::Ok);
        }
        if trees.is_empty() {
            tell(if self.all_projects { "no open chains" } else { "no open chains in this project" });
            hint("agent-cli ls --all lists those that are done");
        }
        for tree in &trees {
            let costs = self.cost.then(|| costs_of(&store, tree, now)).transpose()?;
            let activities = activities(&store, tree, now)?;
            print(&drawn(tree, now, &abandoned, &activities, costs.as_ref()))?;
        }
        Ok(ExitStatus::Ok)
    }
}

impl TreeCommand {
    /// The chains that are not done, the newest first.
    fn open(&self, store: &Store) -> Result<Vec<FrameId>, CliError> {
        let mut projects = Projects::default();
        let project = if self.all_projects { None } else { Some(here(&mut projects)?) };
        let mut elsewhere = 0;
        let mut is_meant = |kind: &Alike| {
            if kind.status == "done" {
                return false;
            }
            let is_here = project.as_ref().is_none_or(|project| projects.of(&kind.cwd) == *project);
            elsewhere += if is_here { 0 } else { kind.count };
            is_here
        };
        let most = self.limit.unwrap_or(if self.json { usize::MAX } else { MOST });
        let open = store.chains(Chains::Newest { most, is_meant: &mut is_meant })?;
        let command =
            ListCommand::new("tree", "chain", &[(self.cost, "--cost"), (self.all_projects, "--all-projects")]);
        command.tell_of_elsewhere(elsewhere);
        match open.more {
            0 => {}
            1 => tell(&format!("1 more chain: {}", command.with("--limit N"))),
            more => tell(&format!("{more} more chains: {}", command.with("--limit N"))),
        }
        Ok(open.chains.into_iter().map(|chain| chain.id).collect())
    }
}

/// More than a person looks through.
const MOST: usize = 100;

/// What each agent has cost itself. Those without attempts are left out.
fn costs_of(store: &Store, tree: &Tree, now: Timestamp) -> Result<Costs, CliError> {
    let mut costs = Costs::new();
    for attempt in store.attempts(Attempts::Of(Extent::Below(tree.top())))? {
        let sum = costs.entry(attempt.frame).or_default();
        *sum = sum.plus(costs::of_attempt(&attempt.spending, attempt.began, attempt.ended, now));
    }
    Ok(costs)
}

fn listed<'a>(tree: &Tree, node: &'a Node, now: Timestamp, abandoned: &Abandoned) -> FrameJson<'a> {
    let error = match &node.state {
        FrameState::Failed { failure } => Some(failure.message.as_str()),
        _ => None,
    };
    let (status, waiting_on) = (node.state.name(), tree.blockers_of(node, now));
    let (id, parent, task, since) = (node.id, node.parent, &node.title, node.since);
    let abandoned = abandoned.contains_key(&id);
    FrameJson {
        id,
        parent,
        task,
        status,
        abandoned,
        unrecorded: node.is_unrecorded && !node.is_over(),
        since,
        error,
        waiting_on,
        doing: None,
        worktree: None,
        spent: Spent::default().into(),
    }
}

/// Each frame on a line, below its parent.
fn drawn(tree: &Tree, now: Timestamp, abandoned: &Abandoned, activities: &Activities, costs: Option<&Costs>) -> String {
    let mut text = String::new();
    let sums = costs.map(|costs| (costs, summed(tree, costs)));
    // The lines before a frame's children, which are printed after the frame.
    let mut bars = HashMap::from([(tree.top(), String::new())]);
    for node in tree.parents_first() {
        let siblings = node.parent.filter(|_| node.id != tree.top()).map(|parent| tree.children(parent));
        let bar = bars.get(&node.id).cloned().unwrap_or_default();
        let (corner, next) = match siblings.and_then(<[_]>::last) {
            None => ("", ""),
            Some(last) if *last == node.id => ("└─ ", "   "),
            Some(_) => ("├─ ", "│  "),
        };
        let cost = sums.as_ref().map(|(own, all): &(&Costs, Costs)| {
            let of = |costs: &Costs| costs::dollars(&costs.get(&node.id).copied().unwrap_or_default());
            if tree.children(node.id).is_empty() {
                return format!("{}  ", of(own));
            }
            format!("{} (in all {})  ", of(own), of(all))
        });
        let cost = cost.unwrap_or_default();
        let line = format!("{bar}{corner}{cost}{}", line(tree, node, now, abandoned, activities));
        text.push_str(&output::width().map_or_else(|| line.clone(), |width| fitted(&line, width)));
        text.push('\n');
        bars.extend(tree.children(node.id).iter().map(|child| (*child, format!("{bar}{next}"))));
    }
    text
}

const UNRECORDED: &str = "  claude could not record its last turn: no room";

/// What each agent cost with all agents below it.
fn summed(tree: &Tree, costs: &Costs) -> Costs {
    let mut all = costs.clone();
    for node in tree.leaves_up() {
        let own = all.get(&node.id).copied().unwrap_or_default();
        if let Some(parent) = node.parent {
            let above = all.entry(parent).or_default();
            *above = above.plus(own);
        }
    }
    all
}

fn line(tree: &Tree, node: &Node, now: Timestamp, abandoned: &Abandoned, activities: &Activities) -> String {
    let listed = listed(tree, node, now, abandoned);
    if let Some(root) = abandoned.get(&listed.id) {
        return format!("{} {}  {}", listed.id.short(), chain_status::abandoned(*root), cut(listed.task, 60));
    }
    let age = age(listed.since, now);
    let mut line = format!("{} {} for {age}  {}", listed.id.short(), listed.status, cut(listed.task, 60));
    if let Some(doing) = activities.get(&listed.id) {
        line.push_str(&format!("  {}", doing.words(now)));
    }
    let mut reasons: Vec<_> = listed.waiting_on.iter().map(|blocker| described(&blocker.what)).collect();
    match tree.children_awaited_by(node) {
        0 => {}
        1 => reasons.insert(0, "its child".to_owned()),
        several => reasons.insert(0, format!("{several} children")),
    }
    if !reasons.is_empty() {
        line.push_str(&format!("  waits for {}", reasons.join(", and for ")));
    }
    if node.is_unrecorded && !node.is_over() {
        line.push_str(UNRECORDED);
    }
    if let Some(error) = listed.error {
        line.push_str(&format!("  {}", cut(error, 200)));
    }
    line
}
