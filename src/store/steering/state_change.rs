//! Changes of a frame's state that no attempt makes.

use crate::core::chain::state::FrameState;
use crate::core::id::FrameId;
use crate::failpoint::Step;
use crate::store::attempts::put_off;
use crate::store::database::codec;
use crate::store::database::store::Store;
use crate::store::error::Result;
use crate::store::requests::groups;
use crate::store::steering::again;

/// What happens to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateChange<'a> {
    /// A group ends whose members are all over.
    EndGroup,
    /// A frame is tried again that failed, was cancelled or backs off; one that rests goes on. `top`: what a person resumes.
    TryAgain { top: FrameId },
    /// A frame waits for its next try because its attempt could not begin: why.
    PutOff(&'a str),
}

impl StateChange<'_> {
    fn step(self) -> Step {
        match self {
            Self::EndGroup => Step::EndAttempt,
            Self::TryAgain { .. } => Step::TryAgain,
            Self::PutOff(_) => Step::PutOff,
        }
    }
}

impl Store {
    /// Changes the state of a frame whose agent does not run. Returns its new state, or `None` if there is nothing to change: another
    /// process may have been faster.
    ///
    /// # Errors
    ///
    /// [`StoreError::Illegal`](crate::store::StoreError::Illegal) for a [`StateChange::TryAgain`] of what can run, runs or is done, [`StoreError::FailureDelivered`](crate::store::StoreError::FailureDelivered) for that of a
    /// child whose parent is being told of its failure;
    /// [`StoreError::UnknownFrame`](crate::store::StoreError::UnknownFrame), or a database that cannot be written.
    pub fn change_state(&self, frame: FrameId, change: StateChange<'_>) -> Result<Option<FrameState>> {
        self.write(change.step(), |connection| {
            let now = codec::now();
            match change {
                StateChange::EndGroup => groups::end(connection, now, frame),
                StateChange::TryAgain { top } => again::try_again(connection, now, frame, top).map(Some),
                StateChange::PutOff(why) => put_off::put_off(connection, now, frame, why),
            }
        })
    }
}
