//! The store as callers use it: a database and the files next to it.

use std::any::Any;
use std::collections::HashMap;
use std::fmt::Debug;
use std::ops::Deref;
use std::path::Path;

use crate::core::chain::tree::Tree;
use crate::core::id::FrameId;
use crate::store::changes::Changes;
use crate::store::error::Result;
use crate::store::files::ownership::trusted;
use crate::store::files::state_dir::StateDir;
use crate::store::housekeeping::Housekeeping;
use crate::store::outbox::Outbox;
use crate::store::records::abandoned::abandoned;
use crate::store::records::{
    AskedFor, Attempt, Attempts, ChainChange, ChainOf, EventRecord, Extent, NewChain, Question, Questions, Records,
    Target, TreeOf,
};
use crate::store::sqlite::database::connection::Sqlite;

/// The traits that a database implements.
pub(crate) trait Backend: Records + Outbox + Housekeeping + Changes + Any + Debug + Send {}

impl<T: Records + Outbox + Housekeeping + Changes + Any + Debug + Send> Backend for T {}

/// The records of chains, and the directory that contains everything.
#[derive(Debug)]
pub struct Store {
    pub(crate) backend: Box<dyn Backend>,
    dir: StateDir,
}

impl Store {
    /// Opens the store in `dir`. Creates the directory and the database if they do not exist.
    ///
    /// # Errors
    ///
    /// `dir` is not a directory, cannot be written, or is on a full disk; or its database file is not a database of
    /// agent-cli, or one of a newer version.
    pub fn open(dir: &Path) -> Result<Self> {
        let dir = trusted(dir)?;
        Ok(Self { backend: Box::new(Sqlite::open(dir.clone())?), dir })
    }

    /// Runs `look` on a snapshot of the database in `dir` and returns its result. `None` if the database must be opened for
    /// writing: it does not exist, it is being written to, `look` wants to write, or any error occurred.
    pub fn read_snapshot<T>(dir: &Path, look: impl FnOnce(&Self) -> Result<T>) -> Option<T> {
        let dir = trusted(dir).ok()?;
        let store = Self { backend: Box::new(Sqlite::look(dir.clone())?), dir };
        let seen = look(&store).ok()?;
        store.changes().is_unchanged().then_some(seen)
    }

    /// Whether `dir` contains a database.
    pub(crate) fn exists(dir: &StateDir) -> bool {
        dir.database().exists()
    }

    /// The state directory.
    #[must_use]
    pub fn dir(&self) -> &StateDir {
        &self.dir
    }

    /// The notifications.
    #[must_use]
    pub fn outbox(&self) -> &dyn Outbox {
        &*self.backend
    }

    /// Operations on all chains.
    #[must_use]
    pub fn housekeeping(&self) -> &dyn Housekeeping {
        &*self.backend
    }

    /// Detects writes by others.
    #[must_use]
    pub fn changes(&self) -> &dyn Changes {
        &*self.backend
    }

    /// The frames whose runner has died, each with the root of its tree. The next `resume` continues them.
    pub(crate) fn abandoned(&self) -> Result<HashMap<FrameId, FrameId>> {
        abandoned(&**self, &self.dir)
    }
}

impl Deref for Store {
    type Target = dyn Records;

    fn deref(&self) -> &Self::Target {
        &*self.backend
    }
}

// These methods accept an id where the operation needs nothing else.
impl Store {
    /// [`Records::create`]
    pub fn create<'a>(&self, new: impl Into<NewChain<'a>>, asked: Option<AskedFor<'_>>) -> Result<FrameId> {
        self.backend.create(new.into(), asked)
    }

    /// [`Records::tree`]
    pub fn tree(&self, of: impl Into<TreeOf>) -> Result<Tree> {
        self.backend.tree(of.into())
    }

    /// [`Records::chain_of`]
    pub fn chain_of(&self, target: impl Into<Target>) -> Result<ChainOf> {
        self.backend.chain_of(target.into())
    }

    /// [`Records::change_chain`]
    pub fn change_chain(&self, frame: FrameId, change: impl Into<ChainChange>) -> Result<usize> {
        self.backend.change_chain(frame, change.into())
    }

    /// [`Records::attempts`]
    pub fn attempts(&self, which: impl Into<Attempts>) -> Result<Vec<Attempt>> {
        self.backend.attempts(which.into())
    }

    /// [`Records::questions`]
    pub fn questions(&self, which: impl Into<Questions>, only_open: bool) -> Result<Vec<Question>> {
        self.backend.questions(which.into(), only_open)
    }

    /// [`Records::events`]
    pub fn events(&self, of: impl Into<Extent>, after: u64) -> Result<Vec<EventRecord>> {
        self.backend.events(of.into(), after)
    }
}
