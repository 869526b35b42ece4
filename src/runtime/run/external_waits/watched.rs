//! Watches for everything that can wake an agent of a chain although no agent of this process has ended: times, files,
//! other agents and other runners.
//!
//! Files are polled, not watched: a folder may be on a network, or be removed and created again, and the system limits the
//! watches of a user. Polling costs one system call for each file.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};

use crate::core::chain::check_schedule::{InFile, TICK};
use crate::core::chain::runnable::Attempted;
use crate::core::chain::tree::Tree;
use crate::core::id::FrameId;
use crate::core::requests::question_form::answer_file::Posted;
use crate::core::requests::request::{Request, RequestKind};
use crate::core::waits::conditions::{AwaitedAgent, External};
use crate::core::waits::wait_progress::CheckResult;
use crate::runtime::requests::answer_files;
use crate::runtime::run::external_waits::{condition, open_requests};
use crate::store::{Lease, Store};

/// How often a chain is checked while another process runs a part of it: the other process may finish without a notice.
const WHILE_OTHERS_RUN: SignedDuration = SignedDuration::from_secs(10);

/// A file may change again within the time resolution of its file system.
const SETTLES: SignedDuration = SignedDuration::from_secs(2);

/// Identifies a version of a file without reading it: its device, number, size, and times; `None`: it does not exist.
type Print = Option<(u64, u64, u64, [i64; 4])>;

/// The files that a chain waits for, as they were before they were checked. Files that have just changed are left out, so that
/// they are checked again.
#[derive(Debug, Default)]
pub(crate) struct Prints(HashMap<PathBuf, Print>);

impl Prints {
    pub(crate) fn new(tree: &Tree, now: Timestamp) -> Self {
        let print = |path: PathBuf| {
            let print = print(&path);
            let is_settled = print.is_none_or(|(.., [_, _, seconds, _])| {
                let changed = Timestamp::from_second(seconds).unwrap_or_default();
                changed.duration_since(now).abs() > SETTLES
            });
            is_settled.then_some((path, print))
        };
        Self(files(tree).filter_map(print).collect())
    }
}

/// What is watched for a chain.
#[derive(Debug)]
pub(crate) struct Watched {
    next: Timestamp,
    files: Vec<(PathBuf, Option<Print>)>,
    agents: Vec<AwaitedAgent>,
    busy: Vec<FrameId>,
}

impl Watched {
    /// Watches a chain whose files had these prints when it was checked. Other processes run the frames `busy`. `since`:
    /// when commands without an interval were last due.
    pub(crate) fn new(
        tree: &Tree,
        Prints(prints): &Prints,
        attempted: &Attempted,
        busy: Vec<FrameId>,
        since: Timestamp,
    ) -> Self {
        let now = Timestamp::now();
        let by_time = tree.next_by_time(attempted, since, now);
        let longest = if busy.is_empty() { TICK } else { WHILE_OTHERS_RUN };
        let latest = now.saturating_add(longest).unwrap_or(now);
        let next = answers_count(tree, now).chain(by_time).fold(latest, Timestamp::min);
        let files = files(tree).map(|path| (prints.get(&path).copied(), path)).map(|(print, path)| (path, print));
        Self { next, files: files.collect(), agents: awaited_agents(tree).cloned().collect(), busy }
    }

    /// Whether a scheduled time has arrived.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.next <= now
    }

    /// Whether something has changed since the chain was checked.
    pub(crate) fn has_changed(&self, store: &Store) -> bool {
        // If it is unknown, assume that nothing has changed.
        let is_over = |agent: &AwaitedAgent| matches!(condition::look_at(store, agent), Ok(CheckResult::Met(_)));
        let is_free = |frame: &FrameId| Lease::is_held(store.dir(), *frame).is_ok_and(|held| !held);
        self.files.iter().any(|(path, seen)| *seen != Some(print(path)))
            || self.agents.iter().any(is_over)
            || self.busy.iter().any(is_free)
    }
}

fn print(path: &Path) -> Print {
    let file = fs::metadata(path).ok()?;
    let times = [file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()];
    Some((file.dev(), file.ino(), file.len(), times))
}

fn files(tree: &Tree) -> impl Iterator<Item = PathBuf> {
    open_requests::requests(tree).flat_map(|request| match &request.kind {
        RequestKind::Wait(wait) => wait.files().map(Path::to_owned).collect(),
        RequestKind::Ask(form) => {
            let unread = form.posted.as_ref().filter(|posted| posted.trouble.is_some());
            form.answered_in().into_iter().chain(unread.and_then(Posted::pending)).collect()
        }
        RequestKind::Permission { .. } | RequestKind::Plan(_) | RequestKind::Spawn { .. } => Vec::new(),
    })
}

/// The agents that others wait for and that had not ended.
fn awaited_agents(tree: &Tree) -> impl Iterator<Item = &AwaitedAgent> {
    open_requests::waits(tree).flat_map(|(_, _, wait, progress)| {
        let conditions = wait.conditions().iter().enumerate().filter(|(at, _)| !progress.is_met(*at));
        conditions.filter_map(|(_, condition)| agent(condition))
    })
}

fn agent(condition: &External) -> Option<&AwaitedAgent> {
    match condition {
        External::Agent(agent) => Some(agent),
        _ => None,
    }
}

/// The times from which answers count that may still be being written.
fn answers_count(tree: &Tree, now: Timestamp) -> impl Iterator<Item = Timestamp> {
    open_requests::requests(tree).filter_map(move |Request { kind, progress, .. }| match kind {
        RequestKind::Ask(form) => match answer_files::state(form, progress, now) {
            InFile::Soon(time) => Some(time),
            InFile::NoAnswer | InFile::Refused { .. } | InFile::Answer(_) => None,
        },
        _ => None,
    })
}
