//! The loop that drives a tree: start what can run, wait for an end, decide on it, again, until nothing can run.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::attempt::{self, Start};
use super::conclude::{self, Conclusion};
use super::worktree::WorktreeError;
use super::{RuntimeError, Settings, probe, programs, while_trying};
use crate::claude::process::{Exit, Stop};
use crate::claude::program::ProgramError;
use crate::core::id::FrameId;
use crate::core::outcome::{Fork, Outcome, Report};
use crate::core::state::{Ended, FrameState};
use crate::core::tree::{Tree, Tried};
use crate::core::worktree::Worktree;
use crate::crash::{self, Step};
use crate::store::{Lease, Store, StoreError};

/// What happened while a tree was driven.
#[derive(Debug, Default)]
pub struct Driven {
    /// Frames that began to wait for something new.
    pub started: HashSet<FrameId>,
    /// Whether an attempt has ended.
    pub worked: bool,
    /// What went wrong and nobody in the tree has been told.
    pub errors: Vec<FrameError>,
    /// Frames that another process runs.
    pub busy: Vec<Busy>,
    /// A person stopped it.
    pub interrupted: bool,
}

/// What went wrong with a frame.
#[derive(Debug)]
pub struct FrameError {
    /// The frame.
    pub frame: FrameId,
    /// What went wrong.
    pub why: Why,
}

/// The kinds of errors that need different help.
#[derive(Debug, thiserror::Error)]
pub enum Why {
    /// There is no usable `claude`.
    #[error(transparent)]
    Program(ProgramError),
    /// `claude` refused before any work.
    #[error("{0}")]
    Refused(String),
    /// The working directory is not there.
    #[error("the working directory is gone: {}", .0.display())]
    NoWorkingDirectory(std::path::PathBuf),
    /// The worktree that was made for it is not there.
    #[error("its worktree is gone: {}", .0.path.display())]
    WorktreeGone(Worktree),
    /// No worktree could be made for it.
    #[error(transparent)]
    NoWorktree(WorktreeError),
    /// The attempt ended badly.
    #[error("{0}")]
    Ended(String),
}

/// A frame that another process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Busy {
    /// The frame.
    pub frame: FrameId,
    /// The process that started the attempt; it may have died, and `claude` alone be finishing its turn.
    pub runner: Option<u32>,
}

/// Drives the tree below `top` until nothing in it can run.
///
/// # Errors
///
/// [`RuntimeError`] when the state directory cannot be used. Agents that run then finish their turns, and the next
/// `resume` finds what they did.
pub async fn drive(
    store: &Store,
    settings: &Settings,
    top: FrameId,
    stop: watch::Receiver<Stop>,
) -> Result<Driven, RuntimeError> {
    let (live, exits) = (HashMap::new(), JoinSet::new());
    let drive = Drive { store, settings, top, stop, tried: Tried::default(), live, exits, driven: Driven::default() };
    drive.run().await
}

/// Drives the tree below `top` after frames that failed or were stopped were made ready to be tried again.
///
/// # Errors
///
/// As for [`drive`].
pub async fn resume(
    store: &Store,
    settings: &Settings,
    top: FrameId,
    stop: watch::Receiver<Stop>,
) -> Result<Driven, RuntimeError> {
    for node in store.tree(top)?.to_try_again() {
        try_again(store, node.id)?;
    }
    drive(store, settings, top, stop).await
}

/// Ends the pauses of the whole tree of `top`: what waits for a usage limit or for the API can run at once.
///
/// # Errors
///
/// Those of the state directory.
pub fn end_pauses(store: &Store, top: FrameId) -> Result<(), RuntimeError> {
    let pauses = |state: &FrameState| matches!(state, FrameState::Waiting { wait } if wait.is_pause());
    for node in store.tree(top)?.all().filter(|node| pauses(&node.state)) {
        try_again(store, node.id)?;
    }
    Ok(())
}

fn try_again(store: &Store, frame: FrameId) -> Result<(), RuntimeError> {
    match store.try_again(frame) {
        // Another process may have been faster: then there is nothing left to do.
        Err(error @ (StoreError::Illegal(_) | StoreError::UnknownFrame(_))) => {
            tracing::info!(%frame, "not tried again: {error}");
        }
        tried => drop(tried?),
    }
    Ok(())
}

struct Drive<'a> {
    store: &'a Store,
    settings: &'a Settings,
    top: FrameId,
    stop: watch::Receiver<Stop>,
    tried: Tried,
    live: HashMap<FrameId, Lease>,
    exits: JoinSet<(FrameId, Exit)>,
    driven: Driven,
}

impl Drive<'_> {
    async fn run(mut self) -> Result<Driven, RuntimeError> {
        let mut looked_again = false;
        loop {
            let tree = self.tree_as_it_is().await?;
            let look_again = self.start_what_can_run(&tree).await?;
            match self.exits.join_next().await {
                Some(ended) => {
                    let (frame, exit) = ended.map_err(|error| while_trying("wait for claude")(error.into()))?;
                    self.conclude(frame, exit)?;
                    looked_again = false;
                }
                // While this one held the lease of a frame that found no room, another process may have made room and not
                // been able to start it. And a frame that could not be started is over for its parent.
                None if look_again && !looked_again => looked_again = true,
                None => break,
            }
        }
        self.driven.interrupted = *self.stop.borrow() != Stop::No;
        let tree = self.store.tree(self.top)?;
        self.driven.errors.retain(|error| concerns_the_caller(&tree, error));
        Ok(self.driven)
    }

    /// The tree when what has happened to it without this program is recorded. Reading it costs more than all else where
    /// it is large, so it is read again only when something may have changed.
    async fn tree_as_it_is(&mut self) -> Result<Tree, RuntimeError> {
        let mut tree = self.store.tree(self.top)?;
        if self.harvest(&tree)? {
            tree = self.store.tree(self.top)?;
        }
        if probe::has_outside_waits(&tree) {
            self.look_outside(&tree).await?;
            tree = self.store.tree(self.top)?;
        }
        // The end of a group may be that of the group that it is in.
        while self.end_groups(&tree)? {
            tree = self.store.tree(self.top)?;
        }
        Ok(tree)
    }

    /// Concludes attempts whose runner died, in the whole tree: they count for its limits. What another process still
    /// runs is left alone. Returns whether there were any.
    fn harvest(&mut self, tree: &Tree) -> Result<bool, RuntimeError> {
        let mut any = false;
        let below: HashSet<FrameId> = tree.leaves_up().into_iter().map(|node| node.id).collect();
        for node in tree.all() {
            if !matches!(node.state, FrameState::Running { .. }) || self.live.contains_key(&node.id) {
                continue;
            }
            let is_below = below.contains(&node.id);
            let Some(lease) = Lease::try_take(self.store.dir(), node.id)? else {
                if is_below {
                    self.note_busy(node.id)?;
                }
                continue;
            };
            let Some(frame) = self.store.frame(node.id)? else { continue };
            let harvested = || conclude::conclude(self.store, &frame, Exit::Unknown, &lease);
            if let Some(conclusion) = crash::around(Step::Harvest, harvested)? {
                tracing::info!(frame = %node.id, "concluded an attempt whose runner had died");
                let died = matches!(conclusion.outcome, Outcome::Died { .. });
                if is_below {
                    self.take_note(node.id, &conclusion, !died);
                }
                any = true;
            }
        }
        Ok(any)
    }

    async fn look_outside(&mut self, tree: &Tree) -> Result<(), RuntimeError> {
        if probe::without_processes(self.store, tree, Timestamp::now())? {
            tokio::select! {
                looked = probe::commands(self.store, tree) => looked?,
                _ = self.stop.wait_for(|stop| *stop != Stop::No) => {}
            }
        }
        Ok(())
    }

    /// Ends groups whose members are all over. That takes no process, so no limit of processes counts. Returns whether
    /// there were any.
    fn end_groups(&mut self, tree: &Tree) -> Result<bool, RuntimeError> {
        let mut any = false;
        for group in tree.groups_to_end() {
            if self.store.end_group(group)? {
                tracing::info!(frame = %group, "all agents of the group are over");
                any = true;
            }
        }
        Ok(any)
    }

    /// Returns whether it is worth to look again: what could not be started may make another frame run, or can be started
    /// once other processes are done with it.
    async fn start_what_can_run(&mut self, tree: &Tree) -> Result<bool, RuntimeError> {
        let mut look_again = false;
        for frame in tree.runnable(&self.tried, Timestamp::now()) {
            if *self.stop.borrow() != Stop::No {
                return Ok(false);
            }
            look_again |= self.start(frame).await?;
        }
        Ok(look_again)
    }

    async fn start(&mut self, id: FrameId) -> Result<bool, RuntimeError> {
        let Some(frame) = self.store.frame(id)? else { return Ok(false) };
        let program = match programs::usable(self.store, self.settings, &frame.launch).await {
            Ok(program) => program,
            Err(RuntimeError::Program(error)) => {
                self.fail(id, Why::Program(error));
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        match attempt::start(self.store, self.settings, id, &self.tried, &program) {
            Ok(Start::Started(running, lease)) => {
                tracing::info!(frame = %id, task = frame.task.title(), "started claude");
                self.tried.attempted(id);
                self.live.insert(id, lease);
                let stop = self.stop.clone();
                self.exits.spawn(async move { (id, running.ended(stop).await) });
            }
            Ok(Start::NotStarted(_lease, why)) => {
                let conclusion = conclude::conclude_unstarted(self.store, &frame, why)?;
                conclusion.iter().for_each(|conclusion| self.take_note(id, conclusion, true));
                return Ok(true);
            }
            Ok(Start::Busy) => self.note_busy(id)?,
            Ok(Start::Changed) => self.tried.bench(id),
            Ok(Start::Held) => return Ok(true),
            Err(RuntimeError::NoWorkingDirectory { cwd, .. }) => self.fail(
                id,
                match frame.launch.worktree {
                    Some(worktree) if !worktree.path.exists() => Why::WorktreeGone(worktree),
                    _ => Why::NoWorkingDirectory(cwd),
                },
            ),
            Err(RuntimeError::Worktree(error)) => self.fail(id, Why::NoWorktree(error)),
            Err(error) => return Err(error),
        }
        Ok(false)
    }

    fn conclude(&mut self, id: FrameId, exit: Exit) -> Result<(), RuntimeError> {
        let (Some(lease), Some(frame)) = (self.live.remove(&id), self.store.frame(id)?) else { return Ok(()) };
        if let Some(conclusion) = conclude::conclude(self.store, &frame, exit, &lease)? {
            self.take_note(id, &conclusion, true);
        }
        Ok(())
    }

    /// `here`: whether the attempt was made, or its end is news, in this run of the program.
    fn take_note(&mut self, id: FrameId, conclusion: &Conclusion, here: bool) {
        let verdict = &conclusion.verdict;
        self.driven.worked = true;
        tracing::info!(frame = %id, "{:?}", verdict);
        match verdict.report {
            Report::Started => self.driven.started.insert(id),
            Report::Reply | Report::Ongoing | Report::Error => self.driven.started.remove(&id),
        };
        self.driven.errors.retain(|error| error.frame != id);
        if !here {
            return;
        }
        if let Some(message) = conclusion.error() {
            let refused = matches!(conclusion.outcome, Outcome::Refused(_));
            self.fail(id, if refused { Why::Refused(message) } else { Why::Ended(message) });
        }
        // What changed nothing would change nothing again, and a limit does not lift within seconds.
        let limited = matches!(conclusion.outcome, Outcome::UsageLimit { .. } | Outcome::Unavailable { .. });
        if verdict.fork == Fork::Discard || verdict.ended == Ended::Again || limited {
            self.tried.bench(id);
        }
    }

    fn fail(&mut self, frame: FrameId, why: Why) {
        self.tried.bench(frame);
        self.driven.errors.push(FrameError { frame, why });
    }

    fn note_busy(&mut self, frame: FrameId) -> Result<(), RuntimeError> {
        self.tried.bench(frame);
        let runner = self.store.running_attempt(frame)?.map(|attempt| attempt.runner);
        if !self.driven.busy.iter().any(|busy| busy.frame == frame) {
            self.driven.busy.push(Busy { frame, runner });
        }
        Ok(())
    }
}

/// A failure that the parent was told of is the parent's to handle, and a frame that went on has no error any more.
fn concerns_the_caller(tree: &Tree, error: &FrameError) -> bool {
    tree.get(error.frame).is_some_and(|node| match node.state {
        FrameState::Done => false,
        FrameState::Failed { .. } => tree.is_awaited(node),
        _ => true,
    })
}
