//! Checks whether the external waits of frames are over.

use std::process::Stdio;
use std::time::Duration;

use jiff::Timestamp;

use crate::claude::invocation::{ATTEMPT, FRAME, NO_ATTEMPT, STATE_DIR, restore_environment};
use crate::claude::processes::process::{Exit, Running};
use crate::core::chain::frame::Frame;
use crate::core::chain::tree::Tree;
use crate::core::id::RequestId;
use crate::core::requests::request::{External, RequestKind};
use crate::core::requests::scheduled::Scheduled;
use crate::runtime::RuntimeError;
use crate::store::Store;

/// A command that does not end within this time has not succeeded.
const LONGEST_COMMAND: Duration = Duration::from_secs(60);

/// Records the chain's external waits that are over and can be judged without starting a process. Returns whether there are
/// others, whose commands must be run.
pub(crate) fn without_processes(store: &Store, tree: &Tree, now: Timestamp) -> Result<bool, RuntimeError> {
    let mut others = false;
    for (request, wait) in pending(tree) {
        match wait {
            External::Command(_) => others = true,
            wait if may_be_over(wait, now) => drop(store.resolve_wait(request)?),
            _ => {}
        }
    }
    Ok(others)
}

/// Whether a wait is over at `now`, as far as that can be said without a process.
pub(crate) fn may_be_over(wait: &External, now: Timestamp) -> bool {
    match wait {
        External::File(path) => path.exists(),
        External::Time(time) | External::Scheduled(Scheduled { at: time, .. }) => now >= *time,
        External::Command(_) => true,
    }
}

/// Whether the chain waits for anything outside of it.
pub(crate) fn has_outside_waits(tree: &Tree) -> bool {
    pending(tree).next().is_some()
}

/// Runs the commands that the chain waits for, and records those that succeed.
pub(crate) async fn commands(store: &Store, tree: &Tree) -> Result<(), RuntimeError> {
    for node in tree.leaves_up() {
        for request in &node.requests {
            let RequestKind::Wait(External::Command(command)) = &request.kind else { continue };
            let Some(frame) = store.frame(node.id)?.filter(|_| !request.state.is_resolved()) else { continue };
            if succeeds(store, &frame, command).await {
                store.resolve_wait(request.id)?;
            }
        }
    }
    Ok(())
}

fn pending(tree: &Tree) -> impl Iterator<Item = (RequestId, &External)> {
    let requests = tree.leaves_up().into_iter().flat_map(|node| &node.requests);
    requests.filter(|request| !request.state.is_resolved()).filter_map(|request| match &request.kind {
        RequestKind::Wait(wait) => Some((request.id, wait)),
        RequestKind::Ask(_) | RequestKind::Permission { .. } | RequestKind::Plan(_) | RequestKind::Spawn { .. } => None,
    })
}

/// Runs a command in its own process group, which ends with this call however the call ends.
///
/// An agent wrote the command, so it has the agent's mark, with an attempt id under which no request can be made. The outer shell
/// lives as long as the command, and keeps the mark even if the command clears its environment.
async fn succeeds(store: &Store, frame: &Frame, command: &str) -> bool {
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", r#"sh -c "$1"; exit $?"#, "sh", command]).current_dir(&frame.cwd);
    restore_environment(&mut shell, None, &frame.launch);
    shell.env(FRAME, frame.id.to_string()).env(ATTEMPT, NO_ATTEMPT.to_string()).env(STATE_DIR, store.dir().path());
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut running) = Running::start(shell) else { return false };
    let _group = running.kill_group_on_drop();
    has_succeeded(tokio::time::timeout(LONGEST_COMMAND, running.ended()).await.ok())
}

/// Whether a command that ended like this, or not in time, has succeeded.
fn has_succeeded(ended: Option<Exit>) -> bool {
    ended == Some(Exit::Code(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_command_that_ended_with_0_has_succeeded() {
        assert!(has_succeeded(Some(Exit::Code(0))));
        for ended in [None, Some(Exit::Code(1)), Some(Exit::Signal(9)), Some(Exit::Unknown)] {
            assert!(!has_succeeded(ended), "{ended:?}");
        }
    }
}
