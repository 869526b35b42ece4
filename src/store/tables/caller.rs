//! In whose name something is recorded.

use crate::core::id::{AttemptId, FrameId};

/// In whose name a request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The frame whose agent asks.
    pub frame: FrameId,
    /// The attempt in which it asks.
    pub attempt: AttemptId,
}
