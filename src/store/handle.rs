//! The store as callers use it: a database and the files next to it.

use std::any::Any;
use std::collections::HashMap;
use std::fmt::Debug;
use std::ops::Deref;
use std::path::Path;

use crate::core::agent::usage::Spent;
use crate::core::chain::frame::Frame;
use crate::core::chain::frame_state::FrameState;
use crate::core::chain::tree::Tree;
use crate::core::housekeeping::hosting::Elsewhere;
use crate::core::id::FrameId;
use crate::store::changes::Changes;
use crate::store::error::{Result, StoreError};
use crate::store::files::ownership::trusted;
use crate::store::files::state_dir::StateDir;
use crate::store::hosts::Hosts;
use crate::store::housekeeping::Housekeeping;
use crate::store::outbox::Outbox;
use crate::store::records::abandoned::abandoned;
use crate::store::records::{
    AskedFor, Attempt, Attempts, ChainChange, ChainOf, EventRecord, Extent, NewChain, Question, Questions, Records,
    Target, TreeOf,
};
use crate::store::sql::database::connection::Database;
use crate::store::sql::database::server;
use crate::store::sql::housekeeping::moving;
pub(crate) use crate::store::sql::housekeeping::moving::Moved;

/// The traits that a database implements.
pub(crate) trait Backend: Records + Outbox + Housekeeping + Changes + Hosts + Any + Debug + Send {}

impl<T: Records + Outbox + Housekeeping + Changes + Hosts + Any + Debug + Send> Backend for T {}

/// The records of chains, and the directory that contains everything.
#[derive(Debug)]
pub struct Store {
    pub(crate) backend: Box<dyn Backend>,
    dir: StateDir,
    /// Whether other hosts use the database, too.
    is_shared: bool,
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
        let is_shared = dir.server()?.is_some();
        Ok(Self { backend: Box::new(Database::open(dir.clone())?), dir, is_shared })
    }

    /// Runs `look` on a snapshot of the database in `dir` and returns its result. `None` if the database must be opened for
    /// writing: it does not exist, it is being written to, `look` wants to write, or any error occurred.
    pub fn read_snapshot<T>(dir: &Path, look: impl FnOnce(&Self) -> Result<T>) -> Option<T> {
        let dir = trusted(dir).ok()?;
        let store = Self { backend: Box::new(Database::look(dir.clone())?), dir, is_shared: false };
        let seen = look(&store).ok()?;
        store.changes().is_unchanged().then_some(seen)
    }

    /// Whether the state directory in `dir` uses a database on a server.
    pub(crate) fn is_shared(dir: &Path) -> bool {
        StateDir::new(dir).is_ok_and(|dir| dir.server().is_ok_and(|server| server.is_some()))
    }

    /// Makes the state directory in `dir` use the database on a server from now on.
    ///
    /// # Errors
    ///
    /// The address is not valid, or the directory uses another database.
    pub fn use_server(dir: &Path, url: &str) -> Result<()> {
        server::choose(&trusted(dir)?, url)
    }

    /// The address of a server, without its password.
    ///
    /// # Errors
    ///
    /// The address is not valid.
    pub(crate) fn place_of(url: &str) -> Result<String> {
        server::place_of(url)
    }

    /// Moves all records of the state directory in `dir` to a server. If they are already there, nothing changes.
    ///
    /// # Errors
    ///
    /// An agent is running, the directory uses another server, or a database cannot be used. After an error, nothing has moved.
    pub(crate) fn move_to_server(dir: &Path, url: &str) -> Result<Moved> {
        moving::move_to(&trusted(dir)?, url)
    }

    /// Whether `dir` has a database, in a file or on a server.
    pub(crate) fn exists(dir: &StateDir) -> bool {
        dir.database().exists() || dir.server().is_ok_and(|server| server.is_some())
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

    /// The hosts that share the database; `None` if it is a file.
    pub(crate) fn hosts(&self) -> Option<&dyn Hosts> {
        self.is_shared.then_some(&*self.backend as &dyn Hosts)
    }

    /// Detects writes by others.
    #[must_use]
    pub fn changes(&self) -> &dyn Changes {
        &*self.backend
    }

    /// The frames whose runner has died, each with the root of its tree. The next `resume` continues them.
    pub(crate) fn abandoned(&self) -> Result<HashMap<FrameId, FrameId>> {
        abandoned(&**self, &self.dir, || self.attempts(Attempts::Running))
    }

    /// The abandoned frames of a tree. Faster than [`Self::abandoned`] if many others run.
    pub(crate) fn abandoned_in(&self, tree: &Tree) -> Result<HashMap<FrameId, FrameId>> {
        let running = tree.all().filter(|node| matches!(node.state, FrameState::Running { .. }));
        let running: Vec<FrameId> = running.map(|node| node.id).collect();
        // Another host has their leases.
        if running.is_empty() || self.elsewhere(tree.top())?.is_some() {
            return Ok(HashMap::new());
        }
        abandoned(&**self, &self.dir, || {
            let attempts = running.iter().map(|frame| self.attempts(Attempts::RunningOf(*frame)));
            Ok(attempts.collect::<Result<Vec<_>>>()?.concat())
        })
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
    /// Where an agent runs, if that is not this host.
    pub(crate) fn elsewhere(&self, frame: FrameId) -> Result<Option<Elsewhere>> {
        if self.is_shared { Ok(self.chain_of(frame)?.elsewhere) } else { Ok(None) }
    }

    /// Returns a frame if its agent runs on this host.
    ///
    /// # Errors
    ///
    /// `StoreError::OtherHost`, `StoreError::UnknownFrame`, or an error reading the database.
    pub(crate) fn frame_here(&self, frame: FrameId) -> Result<Frame> {
        if let Some(elsewhere) = self.elsewhere(frame)? {
            return Err(StoreError::OtherHost { root: self.chain_of(frame)?.root, elsewhere });
        }
        self.backend.frame(frame)?.ok_or(StoreError::UnknownFrame(frame))
    }

    /// [`Records::create`]
    pub fn create<'a>(&self, new: impl Into<NewChain<'a>>, asked: Option<AskedFor<'_>>) -> Result<FrameId> {
        self.backend.create(new.into(), asked)
    }

    /// One of the [`Records::trees`]
    pub fn tree(&self, of: impl Into<TreeOf>) -> Result<Tree> {
        let of = of.into();
        Ok(self.backend.trees(&[of])?.pop().unwrap_or_else(|| Tree::new(of.top(), Vec::new())))
    }

    /// The spending of one of the frames of [`Records::spent_below`]
    pub fn spent(&self, top: FrameId) -> Result<Spent> {
        Ok(self.backend.spent_below(&[top])?.pop().unwrap_or_default())
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
