//! Checks whether the external waits of frames are over.

mod agents;
mod command;
mod files;

use jiff::Timestamp;

pub(crate) use files::is_within;

use crate::core::chain::tree::Tree;
use crate::core::id::{FrameId, RequestId};
use crate::core::requests::question::Form;
use crate::core::requests::request::{Request, RequestKind};
use crate::core::waits::conditions::External;
use crate::core::waits::outlook::{next_try, of_time};
use crate::core::waits::progress::{Look, Progress};
use crate::runtime::RuntimeError;
use crate::runtime::requests::{posted, question_files};
use crate::store::Store;

/// Records how far the chain's external waits are, as far as that can be judged without starting a process, and which questions
/// have expired. Returns whether there are commands to be run now.
pub(crate) fn without_processes(store: &Store, tree: &Tree, now: Timestamp) -> Result<bool, RuntimeError> {
    posted::look(store, tree)?;
    let mut to_run = false;
    for (request, _, wait, recorded) in pending(tree) {
        let mut progress = recorded.clone();
        for at in 0..wait.conditions().len() {
            if let Some(look @ Look::Met(_)) = look_at(store, wait, &progress, at, now)? {
                progress.note(at, look, now);
            }
        }
        if progress != *recorded {
            store.looked(request, &progress)?;
        }
        to_run |= !progress.is_over(wait) && !to_try(wait, &progress, now).is_empty();
    }
    // An answer that is there counts, even if nobody looked in time.
    for (question, form) in in_files(tree) {
        question_files::take(store, question, form, now)?;
    }
    for (question, form) in expiring(tree).filter(|(_, form)| form.is_over(now)) {
        store.expire(question, now)?;
        posted::file(store, question, form);
    }
    Ok(to_run)
}

/// Whether a single condition that is neither a time nor a command is met. What cannot be looked at is not.
pub(crate) fn is_met(store: &Store, condition: &External) -> bool {
    let look = look_at(store, condition, &Progress::default(), 0, Timestamp::UNIX_EPOCH);
    matches!(look, Ok(Some(Look::Met(_))))
}

/// Adds to what is recorded how the conditions look now, for people. Nothing is written.
pub(crate) fn observe(store: &Store, tree: &mut Tree, now: Timestamp) -> Result<(), RuntimeError> {
    posted::observe(store, tree)?;
    for request in tree.requests_mut() {
        let RequestKind::Wait(wait) = &request.kind else { continue };
        if request.state.is_resolved() {
            continue;
        }
        for at in 0..wait.conditions().len() {
            if let Some(look) = look_at(store, wait, &request.progress, at, now)? {
                request.progress.note(at, look, now);
            }
        }
    }
    Ok(())
}

/// Whether the chain waits for anything outside of it that only its runner notices.
pub(crate) fn has_outside_waits(tree: &Tree) -> bool {
    let waits = pending(tree).next().is_some() || expiring(tree).next().is_some();
    waits || posted::any(tree) || in_files(tree).next().is_some()
}

/// The open questions that stand in files.
fn in_files(tree: &Tree) -> impl Iterator<Item = (RequestId, &Form)> {
    let requests = tree.leaves_up().into_iter().flat_map(|node| &node.requests);
    requests.filter(|request| !request.state.is_resolved()).filter_map(|request| match &request.kind {
        RequestKind::Ask(form) if form.file.is_some() => Some((request.id, form)),
        _ => None,
    })
}

/// Runs the commands that the chain waits for and whose time has come, and records what comes of it.
pub(crate) async fn commands(store: &Store, tree: &Tree) -> Result<(), RuntimeError> {
    for (request, frame, wait, recorded) in pending(tree) {
        let mut progress = recorded.clone();
        for at in to_try(wait, &progress, Timestamp::now()) {
            let Some(frame) = store.frame(frame)? else { break };
            let Some(tried) = wait.conditions()[at].command_to_try() else { continue };
            let now = Timestamp::now();
            progress.note_try(at, command::run(store, &frame, tried).await, now);
            store.looked(request, &progress)?;
            if progress.is_over(wait) {
                break;
            }
        }
    }
    Ok(())
}

/// How one condition looks that was not met before; `None`: only a process can tell, or there is no need to look.
fn look_at(
    store: &Store,
    wait: &External,
    progress: &Progress,
    at: usize,
    now: Timestamp,
) -> Result<Option<Look>, RuntimeError> {
    if progress.is_met(at) {
        return Ok(None);
    }
    Ok(match &wait.conditions()[at] {
        External::File(path) => Some(files::exists(path)),
        External::Matching(matching) => Some(files::matches(matching)),
        External::Agent(agent) => Some(agents::look_at(store, agent)?),
        condition => of_time(condition, now),
    })
}

/// The commands that are to be run now, by their places.
fn to_try(wait: &External, progress: &Progress, now: Timestamp) -> Vec<usize> {
    let is_due = |(at, condition): &(usize, &External)| {
        !progress.is_met(*at)
            && condition.command_to_try().is_some()
            && next_try(condition, progress, *at, now).is_none()
    };
    wait.conditions().iter().enumerate().filter(is_due).map(|(at, _)| at).collect()
}

fn pending(tree: &Tree) -> impl Iterator<Item = (RequestId, FrameId, &External, &Progress)> {
    open(tree).filter_map(|request| match &request.kind {
        RequestKind::Wait(wait) => Some((request.id, request.frame, wait, &request.progress)),
        RequestKind::Ask(_) | RequestKind::Permission { .. } | RequestKind::Plan(_) | RequestKind::Spawn { .. } => None,
    })
}

fn expiring(tree: &Tree) -> impl Iterator<Item = (RequestId, &Form)> {
    open(tree).filter_map(|request| match &request.kind {
        RequestKind::Ask(form) if form.expires_at.is_some() => Some((request.id, form)),
        _ => None,
    })
}

fn open(tree: &Tree) -> impl Iterator<Item = &Request> {
    let requests = tree.leaves_up().into_iter().flat_map(|node| &node.requests);
    requests.filter(|request| !request.state.is_resolved())
}
