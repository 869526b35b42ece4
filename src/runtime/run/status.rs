//! The status of a chain, for the caller of `spawn` and `resume`.

use jiff::Timestamp;

use crate::core::chain::frame_state::{Failure, FailureKind, FrameState};
use crate::core::chain::runnable::Attempted;
use crate::core::chain::tree::{Node, Tree};
use crate::core::chain::waiting_on::shown_state::ShownState;
use crate::core::chain::waiting_on::{Blocker, Blocking};
use crate::core::id::FrameId;
use crate::runtime::RuntimeError;
use crate::runtime::requests::posted::filing;
use crate::runtime::run::driven::{Busy, Driven};
use crate::runtime::run::frame_error::{FrameError, FrameErrorKind};
use crate::runtime::run::{background, external_waits};
use crate::store::{Attempts, Driving, Lease, Replies, Store};

/// The status of a chain in which nothing can run.
#[derive(Debug)]
pub(crate) enum ChainStatus {
    Done(String),
    Waits {
        new: bool,
        blockers: Vec<Blocker>,
        /// Frames that are run by other processes.
        busy: Vec<Busy>,
        /// What went wrong, and what an agent will be told when its other waits have ended.
        errors: Vec<FrameError>,
    },
    /// Its top is a group whose agents have all ended, and some of which failed, or an agent that is done, and an agent below it
    /// failed that a person had continued.
    PartlyFailed {
        replies: String,
        errors: Vec<FrameError>,
    },
    /// An error that no agent in the chain can handle.
    Failed(Vec<FrameError>),
    Interrupted,
}

/// The status of the chain if nothing in it can run; `None` if the chain must be run to find out.
///
/// A poll does no more than this: it starts no process and no async runtime, and writes nothing unless an external wait has
/// ended.
pub(crate) fn poll(store: &Store, top: FrameId) -> Result<Option<ChainStatus>, RuntimeError> {
    of_tree(store, store.tree(top)?)
}

/// Like [`poll`]. `None` also if the chain belongs to another host, or has none yet.
pub(crate) fn poll_here(store: &Store, top: FrameId) -> Result<Option<ChainStatus>, RuntimeError> {
    let tree = store.tree(top)?;
    if tree.whole().is_elsewhere { Ok(None) } else { of_tree(store, tree) }
}

fn of_tree(store: &Store, tree: Tree) -> Result<Option<ChainStatus>, RuntimeError> {
    let (top, is_here) = (tree.top(), !tree.whole().is_elsewhere);
    let Some(state) = tree.get(top).map(|node| node.state.clone()) else { return Ok(None) };
    if is_here && state.is_over() {
        filing::file_ended(store, Some(top))?;
    }
    let is_over = state == FrameState::Done || state.was_stopped();
    let at_end = || match state {
        FrameState::Done => Ok(latest_reply(store, top)?.map(ChainStatus::Done)),
        _ => stopped(store, top, &state).map(Some),
    };
    if tree.has_ended() && is_over {
        return at_end();
    }
    let now = Timestamp::now();
    if !is_here {
        // The files and processes of this host are not the agents' own.
        let waits =
            || ChainStatus::Waits { new: false, blockers: tree.blockers(now), busy: Vec::new(), errors: Vec::new() };
        return match tree.can_continue(now) || continues_when_asked(&tree) {
            true => Ok(None),
            false => Ok(Some(waits())),
        };
    }
    let Some(mut tree) = at_rest(store, tree, now)? else { return Ok(None) };
    if continues_when_asked(&tree) {
        return Ok(None);
    }
    let mut busy = Vec::new();
    for node in tree.leaves_up().into_iter().filter(|node| runs(node)) {
        if is_free(store, node.id)? {
            return Ok(None);
        }
        let runner = store.attempts(Attempts::RunningOf(node.id))?.pop().map(|attempt| attempt.runner);
        busy.push(Busy { frame: node.id, runner });
    }
    external_waits::observe(store, &mut tree, now)?;
    let blockers = tree.blockers(now);
    let is_held_up = blockers.iter().any(|blocker| matches!(blocker.what, Blocking::Parallel { .. }));
    // Frames whose runner died no longer count towards the limits, wherever in the chain they are.
    if is_held_up && any_is_free(store, &tree)? {
        return Ok(None);
    }
    Ok(Some(ChainStatus::Waits { new: false, blockers, busy, errors: Vec::new() }))
}

/// Whether something continues because a person asks for this chain: what has failed, was interrupted or is paused.
fn continues_when_asked(tree: &Tree) -> bool {
    !tree.to_try_again().is_empty() || !tree.to_restart().is_empty() || !tree.to_continue().is_empty()
}

/// What the agent of a frame last replied, to anyone.
pub(crate) fn latest_reply(store: &Store, frame: FrameId) -> Result<Option<String>, RuntimeError> {
    let later = store.steering(frame)?.messages.into_iter().rev().find_map(|message| message.reply);
    Ok(match later {
        Some(reply) => Some(reply),
        None => store.replies(frame)?.reply,
    })
}

/// The status of a chain whose top was stopped.
fn stopped(store: &Store, top: FrameId, state: &FrameState) -> Result<ChainStatus, RuntimeError> {
    if let Some(partly) = partly_failed(store.replies(top)?) {
        return Ok(partly);
    }
    let FrameState::Failed { failure } = state else { return Ok(ChainStatus::Interrupted) };
    Ok(ChainStatus::Failed(vec![FrameError { frame: top, kind: FrameErrorKind::Stopped(failure.message.clone()) }]))
}

/// The status of a group some of whose members failed; `None`: it is no group, or has no replies.
fn partly_failed(Replies { reply, members }: Replies) -> Option<ChainStatus> {
    let replies = reply.filter(|_| !members.is_empty())?;
    Some(ChainStatus::PartlyFailed {
        replies,
        errors: members.iter().filter_map(|member| Some(error(member.id, member.failure()?))).collect(),
    })
}

/// Whether the attempt of a running frame can be concluded: it has no runner, or its runner has abandoned it.
fn is_free(store: &Store, frame: FrameId) -> Result<bool, RuntimeError> {
    if !Lease::is_held(store.dir(), frame)? {
        return Ok(true);
    }
    let (Some(known), Some(attempt)) = (store.frame(frame)?, store.attempts(Attempts::RunningOf(frame))?.pop()) else {
        return Ok(false);
    };
    background::is_abandoned(store, &known, &attempt)
}

/// Whether any attempt in the chain can be concluded.
fn any_is_free(store: &Store, tree: &Tree) -> Result<bool, RuntimeError> {
    for node in tree.all().filter(|node| runs(node)) {
        if is_free(store, node.id)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether something in the chain of `root` can run now. Unlike [`poll`], this skips failed agents, and chains that another
/// process runs.
pub(crate) fn can_continue(store: &Store, root: FrameId) -> Result<bool, RuntimeError> {
    Ok(!Driving::is_marked(store.dir(), root)? && can_run(store, root)?)
}

/// The same of a chain that this process may have marked as run by it.
pub(crate) fn can_run(store: &Store, root: FrameId) -> Result<bool, RuntimeError> {
    let tree = store.tree(root)?;
    if tree.whole().is_elsewhere {
        return Ok(false);
    }
    match at_rest(store, tree, Timestamp::now())? {
        Some(tree) => any_is_free(store, &tree),
        None => Ok(true),
    }
}

/// The chain after checking what it waits for outside. `None`: an agent or a command in it can run now, or a group must end.
fn at_rest(store: &Store, mut tree: Tree, now: Timestamp) -> Result<Option<Tree>, RuntimeError> {
    if external_waits::without_processes(store, &tree, now)? {
        return Ok(None);
    }
    if external_waits::has_outside_waits(&tree) {
        tree = store.tree(tree.top())?;
    }
    let is_at_rest = tree.runnable(&Attempted::default(), now).is_empty() && !tree.has_frames_to_end();
    Ok(is_at_rest.then_some(tree))
}

fn runs(node: &Node) -> bool {
    matches!(node.state, FrameState::Running { .. })
}

/// The status of the chain after a run.
pub(crate) fn after(store: &Store, top: FrameId, driven: Driven) -> Result<ChainStatus, RuntimeError> {
    let mut tree = store.tree(top)?;
    let was_continued = |frame: FrameId| tree.get(frame).is_some_and(|node| node.has_outcome);
    let has_failed_again = driven.errors.iter().any(|error| error.frame != top && was_continued(error.frame));
    match (tree.get(top).map(|node| &node.state), latest_reply(store, top)?) {
        _ if has_failed_again || tree.get(top).is_some_and(|node| node.state.is_over()) && !tree.has_ended() => {}
        (Some(state), _) if state.was_stopped() => return stopped(store, top, state),
        (Some(FrameState::Done), Some(reply)) => return Ok(ChainStatus::Done(reply)),
        (Some(FrameState::Failed { .. }), _) => {
            // An agent that failed in a later turn has an earlier reply, which is not the result of this run.
            if let Some(partly) = partly_failed(store.replies(top)?) {
                return Ok(partly);
            }
        }
        _ => {}
    }
    if driven.interrupted {
        return Ok(ChainStatus::Interrupted);
    }
    let now = Timestamp::now();
    external_waits::observe(store, &mut tree, now)?;
    let mut blockers = tree.blockers(now);
    blockers.extend(driven.no_place.map(|(frame, why)| Blocker { frame, since: now, what: why.into() }));
    let failed = |frame| driven.errors.iter().any(|error| error.frame == frame && !error.kind.leaves_a_wait());
    // What agents wait for that a person had continued does not change how the top has ended.
    let has_failed = failed(top) || blockers.iter().all(|blocker| failed(blocker.frame));
    if !driven.errors.is_empty() && has_failed {
        let is_done = tree.get(top).is_some_and(|node| node.state == FrameState::Done);
        return Ok(match latest_reply(store, top)?.filter(|_| is_done && !failed(top)) {
            Some(replies) => ChainStatus::PartlyFailed { replies, errors: driven.errors },
            None => ChainStatus::Failed(driven.errors),
        });
    }
    if let Some(FrameState::Failed { failure }) = tree.get(top).map(|node| &node.state)
        && tree.has_ended()
        && driven.errors.is_empty()
    {
        // Others have worked, whom a person had continued.
        return Ok(ChainStatus::Failed(vec![error(top, failure)]));
    }
    let waits = |frame| tree.get(frame).is_some_and(|node| matches!(node.state, FrameState::Waiting { .. }));
    // Nothing would have been started if the budget had been spent before.
    let over_budget = |blocker: &Blocker| matches!(blocker.what, Blocking::Budget { .. });
    let new = driven.started.iter().any(|frame| waits(*frame)) || driven.worked && blockers.iter().any(over_budget);
    Ok(ChainStatus::Waits { new, blockers, busy: driven.busy, errors: driven.errors })
}

/// As [`after`], for a run without a waiting caller: a chain that will be retried is waiting.
pub(crate) fn after_unattended(store: &Store, top: FrameId, driven: Driven) -> Result<ChainStatus, RuntimeError> {
    let (busy, now) = (driven.busy.clone(), Timestamp::now());
    let errors = match after(store, top, driven)? {
        ChainStatus::Failed(errors) => errors,
        // It waits for nothing else: only a person continues it.
        ChainStatus::Waits { blockers, busy, errors, .. }
            if blockers.is_empty()
                && busy.is_empty()
                && errors.is_empty()
                && store.tree(top)?.shown_state(false, now) == ShownState::Interrupted =>
        {
            return Ok(ChainStatus::Interrupted);
        }
        status => return Ok(status),
    };
    let blockers = store.tree(top)?.blockers(now);
    Ok(if blockers.is_empty() {
        ChainStatus::Failed(errors)
    } else {
        ChainStatus::Waits { new: false, blockers, busy, errors }
    })
}

fn error(frame: FrameId, failure: &Failure) -> FrameError {
    let Failure { kind, message } = failure.clone();
    let why = match kind {
        FailureKind::Refused => FrameErrorKind::Refused(message),
        FailureKind::Stopped => FrameErrorKind::Stopped(message),
        FailureKind::Error | FailureKind::Unhandled => FrameErrorKind::Ended(message),
    };
    FrameError { frame, kind: why }
}

impl ChainStatus {
    /// The reply of the top, or the replies of a group.
    pub(crate) fn reply(&self) -> Option<&str> {
        match self {
            Self::Done(reply) | Self::PartlyFailed { replies: reply, .. } => Some(reply),
            Self::Waits { .. } | Self::Failed(_) | Self::Interrupted => None,
        }
    }

    pub(crate) fn errors(&self) -> &[FrameError] {
        match self {
            Self::Waits { errors, .. } | Self::PartlyFailed { errors, .. } | Self::Failed(errors) => errors,
            Self::Done(_) | Self::Interrupted => &[],
        }
    }

    /// Whether it has ended so that no retry changes it: with a reply, or because it was stopped.
    pub(crate) fn is_final(&self) -> bool {
        let was_stopped = |error: &FrameError| matches!(error.kind, FrameErrorKind::Stopped(_));
        match self {
            Self::Done(_) => true,
            Self::PartlyFailed { errors, .. } | Self::Failed(errors) => errors.iter().all(was_stopped),
            Self::Waits { .. } | Self::Interrupted => false,
        }
    }

    /// Whether there are errors, and each means that `claude` could not be used at all.
    pub(crate) fn is_refusal(&self) -> bool {
        let refused = |error: &FrameError| {
            matches!(
                error.kind,
                FrameErrorKind::Program(_) | FrameErrorKind::Refused(_) | FrameErrorKind::NoConversation { .. }
            )
        };
        match self {
            Self::Failed(errors) | Self::Waits { errors, .. } => !errors.is_empty() && errors.iter().all(refused),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
