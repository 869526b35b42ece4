//! Worktrees that are pushed to a remote at the end of each attempt, so that any host can continue their agents.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;

use crate::core::agent::child_worktree::pushed_worktree::{self, Pushed, Snapshot};
use crate::core::agent::child_worktree::{Remote, Worktree};
use crate::core::chain::frame::Frame;
use crate::core::id::{AttemptId, FrameId};
use crate::failpoint::{self, Step};
use crate::runtime::requests::agent_lookup;
use crate::runtime::worktrees::worktree::WorktreeError;
use crate::runtime::worktrees::{remote, unpack, worktree};
use crate::runtime::{RuntimeError, while_trying};
use crate::store::files::durable::PRIVATE;
use crate::store::{StateDir, Store, StoreError};

/// The worktree in which an agent works, if it has a remote.
#[derive(Clone, Debug)]
pub(crate) struct PortableWorktree {
    /// The frame that it was created for.
    pub(crate) owner: FrameId,
    worktree: Worktree,
    remote: Remote,
    pushed: Option<Pushed>,
}

/// A state of a worktree that its remote has, as the file beside its frame notes it.
const PUSHED: &str = "pushed";
const FETCHED: &str = "fetched";
/// The number of a state that is about to be pushed.
const NUMBER: &str = "number";
/// It is being replaced by this state.
const INCOMPLETE: &str = "incomplete";

impl PortableWorktree {
    /// That of the agent of `frame`: its own, or that of an agent above it.
    pub(crate) fn of(store: &Store, frame: &Frame) -> Result<Option<Self>, StoreError> {
        // Most agents work elsewhere, and those above them need not be read.
        let Some(folder) = store.dir().worktrees().ok().filter(|folder| frame.cwd.starts_with(folder)) else {
            return Ok(None);
        };
        let mut next = Some(frame.clone());
        while let Some(agent) = next {
            let above = agent_lookup::asked_by(store, &agent)?;
            if let Some(worktree) = agent.launch.worktree.filter(|own| frame.cwd.starts_with(&own.path)) {
                let remote = worktree.remote.clone().filter(|_| pushed_worktree::is_own(&worktree, &folder));
                let pushed = agent.pushed.map(|pushed| pushed.checked(agent.id));
                return Ok(remote.map(|remote| Self { owner: agent.id, worktree, remote, pushed }));
            }
            next = above;
        }
        Ok(None)
    }

    /// Pushes it at the end of an attempt.
    pub(crate) fn push<F: Future<Output = ()> + Send>(
        &self,
        dir: &StateDir,
        attempt: AttemptId,
        interrupted: impl Fn() -> F,
    ) -> (FrameId, Pushed) {
        let (owner, before) = (self.owner, self.pushed.clone().unwrap_or_default());
        let number = match self.next_number(dir) {
            Ok(number) => number,
            Err(error) => return self.clone().unpushed(&error.to_string()),
        };
        let before = Pushed { number, ..before };
        let reference = pushed_worktree::reference(owner, attempt);
        let push = || remote::push(&self.worktree, &self.remote, before.clone(), reference, interrupted);
        let pushed = failpoint::around(Step::PushWorktree, push);
        // If this process dies before it has recorded the push, the files here are still newer than what is recorded.
        let noted = match &pushed.snapshot {
            Some(snapshot) if pushed.failure.is_none() => self.note(dir, PUSHED, snapshot),
            _ => Ok(()),
        };
        let pushed = match noted {
            Ok(()) => pushed,
            Err(error) => before.failed(&error.to_string()),
        };
        for why in pushed.failure.iter().chain(&pushed.branch_failure) {
            tracing::warn!(
                "{}: {} could not be pushed to {}: {why}",
                owner.short(),
                self.worktree.branch,
                self.remote.name
            );
        }
        (owner, pushed)
    }

    /// What is recorded if its files may have changed and nobody pushes them.
    pub(crate) fn unpushed(self, why: &str) -> (FrameId, Pushed) {
        let before = self.pushed.unwrap_or_default();
        (self.owner, Pushed { number: before.number + 1, ..before }.failed(why))
    }

    /// The number of the state that the files have now: higher than any before.
    fn next_number(&self, dir: &StateDir) -> io::Result<u64> {
        dir.frame_dir(self.owner)?;
        let mut file =
            OpenOptions::new().read(true).append(true).create(true).mode(PRIVATE).open(dir.pushed(self.owner))?;
        // Others of this host may be doing the same. It is released when the file is closed.
        file.lock()?;
        let mut noted = String::new();
        file.read_to_string(&mut noted)?;
        let last = noted.lines().filter_map(|line| line.strip_prefix(NUMBER)?.trim().parse().ok()).max().unwrap_or(0);
        let number = last.max(self.pushed.as_ref().map_or(0, |pushed| pushed.number)) + 1;
        writeln!(file, "{NUMBER} {number}")?;
        Ok(number)
    }

    /// Fetches its last state unless the repository has it. The worktree does not change. `interrupted` completes when a person does not
    /// want to wait any longer.
    pub(crate) fn fetch(
        &self,
        dir: &StateDir,
        interrupted: impl Future<Output = ()> + Send,
    ) -> Result<(), RuntimeError> {
        let Self { worktree, remote, pushed, .. } = self;
        let Some(Pushed { snapshot: Some(snapshot), .. }) = pushed else { return Ok(()) };
        // Without a clone, the agent is told how to get one. A new worktree may only need what a clone has.
        let is_first = snapshot.reference == pushed_worktree::first_reference(self.owner);
        if !worktree.repository.is_dir() || (is_first && worktree::has_base(worktree)) || self.is_here(dir, snapshot)? {
            return Ok(());
        }
        Ok(remote::fetch(worktree, remote, snapshot, interrupted).map_err(WorktreeError::from)?)
    }

    /// Whether the worktree is here in this state, or a later one.
    fn is_here(&self, dir: &StateDir, snapshot: &Snapshot) -> Result<bool, RuntimeError> {
        let noted = self.noted(dir).map_err(while_trying("read what is known about the worktree"))?;
        Ok(worktree::is_made(&self.worktree) && has(&noted, snapshot))
    }

    /// Fetches it unless it is here, and returns what its agent must know about it.
    pub(crate) fn prepare(&self, store: &Store, frame: &Frame) -> Result<Vec<String>, RuntimeError> {
        let Self { worktree, remote, pushed, .. } = self;
        let Some(pushed @ Pushed { snapshot: Some(snapshot), .. }) = pushed else {
            let notices = pushed.as_ref().map(|pushed| pushed.notices(worktree, false));
            return Ok(notices.unwrap_or_default());
        };
        let noted = self.noted(store.dir()).map_err(while_trying("read what is known about the worktree"))?;
        // A new agent has never seen the worktree.
        let is_new = self.owner == frame.id && store.attempts(frame.id)?.is_empty();
        if is_new && worktree::has_base(worktree) {
            worktree::ensure(worktree, &frame.cwd)?;
            self.note(store.dir(), PUSHED, snapshot).map_err(while_trying("note that the worktree was made"))?;
            return Ok(Vec::new());
        }
        let is_here = worktree::is_made(worktree) && has(&noted, snapshot);
        if !is_here {
            if !worktree.repository.is_dir() {
                return Err(WorktreeError::NotCloned {
                    repository: worktree.repository.clone(),
                    url: remote.url.clone(),
                }
                .into());
            }
            let fetch = || {
                remote::fetch(worktree, remote, snapshot, std::future::pending())?;
                let begins = || self.note(store.dir(), INCOMPLETE, snapshot);
                let is_incomplete = last_state(&noted).is_some_and(|line| line.starts_with(INCOMPLETE));
                unpack::unpack(worktree, &frame.cwd, &snapshot.commit, is_incomplete, begins)
            };
            failpoint::around(Step::FetchWorktree, fetch)?;
            self.note(store.dir(), FETCHED, snapshot).map_err(while_trying("note that the worktree was fetched"))?;
            tracing::info!("{}: its worktree was fetched from {}", self.owner.short(), remote.name);
        }
        let is_fetched = !is_here || last_state(&noted).is_some_and(|line| line.starts_with(FETCHED));
        Ok(pushed.notices(worktree, is_fetched && !is_new))
    }

    /// The states that this worktree has had here.
    fn noted(&self, dir: &StateDir) -> io::Result<String> {
        match fs::read_to_string(dir.pushed(self.owner)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            noted => noted,
        }
    }

    fn note(&self, dir: &StateDir, what: &str, snapshot: &Snapshot) -> io::Result<()> {
        dir.frame_dir(self.owner)?;
        let mut file = OpenOptions::new().append(true).create(true).mode(PRIVATE).open(dir.pushed(self.owner))?;
        writeln!(file, "{what} {}", snapshot.commit)?;
        file.sync_all()
    }
}

/// The lines about states of a worktree, the oldest first.
fn states(noted: &str) -> impl DoubleEndedIterator<Item = &str> {
    noted.lines().filter(|line| !line.starts_with(NUMBER))
}

fn last_state(noted: &str) -> Option<&str> {
    states(noted).next_back()
}

/// Whether the worktree has had this state, and is complete.
fn has(noted: &str, snapshot: &Snapshot) -> bool {
    let is_complete = last_state(noted).is_none_or(|line| !line.starts_with(INCOMPLETE));
    is_complete && states(noted).any(|line| !line.starts_with(INCOMPLETE) && line.ends_with(&snapshot.commit))
}
