//! Changes of a frame's state that no attempt makes.

use rusqlite::Connection;

use crate::core::chain::frame_state::FrameState;
use crate::core::id::FrameId;
use crate::store::records::StateChange;
use crate::store::sqlite::database::codec;
use crate::store::sqlite::requests::{groups, handoffs};
use crate::store::sqlite::steering::{again, put_off};
use crate::store::sqlite::transaction::TxResult;

pub(crate) fn change_state(
    connection: &Connection,
    frame: FrameId,
    change: StateChange<'_>,
) -> TxResult<Option<FrameState>> {
    let now = codec::now();
    match change {
        StateChange::EndGroup => groups::end(connection, now, frame),
        StateChange::EndHandoff => handoffs::end(connection, now, frame),
        StateChange::TryAgain { top } => again::try_again(connection, now, frame, top).map(Some),
        StateChange::PutOff(why) => put_off::put_off(connection, now, frame, why),
    }
}
