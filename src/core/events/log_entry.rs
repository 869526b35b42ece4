//! An entry of the log of all changes. The names of its kinds, and their fields, are those of `show --json`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::core::agent::launch::Launch;
use crate::core::chain::frame_state::FrameState;
use crate::core::chain::limits::Limits;
use crate::core::id::{AttemptId, FrameId, MessageId, RequestId, SessionId};
use crate::core::requests::request::RequestKind;
use crate::core::steering::origin::Origin;
use crate::core::steering::stop_order::By;

/// What happened to a frame. `from` and `to` are its states before and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "detail", rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum LogEntry {
    Created {
        parent: Option<FrameId>,
        title: String,
        to: FrameState,
        checkpoint: Option<AttemptId>,
    },
    /// It was created elsewhere, and is below this agent from now on.
    Joined {
        parent: FrameId,
    },
    /// Its agent has started a chain of its own.
    Detached {
        attempt: AttemptId,
        chain: FrameId,
        title: String,
    },
    /// It never ran, and no agent waits for it any more.
    Deleted {
        parent: FrameId,
    },
    Began {
        attempt: AttemptId,
        session: SessionId,
        resumed: Option<SessionId>,
        runner: u32,
        /// The requests whose results the attempt was given.
        delivering: Vec<RequestId>,
        /// The requests whose result is in the conversation at its call without `claude` printing it.
        placed: Vec<RequestId>,
        mode: Option<String>,
        from: FrameState,
        to: FrameState,
    },
    /// An attempt ended, or a group, which has no attempts.
    Ended {
        #[serde(skip_serializing_if = "Option::is_none")]
        attempt: Option<AttemptId>,
        outcome: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        kept: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        from: FrameState,
        to: FrameState,
    },
    /// An attempt could not begin.
    PutOff {
        why: String,
        from: FrameState,
        to: FrameState,
    },
    TriedAgain {
        from: FrameState,
        to: FrameState,
    },
    /// It was paused, and continues.
    Continued {
        from: FrameState,
        to: FrameState,
    },
    Paused {
        from: FrameState,
        to: FrameState,
        by: By,
        reason: Option<String>,
    },
    Stopped {
        from: FrameState,
        to: FrameState,
        by: By,
        reason: Option<String>,
    },
    /// It had ended, and continues for a message.
    Instructed {
        from: FrameState,
        to: FrameState,
    },
    Message {
        message: MessageId,
        by: By,
    },
    Requested {
        request: RequestId,
        attempt: AttemptId,
        detail: Box<RequestKind>,
    },
    /// The file of a posted question has changed.
    Reworded {
        request: RequestId,
        detail: Box<RequestKind>,
    },
    Answered {
        request: RequestId,
        answer: String,
        by: Origin,
    },
    AnswerReplaced {
        request: RequestId,
        answer: String,
        replaced: String,
        by: Origin,
    },
    Expired {
        request: RequestId,
        expires_at: Option<Timestamp>,
        default: Option<String>,
    },
    WaitOver {
        request: RequestId,
    },
    Withdrawn {
        request: RequestId,
    },
    /// The call that a person has allowed is running.
    PermissionUsed {
        request: RequestId,
        attempt: AttemptId,
    },
    /// Its chain continues again, and another one has its name.
    NameLost {
        name: String,
        to: FrameId,
    },
    Limits {
        from: Limits,
        to: Limits,
    },
    Launch {
        from: Box<Launch>,
        to: Box<Launch>,
    },
    /// A person's continuation of its session was moved to another session.
    SetAside {
        session: SessionId,
        other: SessionId,
    },
    /// A person wants it to start afresh: its agent writes a summary next.
    AfreshWanted {},
    /// Its agent has written the summary with which its new session begins.
    Afresh {
        attempt: AttemptId,
        /// The session that has ended.
        session: SessionId,
        new_session: SessionId,
    },
    /// An entry that this version does not know, as a newer one recorded it.
    #[serde(untagged)]
    Other(RecordedEntry),
}

/// An entry as it is recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RecordedEntry {
    /// What happened, in one word.
    pub kind: String,
    /// Its other fields.
    pub detail: Value,
}

impl LogEntry {
    /// Fails if it contains a path that is not valid UTF-8.
    pub(crate) fn recorded(&self) -> serde_json::Result<RecordedEntry> {
        RecordedEntry::deserialize(serde_json::to_value(self)?)
    }

    /// The request that it is about.
    pub(crate) fn request(&self) -> Option<RequestId> {
        match self {
            Self::Requested { request, .. }
            | Self::Reworded { request, .. }
            | Self::Answered { request, .. }
            | Self::AnswerReplaced { request, .. }
            | Self::Expired { request, .. }
            | Self::WaitOver { request }
            | Self::Withdrawn { request }
            | Self::PermissionUsed { request, .. } => Some(*request),
            _ => None,
        }
    }

    /// The attempt in which it happened.
    pub(crate) fn attempt(&self) -> Option<AttemptId> {
        match self {
            Self::Began { attempt, .. }
            | Self::Requested { attempt, .. }
            | Self::PermissionUsed { attempt, .. }
            | Self::Detached { attempt, .. }
            | Self::Afresh { attempt, .. } => Some(*attempt),
            Self::Ended { attempt, .. } => *attempt,
            _ => None,
        }
    }

    /// Who gave the answer that it describes.
    pub(crate) fn origin(&self) -> Option<&Origin> {
        match self {
            Self::Answered { by, .. } | Self::AnswerReplaced { by, .. } => Some(by),
            _ => None,
        }
    }

    /// The session to which a person's continuation was moved, if this is such an entry.
    pub(crate) fn set_aside(&self) -> Option<SessionId> {
        match self {
            Self::SetAside { other, .. } => Some(*other),
            _ => None,
        }
    }
}

impl From<RecordedEntry> for LogEntry {
    fn from(recorded: RecordedEntry) -> Self {
        let tagged = serde_json::json!({"kind": recorded.kind, "detail": recorded.detail});
        Self::deserialize(tagged).unwrap_or(Self::Other(recorded))
    }
}

#[cfg(test)]
pub(crate) mod tests;
