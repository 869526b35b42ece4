//! Removes chains that finished long ago, with everything that was kept for them.
//!
//! Everything is decided first, in the same order for a dry run and a real one, so that both report the same. The order of the
//! steps makes a kill at any moment harmless: first the worktrees in which nothing would be lost; then the transcripts in
//! Claude Code's folders, while the database still says which of them belong to agent-cli; then the rows, in one transaction;
//! then the files of the state directory, which are no longer referenced. If the program is killed before that, the next run
//! removes these orphans.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use serde::Serialize;

use crate::claude::transcript::locate::SessionLocations;
use crate::core::agent::child_worktree::Held;
use crate::core::id::FrameId;
use crate::runtime::RuntimeError;
use crate::runtime::housekeeping::removal::{
    self, Condemned, Decision, Preparation, Prepared, Removal, RemovalRequest, RemovedChain,
};
use crate::runtime::worktrees::worktree_removal;
use crate::store::{Orphan, Store, StoreError, Trash, WorktreesOf};

/// Events during the removal of chains.
#[derive(Debug)]
pub(crate) enum Happening<'a> {
    /// How many items of the total are done.
    Progress(&'static str, usize, usize),
    /// A worktree will be removed, together with these ignored files.
    Takes(&'a Condemned),
}

/// What was removed, or would be.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Collected {
    /// The chains, the oldest first.
    pub trees: Vec<RemovedChain>,
    /// Chains that are kept because a process of one of their frames is still alive.
    pub busy: Vec<FrameId>,
    /// Worktrees of agents that were removed.
    pub worktrees: Vec<PathBuf>,
    /// Ignored files and folders that were removed with them.
    pub ignored: Vec<PathBuf>,
    /// Worktrees that are kept, and their chains with them.
    pub held: Vec<Held>,
    /// Unused files and directories.
    pub orphans: Vec<PathBuf>,
    /// How many files interrupted attempts left behind, of the kinds that every attempt writes and removes.
    pub routine: usize,
    /// The size of the files of chains and orphans.
    pub bytes: u64,
    /// By how many bytes the database has shrunk.
    pub database_bytes: u64,
}

/// Removes chains that need not be kept, and unused files.
///
/// # Errors
///
/// [`RuntimeError`] if the state directory or Claude Code's cannot be read or written. Earlier removals are not undone.
pub(crate) fn collect(
    store: &Store,
    request: RemovalRequest,
    tell: &mut dyn FnMut(Happening<'_>),
) -> Result<Collected, RuntimeError> {
    let RemovalRequest { retention, with_ignored, pretend } = request;
    let (mut plan, mut gone) = (Vec::new(), HashSet::new());
    let trees = store.housekeeping().removable(retention.into())?;
    let count = trees.len();
    for (at, tree) in trees.into_iter().enumerate() {
        tell(Happening::Progress("chains looked at", at, count));
        let decision = removal::decide(store, &tree, with_ignored, &gone)?;
        if matches!(decision, Decision::Remove(_)) {
            gone.insert(tree.root);
        }
        plan.push((tree, decision));
    }
    let mut collected = Collected::default();
    let mut handed_over = Vec::new();
    let met: HashSet<FrameId> = plan.iter().flat_map(|(_, decision)| decision.worktrees()).collect();
    for (frame, worktree) in store.worktrees(WorktreesOf::HandedOver { before: retention.before })? {
        if !met.contains(&frame) {
            removal::judge(store, frame, worktree, with_ignored, &|chain| gone.contains(&chain))?
                .sort_into(&mut handed_over, &mut collected.held);
        }
    }
    let planned = plan.iter().flat_map(|(_, decision)| decision.condemned()).chain(&handed_over);
    planned.filter(|condemned| !condemned.ignored.is_empty()).for_each(|condemned| tell(Happening::Takes(condemned)));

    let (mut places, mut prepared, mut removing) = (SessionLocations::default(), Vec::new(), Removing::default());
    for (at, (tree, decision)) in plan.into_iter().enumerate() {
        tell(Happening::Progress(if pretend { "chains measured" } else { "chains removed" }, at, count));
        let root = tree.root;
        match decision {
            Decision::Busy => collected.busy.push(root),
            Decision::Keep { held, others } => {
                collected.held.extend(held);
                collected.take(store, others, with_ignored, pretend)?;
            }
            Decision::Remove(worktrees) => match removal::prepare(store, tree, &worktrees, request, &mut places)? {
                Preparation::Prepared(tree) => prepared.push((tree, worktrees)),
                Preparation::Stays(Removal::Held(held)) => collected.held.extend(held),
                Preparation::Stays(_) => collected.busy.push(root),
            },
        }
        if prepared.len() == AT_ONCE || Prepared::are_many(prepared.iter().map(|(tree, _)| tree)) {
            collected.count(removing.begin(store, std::mem::take(&mut prepared), request)?);
        }
    }
    collected.count(removing.begin(store, prepared, request)?);
    collected.count(removing.wait()?);
    collected.take(store, handed_over, with_ignored, pretend)?;
    // A server has more to delete than what was removed here.
    let is_smaller = (!collected.trees.is_empty() || store.hosts().is_some()) && !pretend;
    let dir = store.dir().path().to_owned();
    let shrinking = is_smaller.then(|| thread::spawn(move || shrink(&dir)));
    collected.sweep(store, pretend, tell)?;
    if let Some(shrinking) = shrinking {
        // The file becomes smaller when nothing reads the database.
        collected.database_bytes = joined(shrinking) + shrink(store.dir().path());
    }
    Ok(collected)
}

/// Returns by how many bytes the database has shrunk. Rows are deleted in any case, and their space is reused.
fn shrink(dir: &Path) -> u64 {
    Store::open(dir).and_then(|store| store.housekeeping().shrink()).unwrap_or_else(|error| {
        tracing::warn!("the database was not made smaller: {error}");
        0
    })
}

/// How many chains are removed in one transaction, for which other processes wait.
const AT_ONCE: usize = 100;

/// Removes prepared chains, and deletes the files of the previous batch while the next chains are prepared: both take about
/// as long.
#[derive(Default)]
struct Removing {
    rows: Option<JoinHandle<Batch>>,
    files: Option<JoinHandle<Result<usize, StoreError>>>,
}

/// The outcomes of a batch, and the files that it leaves to delete.
type Batch = Result<(Vec<Finished>, Trash), RuntimeError>;

/// The outcome for a prepared chain, and the worktrees that were removed for it.
struct Finished {
    root: FrameId,
    removal: Removal,
    worktrees: Vec<Condemned>,
}

impl Removing {
    /// Begins to remove chains, with the worktrees that were removed for them. Returns the outcomes of the previous batch.
    fn begin(
        &mut self,
        store: &Store,
        prepared: Vec<(Prepared, Vec<Condemned>)>,
        request: RemovalRequest,
    ) -> Result<Vec<Finished>, RuntimeError> {
        let before = self.wait_for_rows()?;
        if prepared.is_empty() {
            return Ok(before);
        }
        let dir = store.dir().path().to_owned();
        self.rows = Some(thread::spawn(move || {
            let (trees, worktrees): (Vec<_>, Vec<_>) = prepared.into_iter().unzip();
            let roots: Vec<FrameId> = trees.iter().map(Prepared::root).collect();
            let (removals, trash) = removal::finish(&Store::open(&dir)?, trees, request)?;
            let finished = roots.into_iter().zip(removals).zip(worktrees);
            let finished = finished.map(|((root, removal), worktrees)| Finished { root, removal, worktrees });
            Ok((finished.collect(), trash))
        }));
        Ok(before)
    }

    /// Returns the outcomes of the last batch.
    fn wait(mut self) -> Result<Vec<Finished>, RuntimeError> {
        let last = self.wait_for_rows()?;
        self.wait_for_files()?;
        Ok(last)
    }

    fn wait_for_rows(&mut self) -> Result<Vec<Finished>, RuntimeError> {
        let Some(running) = self.rows.take() else { return Ok(Vec::new()) };
        let (finished, trash) = joined(running)?;
        self.wait_for_files()?;
        self.files = Some(thread::spawn(|| trash.delete()));
        Ok(finished)
    }

    fn wait_for_files(&mut self) -> Result<(), RuntimeError> {
        self.files.take().map_or(Ok(0), joined)?;
        Ok(())
    }
}

fn joined<T>(running: JoinHandle<T>) -> T {
    running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl Collected {
    fn count(&mut self, finished: Vec<Finished>) {
        for Finished { root, removal, worktrees } in finished {
            worktrees.into_iter().for_each(|one| self.took(one));
            match removal {
                Removal::Gone(tree) => {
                    self.bytes += tree.bytes;
                    self.trees.push(tree);
                }
                Removal::Busy | Removal::Needed | Removal::Held(_) => self.busy.push(root),
            }
        }
    }

    /// Removes worktrees of chains that are kept.
    fn take(
        &mut self,
        store: &Store,
        worktrees: Vec<Condemned>,
        with_ignored: bool,
        pretend: bool,
    ) -> Result<(), RuntimeError> {
        for condemned in worktrees {
            let why = if pretend {
                None
            } else {
                match removal::in_use(store, &condemned.worktree, &|_| false)? {
                    None => worktree_removal::remove(&condemned.worktree, with_ignored),
                    why => why,
                }
            };
            match why {
                None => self.took(condemned),
                Some(why) => self.held.push(condemned.held(why)),
            }
        }
        Ok(())
    }

    fn took(&mut self, condemned: Condemned) {
        let Condemned { worktree, ignored, .. } = condemned;
        self.ignored.extend(ignored.iter().map(|file| worktree.path.join(file)));
        self.worktrees.push(worktree.path);
    }

    /// Removes unused files.
    fn sweep(&mut self, store: &Store, pretend: bool, tell: &mut dyn FnMut(Happening<'_>)) -> Result<(), RuntimeError> {
        // The contents of a removed chain's directory were counted with the chain.
        let counted: HashSet<FrameId> = self.trees.iter().flat_map(|tree| tree.frames.iter().copied()).collect();
        let orphans = store.housekeeping().orphan_files()?;
        let count = orphans.len();
        for (at, orphan) in orphans.into_iter().enumerate() {
            tell(Happening::Progress("orphaned files removed", at, count));
            if orphan.frame.is_some_and(|frame| counted.contains(&frame)) {
                continue;
            }
            if pretend || store.housekeeping().remove_orphan_file(&orphan)? {
                let is_routine = orphan.is_routine();
                let Orphan { path, bytes, .. } = orphan;
                self.bytes += bytes;
                if is_routine {
                    self.routine += 1;
                } else {
                    self.orphans.push(path);
                }
            }
        }
        Ok(())
    }
}
