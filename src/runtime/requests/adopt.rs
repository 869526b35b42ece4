//! Adopts a Claude session that agent-cli did not start, for instance the interactive one at the top of a chain.

use std::thread;
use std::time::Duration;

use crate::claude::environment::config_dir::config_dir;
use crate::claude::transcript::{locate, session_facts};
use crate::core::agent::launch::Launch;
use crate::core::chain::frame::{Frame, Task};
use crate::core::chain::limits::Limits;
use crate::core::id::{FrameId, SessionId};
use crate::runtime::{RuntimeError, while_trying};
use crate::store::files::{checkpoint, tool_results};
use crate::store::{Lease, NewChain, NewFrame, Store};

/// The interval between checks whether another process has adopted a session.
const LOOK: Duration = Duration::from_millis(10);

/// Creates a root frame that continues `session`, if Claude Code has such a session. Its working directory and model come
/// from its transcript. Only its agent can judge whether its wait has ended.
pub(crate) fn adopt(store: &Store, session: SessionId, launch: Launch) -> Result<Option<FrameId>, RuntimeError> {
    let Some(config) = config_dir(&launch) else { return Ok(None) };
    let Some(found) = locate::find_anywhere(&config, session) else { return Ok(None) };
    let origin = session_facts::origin(&found).map_err(while_trying("read the transcript"))?;
    let Some(cwd) = origin.cwd else { return Ok(None) };
    let launch = Launch { model: launch.model.or(origin.model), ..launch };
    let task = Task::Prompt(format!("(Claude session {session})"));
    let frame = FrameId(session.0);
    let _lease = loop {
        let lease = Lease::try_take(store.dir(), frame)?;
        if store.frame(frame)?.is_some() {
            return Ok(Some(frame));
        }
        match lease {
            Some(lease) => break lease,
            // Its holder is adopting the session right now, or has died.
            None => thread::sleep(LOOK),
        }
    };
    // The copy comes first: a recorded frame must have one.
    let kept = checkpoint::keep(store.dir(), frame, frame.into(), &found);
    kept.map_err(while_trying("keep a copy of the transcript"))?;
    tool_results::keep(store.dir(), frame, session, &found)
        .map_err(while_trying("keep copies of the results of tools"))?;
    let new = NewFrame {
        id: frame,
        task,
        cwd,
        launch,
        limits: Limits::default(),
        baseline: None,
        started_from: None,
        name: None,
        on: None,
        pushed: None,
    };
    Ok(Some(store.create(NewChain::Adopted(&new, session), None)?))
}

/// Whether a frame was created from a session that agent-cli did not start: its first attempt continued something other than a
/// baseline.
pub(crate) fn was_adopted(store: &Store, frame: &Frame) -> Result<bool, RuntimeError> {
    if frame.parent.is_some() || frame.baseline.is_some() || frame.checkpoint.is_none() {
        return Ok(false);
    }
    Ok(store.attempts(frame.id)?.first().is_none_or(|first| first.resumed.is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::{self, attempt, new, reply};
    use crate::store::{Caller, NewAttempt};

    #[test]
    fn a_root_whose_first_attempt_continued_something_was_adopted() {
        let (_temp, store) = testing::store();
        let was_adopted = |id| was_adopted(&store, &store.frame(id).unwrap().unwrap()).unwrap();
        let run = |root, resumed| {
            let attempt = NewAttempt { resumed, ..attempt(Vec::new()) };
            store.begin(root, &attempt).unwrap();
            store.end(Caller { frame: root, attempt: attempt.id }, &reply("done"));
        };
        let adopted = SessionId::random();
        let of_user = store
            .create_root(NewChain::Adopted(&NewFrame { id: FrameId(adopted.0), ..new("a task") }, adopted))
            .unwrap();
        assert!(was_adopted(of_user), "it has not run");
        run(of_user, Some(adopted));
        assert!(was_adopted(of_user));
        let own = store.root();
        assert!(!was_adopted(own), "it has no conversation");
        run(own, None);
        assert!(!was_adopted(own));
    }
}
