//! Leaves the decision about a call that needs an approval to the user's PermissionRequest hooks: Claude Code starts them while it
//! asks agent-cli, and whichever answers first decides.

use std::thread;
use std::time::{Duration, Instant};

use crate::claude::settings::user_hooks;
use crate::claude::stream::hooks::deciding_hooks::Deciding;
use crate::claude::stream::output_reader::OutputFollower;
use crate::claude::tools::permission_server::{HOOKS, PermissionCall};
use crate::core::chain::frame::Frame;
use crate::runtime::requests::agent_lookup;
use crate::runtime::{READ_PRINTED, RuntimeError, while_trying};
use crate::store::{Attempt, Store};

/// The pause between looks at what `claude` has printed.
const LOOK: Duration = Duration::from_millis(20);
/// How long it may take to print that the hooks have started: some versions have none, and a matcher may exclude the call.
const START: Duration = Duration::from_millis(300);
/// How long Claude Code may take to follow a decision.
const FOLLOW: Duration = Duration::from_secs(2);

/// Waits for the user's hooks, if there are any. Returns whether the call is still undecided.
pub(super) fn is_open(
    store: &Store,
    frame: &Frame,
    attempt: &Attempt,
    call: &PermissionCall,
    id: &str,
) -> Result<bool, RuntimeError> {
    let dirs = agent_lookup::settings_dirs(store, frame)?;
    if !dirs.iter().any(|dir| user_hooks::decide_about(&call.tool, dir, &frame.launch)) {
        return Ok(true);
    }
    let mut output = OutputFollower::new(store.dir().printed(frame.id), attempt.output_from);
    let began = Instant::now();
    let mut decided = None;
    loop {
        let digest = output.read().map_err(while_trying(READ_PRINTED))?;
        if digest.calls.has_result(id) {
            return Ok(false);
        }
        let (patience, is_open) = match digest.deciding_hooks.about(id, &call.tool) {
            Deciding::NotStarted => (began + START, true),
            Deciding::Running => (began + HOOKS, true),
            Deciding::Undecided => return Ok(true),
            Deciding::Decided => (*decided.get_or_insert_with(Instant::now) + FOLLOW, false),
        };
        if Instant::now() >= patience {
            return Ok(is_open);
        }
        thread::sleep(LOOK);
    }
}
