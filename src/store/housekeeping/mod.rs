//! What looks after all chains: `gc`, `fsck`, `doctor`, `export` and `import`. No chain needs any of it to run.

use std::io::Write;

use crate::core::agent::child_worktree::Worktree;
use crate::core::housekeeping::retention::Retention;
use crate::core::id::FrameId;
use crate::store::error::Result;
use crate::store::housekeeping::archive::adapt::Adapted;
use crate::store::housekeeping::database_facts::{Condition, DatabaseFacts, FactsOf, FactsPage, Observed};
use crate::store::housekeeping::orphans::Orphan;
use crate::store::housekeeping::removable::{Decided, Removable, RemovableOf, Worker};

pub(crate) mod archive;
pub(crate) mod database_facts;
pub(crate) mod orphans;
pub(crate) mod removable;

/// What looks after the database and the state directory as a whole.
pub trait Housekeeping {
    /// The trees that may be removed, the oldest first, or one tree, whatever its state.
    fn removable(&self, of: RemovableOf) -> Result<Vec<Removable>>;

    /// Removes trees from the database, with their logs, and then their files in the state directory: those of them that may still
    /// be removed. Returns which those were. However many they are, the disk is waited for twice.
    fn remove_trees(&self, trees: &[Decided], retention: Retention) -> Result<Vec<FrameId>>;

    /// Gives the space of removed rows back to the file system. Returns by how many bytes the database has shrunk. When
    /// other processes have the database open, it shrinks when they close it.
    ///
    /// Others can write in between, because each step is short. A database that was not created for such steps is copied as a whole,
    /// which makes writers wait, unless it is so large that they would give up.
    fn shrink(&self) -> Result<u64>;

    /// The agents that work in a worktree or would continue in it: all that are not done.
    fn workers(&self, worktree: &Worktree) -> Result<Vec<Worker>>;

    /// What the database says about everything but its frames.
    fn facts(&self, of: FactsOf<'_>) -> Result<DatabaseFacts>;

    /// The next frames after `after`, with what is there of their files. Transcripts in Claude Code's folders are for the caller to
    /// look at.
    fn frame_facts(&self, of: FactsOf<'_>, after: u64) -> Result<FactsPage>;

    /// What in the database is missing, or is not what this program makes.
    fn other_schema(&self) -> Result<Vec<String>>;

    /// Makes an index that is missing. Returns whether it was.
    fn make_index(&self, missing: &str) -> Result<bool>;

    /// The programs of chains that are not done, and how the last requests paused their agents: at most `most`.
    fn observed(&self, most: u32) -> Result<Observed>;

    /// How the database looks, without a look at all of a large one.
    fn condition(&self) -> Result<Condition>;

    /// Writes the tree of `root` to `to`: its rows, the kept copies of the sessions that its frames continue from, and the
    /// results of tools that lie beside those.
    ///
    /// # Errors
    ///
    /// `StoreError::Archive` when an agent of the tree runs, a copy is missing, or `to` cannot be written;
    /// `StoreError::UnknownFrame`, or a database or a state directory that cannot be read.
    fn export(&self, root: FrameId, to: &mut dyn Write) -> Result<()>;

    /// Takes up the tree of an archive. Returns its root.
    ///
    /// # Errors
    ///
    /// `StoreError::Archive` when the archive is refused, or a database or a state directory that cannot be written.
    /// Nothing of it is there then.
    fn import(&self, archive: &Adapted) -> Result<FrameId>;

    /// The files that nothing uses any more. Those of a running frame are in use.
    fn orphan_files(&self) -> Result<Vec<Orphan>>;

    /// Removes a file or directory if it is still unused. Returns whether it did.
    fn remove_orphan_file(&self, orphan: &Orphan) -> Result<bool>;
}
