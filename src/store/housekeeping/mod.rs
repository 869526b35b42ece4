//! Maintenance of all chains: `gc`, `fsck`, `doctor`, `export` and `import`. No chain depends on it to run.

use std::io::Write;

use crate::core::agent::child_worktree::Worktree;
use crate::core::housekeeping::retention::Retention;
use crate::core::id::FrameId;
use crate::store::error::Result;
use crate::store::housekeeping::archive::adapt::Adapted;
use crate::store::housekeeping::database_facts::{Condition, DatabaseFacts, FactsOf, FactsPage, Observed};
use crate::store::housekeeping::orphans::Orphan;
use crate::store::housekeeping::removable::{Decided, Removable, RemovableOf, RemovedTrees, WorkedSession, Worker};

pub(crate) mod archive;
pub(crate) mod database_facts;
pub(crate) mod orphans;
pub(crate) mod removable;

/// Maintains the database and the state directory as a whole.
pub trait Housekeeping {
    /// The trees that may be removed, the oldest first, or one tree, whatever its state.
    fn removable(&self, of: RemovableOf) -> Result<Vec<Removable>>;

    /// The sessions of a tree, each once.
    fn sessions(&self, root: FrameId) -> Result<Vec<WorkedSession>>;

    /// Removes trees and their logs from the database, and then moves their files in the state directory away, unless the
    /// trees may no longer be removed. The number of disk syncs does not depend on the number of trees.
    fn remove_trees(&self, trees: &[Decided], retention: Retention) -> Result<RemovedTrees>;

    /// Frees the disk space of removed rows. Returns by how many bytes the database has shrunk. If other processes have the
    /// database open, it shrinks when they close it.
    ///
    /// Each step is short, so other processes can write in between. A database that was not created for such steps is
    /// copied as a whole, which makes writers wait. If it is so large that they would give up, it is left as it is.
    fn shrink(&self) -> Result<u64>;

    /// The agents that work in a worktree or would continue in it: all that are not done.
    fn workers(&self, worktree: &Worktree) -> Result<Vec<Worker>>;

    /// Facts about everything in the database except its frames.
    fn facts(&self, of: FactsOf<'_>) -> Result<DatabaseFacts>;

    /// The next frames after `after`, with the facts about their files in the state directory. The caller checks the
    /// transcripts in Claude Code's folders.
    fn frame_facts(&self, of: FactsOf<'_>, after: u64) -> Result<FactsPage>;

    /// Parts of the schema that are missing or differ from what this program creates.
    fn other_schema(&self) -> Result<Vec<String>>;

    /// Creates a missing index. Returns whether it was missing.
    fn make_index(&self, missing: &str) -> Result<bool>;

    /// The programs of chains that are not done, and how the last requests paused their agents: at most `most`.
    fn observed(&self, most: u32) -> Result<Observed>;

    /// The condition of the database, without a full check of a large one.
    fn condition(&self) -> Result<Condition>;

    /// Writes the tree of `root` to `to`: its rows, the kept copies of the sessions that its frames continue from, and the
    /// results of tools that belong to these.
    ///
    /// # Errors
    ///
    /// `StoreError::Archive` if an agent of the tree is running, a copy is missing, or `to` cannot be written;
    /// `StoreError::UnknownFrame`, or an error reading the database or the state directory.
    fn export(&self, root: FrameId, to: &mut dyn Write) -> Result<()>;

    /// Imports the tree of an archive. Returns its root.
    ///
    /// # Errors
    ///
    /// `StoreError::Archive` if the archive is refused, or an error writing the database or the state directory. Nothing is
    /// imported then.
    fn import(&self, archive: &Adapted) -> Result<FrameId>;

    /// The unused files. Files of a running frame are in use.
    fn orphan_files(&self) -> Result<Vec<Orphan>>;

    /// Removes a file or directory if it is still unused. Returns whether it did.
    fn remove_orphan_file(&self, orphan: &Orphan) -> Result<bool>;
}
