//! Puts off a frame whose attempt could not even begin.

use rusqlite::Connection;

use crate::core::chain::frame::Frame;
use crate::core::chain::frame_state::{FrameEvent, FrameState};
use crate::core::events::log_entry::LogEntry;
use crate::core::id::FrameId;
use crate::store::sqlite::database::codec::At;
use crate::store::sqlite::tables::{events, frames, notifications};
use crate::store::sqlite::transaction::TxResult;

/// Has a frame wait for its next try because its attempt could not begin: why. What runs, backs off already or is over stays as
/// it is: another process was faster.
pub(crate) fn put_off(connection: &Connection, now: At, frame: FrameId, why: &str) -> TxResult<Option<FrameState>> {
    let before = frames::existing(connection, frame)?;
    if !can_be_put_off(&before, now.0) {
        return Ok(None);
    }
    let state = frames::advance(connection, &before, FrameEvent::PutOff(why.to_owned()), now.0)?;
    let entry = LogEntry::PutOff { why: why.to_owned(), from: before.state.clone(), to: state.clone() };
    events::append(connection, now, frame, &entry)?;
    notifications::note_state(connection, now, &before, &state, false)?;
    Ok(Some(state))
}

fn can_be_put_off(frame: &Frame, now: jiff::Timestamp) -> bool {
    match &frame.state {
        FrameState::Ready => true,
        FrameState::Waiting { wait } => wait.paused_until(frame.since, now).is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::chain::frame_state::Wait;
    use crate::core::notifications::occasion::Occasion;
    use crate::store::outbox::{Notifications, Subscribing, Subscription};
    use crate::store::records::StateChange;
    use crate::store::testing::{reply, store};

    #[test]
    fn a_frame_is_put_off_once_at_a_time_and_a_person_hears_of_it_once() {
        let (_temp, store) = store();
        let wanted = Subscription { config: "/c".into(), events: vec![Occasion::Failed] };
        store.outbox().subscribe(&Subscribing::To(wanted.clone())).unwrap();
        let root = store.root();
        for _ in 0..2 {
            store.change_state(root, StateChange::PutOff("no claude")).unwrap();
            let wait = Wait::Restart { tries: 1, why: "no claude".into() };
            assert_eq!(store.frame(root).unwrap().unwrap().state, FrameState::Waiting { wait });
        }
        store.try_again(root).unwrap();
        store.change_state(root, StateChange::PutOff("no claude")).unwrap();
        let told: Vec<_> =
            store.outbox().list(Notifications::Newest(9)).unwrap().into_iter().map(|told| told.status).collect();
        assert_eq!(told, ["pending"]);
        store.try_again(root).unwrap();
        let caller = store.start(root);
        store.change_state(root, StateChange::PutOff("no claude")).unwrap();
        assert_eq!(store.end(caller, &reply("done")), FrameState::Done);
        store.change_state(root, StateChange::PutOff("no claude")).unwrap();
        assert_eq!(store.frame(root).unwrap().unwrap().state, FrameState::Done);
        assert_eq!(store.outbox().claim(jiff::SignedDuration::ZERO).unwrap(), None, "it is no longer so");
    }
}
