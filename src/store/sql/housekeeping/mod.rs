//! Removing, checking, exporting and importing chains.

mod chunks;
pub(crate) mod copies;
mod export;
pub(crate) mod fsck;
mod import;
pub(crate) mod moving;
pub(crate) mod objects;
pub(crate) mod observed;
pub(crate) mod orphan_files;
pub(crate) mod tree_removal;

use std::io::Write;

use crate::core::agent::child_worktree::Worktree;
use crate::core::housekeeping::retention::Retention;
use crate::core::id::FrameId;
use crate::failpoint::Step;
use crate::store::error::Result;
use crate::store::housekeeping::Housekeeping;
use crate::store::housekeeping::archive::adapt::Adapted;
use crate::store::housekeeping::database_facts::{Condition, DatabaseFacts, FactsOf, FactsPage, Observed};
use crate::store::housekeeping::orphans::Orphan;
use crate::store::housekeeping::removable::{Decided, Removable, RemovableOf, RemovedTrees, WorkedSession, Worker};
use crate::store::sql::database::connection::Database;

impl Housekeeping for Database {
    fn removable(&self, of: RemovableOf) -> Result<Vec<Removable>> {
        self.read(|connection| tree_removal::removable(connection, of))
    }

    fn sessions(&self, root: FrameId) -> Result<Vec<WorkedSession>> {
        self.query(|connection| tree_removal::sessions(connection, root))
    }

    fn remove_trees(&self, trees: &[Decided], retention: Retention) -> Result<RemovedTrees> {
        tree_removal::remove_trees(self, trees, retention)
    }

    fn shrink(&self) -> Result<u64> {
        tree_removal::shrink(self)
    }

    fn workers(&self, worktree: &Worktree) -> Result<Vec<Worker>> {
        self.query(|connection| crate::store::sql::chains::worktrees::workers(connection, worktree))
    }

    fn facts(&self, of: FactsOf<'_>) -> Result<DatabaseFacts> {
        self.read(|connection| fsck::facts(connection, of))
    }

    fn frame_facts(&self, of: FactsOf<'_>, after: u64) -> Result<FactsPage> {
        fsck::frame_facts(self, of, after)
    }

    fn other_schema(&self) -> Result<Vec<String>> {
        fsck::other_schema(self)
    }

    fn make_index(&self, missing: &str) -> Result<bool> {
        self.write(Step::Migrate, |connection| fsck::make_index(connection, missing))
    }

    fn observed(&self, most: u32) -> Result<Observed> {
        self.read(|connection| observed::observed(connection, most))
    }

    fn condition(&self) -> Result<Condition> {
        observed::condition(self)
    }

    fn export(&self, root: FrameId, to: &mut dyn Write) -> Result<()> {
        export::export(self, root, to)
    }

    fn import(&self, archive: &Adapted) -> Result<FrameId> {
        import::import(self, archive)
    }

    fn orphan_files(&self) -> Result<Vec<Orphan>> {
        orphan_files::orphan_files(self)
    }

    fn remove_orphan_file(&self, orphan: &Orphan) -> Result<bool> {
        orphan_files::remove_orphan_file(self, orphan)
    }
}
