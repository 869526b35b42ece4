//! Removes one chain: decides whether it can be removed, and removes it. `gc` does this for many chains, `rm` for one.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::claude::environment::config_dir::config_dir;
use crate::claude::processes::orphan_processes::{self, LeftBy};
use crate::claude::transcript::locate::{self, SessionLocations};
use crate::core::agent::child_worktree::{Held, Obstacle, Worktree};
use crate::core::chain::frame_state::AgentStatus;
use crate::core::housekeeping::retention::Retention;
use crate::core::id::FrameId;
use crate::failpoint::{self, Step};
use crate::runtime::worktrees::worktree_removal::{self, Outlook};
use crate::runtime::{RuntimeError, while_trying};
use crate::store::{Decided, Lease, Removable, RemovedTrees, Store, Trash, WorkedSession, WorktreesOf, size};

/// What to remove.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemovalRequest {
    /// Which chains.
    pub retention: Retention,
    /// Also worktrees with files that git ignores, whatever they are.
    pub with_ignored: bool,
    /// Only report what would be removed.
    pub pretend: bool,
}

/// A chain that was removed, or would be.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RemovedChain {
    pub id: FrameId,
    /// The first agent's task in a few words.
    pub task: String,
    /// The state of its first agent.
    pub status: AgentStatus,
    /// When it last changed.
    pub since: Timestamp,
    /// How many agents it had.
    pub agents: usize,
    #[serde(skip)]
    pub frames: Vec<FrameId>,
    /// The size of its files, in the state directory and in Claude Code's folders.
    pub bytes: u64,
}

/// The result for a chain.
#[derive(Debug)]
pub(crate) enum Removal {
    /// It was removed, or would be.
    Gone(RemovedChain),
    /// It is kept: one of its processes is alive, or it was continued.
    Busy,
    /// It is kept: a frame of another chain waits for one of its frames, or continues one of their sessions.
    Needed,
    /// It is kept: its worktrees hold work.
    Held(Vec<Held>),
}

/// A worktree to remove, unless work is found in it at the last moment.
#[derive(Clone, Debug)]
pub(crate) struct Condemned {
    /// The frame that it was made for.
    pub frame: FrameId,
    pub worktree: Worktree,
    /// The ignored files and folders in it, below its top folder.
    pub ignored: Vec<PathBuf>,
}

/// The decision about a chain.
#[derive(Debug)]
pub(crate) enum Decision {
    /// One of its processes is alive.
    Busy,
    /// It is removed together with these worktrees.
    Remove(Vec<Condemned>),
    /// It is kept because of some of its worktrees. The others are removed if no agent would continue in them.
    Keep { held: Vec<Held>, others: Vec<Condemned> },
}

/// The decision about a worktree.
#[derive(Debug)]
pub(crate) enum Judgement {
    Gone,
    Removable(Condemned),
    Held(Held),
}

/// Removes the chain of `root`, whatever its state, unless another chain would lose something, or it is running.
pub(crate) fn remove_tree(store: &Store, root: FrameId, with_ignored: bool) -> Result<Removal, RuntimeError> {
    let request = RemovalRequest { retention: Retention::NOTHING, with_ignored, pretend: false };
    let Some(tree) = store.housekeeping().removable(root.into())?.pop() else {
        return Err(crate::store::StoreError::UnknownFrame(root).into());
    };
    if tree.age.needed {
        return Ok(Removal::Needed);
    }
    match decide(store, &tree, with_ignored, &HashSet::new())? {
        Decision::Busy => Ok(Removal::Busy),
        Decision::Keep { held, .. } => Ok(Removal::Held(held)),
        Decision::Remove(worktrees) => {
            match prepare(store, tree, &worktrees, request, &mut SessionLocations::default())? {
                Preparation::Prepared(tree) => {
                    let (mut removed, trash) = finish(store, vec![tree], request)?;
                    trash.delete()?;
                    Ok(removed.pop().unwrap_or(Removal::Busy))
                }
                Preparation::Stays(removal) => Ok(removal),
            }
        }
    }
}

/// Removes a chain in which no agent has started anything. Returns whether it did.
pub(crate) fn remove_unused(store: &Store, root: FrameId) -> Result<bool, RuntimeError> {
    for node in store.tree(root)?.all() {
        if store.frame(node.id)?.is_some_and(|frame| frame.checkpoint.is_some()) {
            return Ok(false);
        }
    }
    Ok(matches!(remove_tree(store, root, false)?, Removal::Gone(_)))
}

/// Decides about a chain. `gone`: the roots of chains that are removed before it.
pub(crate) fn decide(
    store: &Store,
    tree: &Removable,
    with_ignored: bool,
    gone: &HashSet<FrameId>,
) -> Result<Decision, RuntimeError> {
    let root = tree.root;
    for (frame, _) in &tree.frames {
        if Lease::is_held(store.dir(), *frame)? {
            return Ok(Decision::Busy);
        }
    }
    let goes = |chain| chain == root || gone.contains(&chain);
    let (mut condemned, mut held) = (Vec::new(), Vec::new());
    for (frame, worktree) in store.worktrees(WorktreesOf::Chain(root))? {
        judge(store, frame, worktree, with_ignored, &goes)?.sort_into(&mut condemned, &mut held);
    }
    if held.is_empty() {
        return Ok(Decision::Remove(condemned));
    }
    // The chain is kept, and so are its agents, which could be resumed.
    let mut others = Vec::new();
    for one in condemned {
        if in_use(store, &one.worktree, &|chain| gone.contains(&chain))?.is_none() {
            others.push(one);
        }
    }
    Ok(Decision::Keep { held, others })
}

/// Decides about a worktree. `goes`: whether the chain of this root is removed before it or with it.
pub(crate) fn judge(
    store: &Store,
    frame: FrameId,
    worktree: Worktree,
    with_ignored: bool,
    goes: &dyn Fn(FrameId) -> bool,
) -> Result<Judgement, RuntimeError> {
    let outlook = match in_use(store, &worktree, goes)? {
        Some(why) => Outlook::Held(why),
        None => worktree_removal::outlook(&worktree, with_ignored),
    };
    let condemned = Condemned { frame, worktree, ignored: Vec::new() };
    Ok(match outlook {
        Outlook::Gone => Judgement::Gone,
        Outlook::Removable(ignored) => Judgement::Removable(Condemned { ignored, ..condemned }),
        Outlook::Held(why) => Judgement::Held(condemned.held(why)),
    })
}

/// Why a worktree is in use, or will be: an agent of a chain that is kept is not done and works in it. `goes`: whether the
/// chain of this root is removed.
pub(crate) fn in_use(
    store: &Store,
    worktree: &Worktree,
    goes: &dyn Fn(FrameId) -> bool,
) -> Result<Option<Obstacle>, RuntimeError> {
    let mut workers = store.housekeeping().workers(worktree)?;
    workers.retain(|worker| !goes(worker.root));
    workers.sort_by_key(|worker| worker.is_over);
    Ok(workers.first().map(|worker| {
        let agent = worker.frame.short();
        Obstacle::in_use(if worker.is_over {
            format!("an agent that failed or was stopped would continue in it: {agent}")
        } else {
            format!("another agent works in it: {agent}")
        })
    }))
}

/// A chain of which only rows and files of the state directory remain to be removed.
pub(crate) struct Prepared {
    tree: RemovedChain,
    attempts: u64,
    /// While these are held, no process can run these agents. Running another agent adds an attempt, which is noticed.
    leases: Vec<Lease>,
}

/// How many files are open at most: a system may allow 256 for all purposes.
const MOST_LEASES: usize = 32;

impl Prepared {
    pub(crate) fn root(&self) -> FrameId {
        self.tree.id
    }

    /// Whether so many leases are held for these chains that no other one is prepared.
    pub(crate) fn are_many<'a>(prepared: impl Iterator<Item = &'a Self>) -> bool {
        prepared.map(|prepared| prepared.leases.len()).sum::<usize>() >= MOST_LEASES
    }
}

/// The result of the first part of a removal.
pub(crate) enum Preparation {
    Prepared(Prepared),
    Stays(Removal),
}

/// Removes a chain's files outside the state directory, if it can be removed.
pub(crate) fn prepare(
    store: &Store,
    tree: Removable,
    worktrees: &[Condemned],
    request: RemovalRequest,
    places: &mut SessionLocations,
) -> Result<Preparation, RuntimeError> {
    let root = tree.root;
    let mut leases = Vec::new();
    if !request.pretend {
        for (frame, _) in tree.frames.iter().filter(|(_, is_done)| !is_done) {
            let Some(lease) = Lease::try_take(store.dir(), *frame)? else {
                return Ok(Preparation::Stays(Removal::Busy));
            };
            // No further attempt will end the last attempt's orphaned processes.
            if store.frame(*frame)?.is_some_and(|frame| !frame.state.is_over()) {
                let last = store.attempts(*frame)?.pop();
                let left_by = last.map_or(LeftBy::Nobody, |last| {
                    LeftBy::new(last.host.is_some(), last.runner, last.began, last.ended)
                });
                failpoint::around(Step::Sweep, || orphan_processes::end(store.dir().path(), *frame, left_by));
            }
            if leases.len() < MOST_LEASES {
                leases.push(lease);
            }
        }
        let now = store.housekeeping().removable(root.into())?.pop();
        if now.is_none_or(|now| now.is_other(&tree) || !request.retention.removes(&now.age)) {
            return Ok(Preparation::Stays(Removal::Busy));
        }
        let held = remove_worktrees(store, root, worktrees, request.with_ignored)?;
        if !held.is_empty() {
            return Ok(Preparation::Stays(Removal::Held(held)));
        }
    }
    let frames: Vec<FrameId> = tree.frames.iter().map(|(frame, _)| *frame).collect();
    let transcripts = own_transcripts(store, root, places)?;
    let beside = |path: &PathBuf| size(path) + size(&path.with_extension(""));
    let in_claude: u64 = transcripts.iter().map(beside).sum();
    let here: u64 = frames.iter().map(|frame| size(&store.dir().frame_path(*frame))).sum();
    for path in transcripts.iter().filter(|_| !request.pretend) {
        locate::delete(path).map_err(while_trying("delete a transcript"))?;
    }
    let attempts = tree.attempts;
    let tree = RemovedChain {
        id: root,
        task: tree.title,
        status: tree.age.root.status(),
        since: tree.age.latest,
        agents: tree.agents,
        frames,
        bytes: in_claude + here,
    };
    Ok(Preparation::Prepared(Prepared { tree, attempts, leases }))
}

/// Removes the rows of prepared chains, and moves their files away. The disk is synced once for all of them.
pub(crate) fn finish(
    store: &Store,
    trees: Vec<Prepared>,
    request: RemovalRequest,
) -> Result<(Vec<Removal>, Trash), RuntimeError> {
    let decided = trees.iter().map(|prepared| Decided { root: prepared.root(), attempts: prepared.attempts });
    let decided: Vec<Decided> = decided.collect();
    let RemovedTrees { roots, trash } = if request.pretend {
        RemovedTrees { roots: decided.iter().map(|tree| tree.root).collect(), trash: Trash::default() }
    } else {
        store.housekeeping().remove_trees(&decided, request.retention)?
    };
    let gone: HashSet<FrameId> = roots.into_iter().collect();
    let removal =
        |prepared: Prepared| if gone.contains(&prepared.root()) { Removal::Gone(prepared.tree) } else { Removal::Busy };
    Ok((trees.into_iter().map(removal).collect(), trash))
}

/// Removes the worktrees of a chain. Returns those that are kept because something was added to them since the decision.
fn remove_worktrees(
    store: &Store,
    root: FrameId,
    worktrees: &[Condemned],
    with_ignored: bool,
) -> Result<Vec<Held>, RuntimeError> {
    let mut held = Vec::new();
    for one in worktrees {
        let why = match in_use(store, &one.worktree, &|chain| chain == root)? {
            None => worktree_removal::remove(&one.worktree, with_ignored),
            why => why,
        };
        held.extend(why.map(|why| one.held(why)));
    }
    Ok(held)
}

/// The transcripts of sessions that agent-cli started for the chain of `root`. A transcript that was written to after its attempt had
/// ended is kept: a person has continued that session.
fn own_transcripts(store: &Store, root: FrameId, places: &mut SessionLocations) -> Result<Vec<PathBuf>, RuntimeError> {
    let mut found = Vec::new();
    for worked in store.housekeeping().sessions(root)? {
        let path = config_dir(&worked.launch).and_then(|config| places.find(&config, &worked.cwd, worked.session));
        found.extend(path.filter(|path| is_untouched(store, path, &worked)));
    }
    Ok(found)
}

/// File systems and clocks do not agree to the millisecond.
const SLACK: Duration = Duration::from_secs(2);

fn is_untouched(store: &Store, transcript: &PathBuf, worked: &WorkedSession) -> bool {
    let modified = |path: &PathBuf| path.metadata().and_then(|found| found.modified()).ok();
    // An attempt whose runner died ended when its output did.
    let ended = worked.ended.map(Into::into).or_else(|| modified(&store.dir().output(worked.frame)));
    modified(transcript).zip(ended).is_some_and(|(modified, ended)| modified <= ended + SLACK)
}

impl Condemned {
    pub(crate) fn held(&self, Obstacle { words: why, remedy }: Obstacle) -> Held {
        let Worktree { repository, path, branch, .. } = self.worktree.clone();
        Held { frame: self.frame, path, branch, why, repository, remedy }
    }
}

impl Decision {
    /// The worktrees to remove.
    pub(crate) fn condemned(&self) -> &[Condemned] {
        match self {
            Self::Busy => &[],
            Self::Remove(worktrees) => worktrees,
            Self::Keep { others, .. } => others,
        }
    }

    /// The frames whose worktrees were examined.
    pub(crate) fn worktrees(&self) -> Vec<FrameId> {
        let held = match self {
            Self::Keep { held, .. } => held.as_slice(),
            Self::Busy | Self::Remove(_) => &[],
        };
        self.condemned().iter().map(|one| one.frame).chain(held.iter().map(|one| one.frame)).collect()
    }
}

impl Judgement {
    pub(crate) fn sort_into(self, condemned: &mut Vec<Condemned>, held: &mut Vec<Held>) {
        match self {
            Self::Gone => {}
            Self::Removable(one) => condemned.push(one),
            Self::Held(one) => held.push(one),
        }
    }
}
