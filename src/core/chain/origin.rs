//! Who did something, as far as the system tells.

use serde::{Deserialize, Serialize};

use crate::core::id::FrameId;

/// Who gave an answer: recorded with it, so that it can be found out later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The user's number.
    pub uid: u32,
    /// The user's name.
    pub(crate) user: Option<String>,
    /// The process.
    pub process: u32,
    /// The terminal that it was connected to; `None`: none.
    pub terminal: Option<String>,
    /// The nearest agent among the processes above it, of whatever state directory.
    pub agent: Option<FrameId>,
    /// The session of Claude Code in whose tool call it ran.
    pub claude_session: Option<String>,
}
