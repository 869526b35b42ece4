//! Runs the commands that a chain waits for, next to its agents.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use tokio::task::{AbortHandle, JoinSet};

use crate::claude::processes::orphan_processes;
use crate::core::chain::tree::Tree;
use crate::core::id::{FrameId, RequestId};
use crate::core::waits::conditions::{External, Try};
use crate::core::waits::outlook;
use crate::core::waits::wait_progress::{CheckResult, WaitProgress};
use crate::runtime::RuntimeError;
use crate::runtime::run::external_waits::{command, open_requests};
use crate::store::{Seen, Store, Trying};

/// How many commands run at once, whatever agents wait for.
const MOST: usize = 16;

/// Identifies a command of a wait by its index among the conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    frame: FrameId,
    request: RequestId,
    at: usize,
}

/// The running commands of a chain.
#[derive(Debug, Default)]
pub(crate) struct Tries {
    running: HashMap<Key, AbortHandle>,
    /// When each command was started last.
    started: HashMap<Key, Timestamp>,
    /// The right to run the commands of these frames.
    taken: HashMap<FrameId, Trying>,
    ends: JoinSet<(Key, CheckResult)>,
}

/// The outcome of a command.
#[derive(Debug)]
pub(crate) struct Tried {
    key: Key,
    look: CheckResult,
}

impl Tries {
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Starts the commands that are due, and ends those that are no longer waited for. `since`: commands without an interval
    /// are due if they were not tried since. `once`: no command is started twice since then, whatever its interval.
    pub(crate) fn start(
        &mut self,
        store: &Store,
        tree: &Tree,
        since: Timestamp,
        once: bool,
    ) -> Result<(), RuntimeError> {
        let waited_for: HashSet<RequestId> = open_requests::waits(tree).map(|(request, ..)| request).collect();
        self.running.retain(|Key { request, .. }, task| {
            let is_open = waited_for.contains(request);
            if !is_open {
                task.abort();
            }
            is_open
        });
        self.taken.retain(|frame, _| self.running.keys().any(|key| key.frame == *frame));
        // A command that starts while its agent is still ending the turn would be due again after that, and would be ended
        // together with the processes that the agent leaves behind.
        let has_paused = |frame: FrameId| tree.get(frame).is_some_and(|node| node.state.is_pending());
        for (request, frame, wait, progress) in open_requests::waits(tree).filter(|(_, frame, ..)| has_paused(*frame)) {
            for (at, tried) in due(wait, progress, since, Timestamp::now()) {
                let key = Key { frame, request, at };
                if self.ends.len() >= MOST {
                    return Ok(());
                }
                let was_started = || self.started.get(&key).is_some_and(|started| *started >= since);
                if self.running.contains_key(&key) || once && was_started() || !self.takes(store, frame)? {
                    continue;
                }
                let Some(known) = store.frame(frame)? else { break };
                if !store.looked(request, &Seen::Try(at, since))? {
                    continue;
                }
                let (dir, command) = (store.dir().path().to_owned(), tried.command.to_owned());
                let look = async move { (key, command::run(&dir, &known, &command, tried.timeout).await) };
                self.running.insert(key, self.ends.spawn(look));
                self.started.insert(key, Timestamp::now());
            }
        }
        Ok(())
    }

    /// Whether this process has the right to run the commands of a frame.
    fn takes(&mut self, store: &Store, frame: FrameId) -> Result<bool, RuntimeError> {
        if self.taken.contains_key(&frame) {
            return Ok(true);
        }
        let Some(trying) = Trying::try_take(store.dir(), frame)? else { return Ok(false) };
        if trying.was_interrupted() {
            orphan_processes::end_commands(store.dir().path(), frame);
        }
        self.taken.insert(frame, trying);
        Ok(true)
    }

    /// Waits for the next command to end; `None`: a command was ended from here, or none is running.
    pub(crate) async fn next(&mut self) -> Option<Tried> {
        let (key, look) = self.ends.join_next().await?.ok()?;
        Some(Tried { key, look })
    }

    /// Records how a command has ended.
    pub(crate) fn record(&mut self, store: &Store, tried: &Tried) -> Result<(), RuntimeError> {
        let Tried { key: Key { request, at, .. }, look } = tried;
        self.running.remove(&tried.key);
        store.looked(*request, &Seen::Tried(*at, look))?;
        Ok(())
    }

    /// Ends all of them.
    pub(crate) async fn end(&mut self) {
        self.running.clear();
        self.ends.shutdown().await;
        self.taken.clear();
    }
}

/// The commands of a wait that are due at `now`.
pub(super) fn due<'a>(
    wait: &'a External,
    progress: &'a WaitProgress,
    since: Timestamp,
    now: Timestamp,
) -> impl Iterator<Item = (usize, Try<'a>)> {
    let conditions = wait.conditions().iter().enumerate();
    conditions.filter_map(move |(at, condition)| Some((at, outlook::to_try(condition, progress, at, since, now)?)))
}
