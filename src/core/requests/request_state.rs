//! The states of a request, and the one function that moves a request between them.
//!
//! ```text
//!           resolve            deliver               keep
//!     Open ────────> Resolved ─────────> Delivering ──────> Delivered
//!      │  ^             │ ^                │  │  ^
//!      │  └─────────────┼─┴── give back ───┘  │  │
//!      └────────────────┼──── deliver ────────┼──┘
//!                       v                     v
//!                   Withdrawn <───────────────┘
//! ```
//!
//! A request for another agent's reply is delivered from `Open`: the child's end resolves it, and is only recorded with the
//! child. A question that expires goes from `Open` to `Expired`, which is like `Resolved`, except that there is no answer, so
//! it cannot be replaced.

use serde::{Deserialize, Serialize};

use crate::core::id::AttemptId;

/// The state of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum RequestState {
    /// It has no result, according to its own record.
    Open,
    /// It was answered, or what it waits for has happened.
    Resolved {
        /// The attempt in which a call ran that was approved once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        used_by: Option<AttemptId>,
    },
    /// It expired.
    Expired,
    /// An attempt was given the result. The end of the attempt decides whether its agent has it.
    Delivering {
        attempt: AttemptId,
        /// Whether it returns to resolved, not to open, if the attempt is not kept.
        resolved: bool,
        /// The progress of the call that returns the result.
        #[serde(default)]
        handover: Handover,
        /// As above.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        used_by: Option<AttemptId>,
        /// Whether it had expired.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        expired: bool,
    },
    /// Its agent has the result.
    Delivered {
        /// The attempt that was given it.
        attempt: AttemptId,
        /// As above.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        used_by: Option<AttemptId>,
        /// As above.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        expired: bool,
    },
    /// Its result is no longer needed.
    Withdrawn,
}

/// How an attempt receives a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Handover {
    /// In a prompt.
    #[default]
    Given,
    /// The agent has looked it up itself.
    LookedUp,
    /// The resumed call has yet to return it.
    ToReturn,
    /// It comes by standard input when the resumed call has been suspended again.
    ByInput,
    /// The resumed call has been told to return it: if the agent makes the same request again, that is a new one.
    Returned,
    /// The call has returned it, and the user's hooks have run on it.
    Shown,
    /// It is part of the result of a wait that joins its agent.
    Joined,
}

/// An event for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestEvent {
    /// It was answered, or what it waits for has happened.
    Resolve,
    /// It expired.
    Expire,
    /// The answer was replaced by another one.
    Replace,
    /// An attempt is given its result.
    Deliver {
        attempt: AttemptId,
        /// How the attempt receives it.
        handover: Handover,
        /// Whether it is a child's result.
        of_child: bool,
    },
    /// The attempt's resumed call has been told to return it.
    Return,
    /// The call has returned it.
    Show,
    /// The call that it approves runs in this attempt.
    Use { attempt: AttemptId },
    /// The attempt that was given the result is kept, so the result is delivered.
    Keep,
    /// The attempt that was given the result is not kept: it is delivered again.
    GiveBack,
    /// Its call was not suspended after all, or its attempt was discarded.
    Withdraw,
}

/// An event that the state does not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a request that is {state} cannot be {event}")]
pub struct IllegalRequestEvent {
    state: &'static str,
    event: &'static str,
}

impl RequestEvent {
    /// What happened to the request, as a participle.
    fn name(self) -> &'static str {
        match self {
            Self::Resolve => "resolved",
            Self::Expire => "expired",
            Self::Replace => "answered again",
            Self::Deliver { .. } => "delivered",
            Self::Return => "returned",
            Self::Show => "shown",
            Self::Use { .. } => "used",
            Self::Keep => "kept",
            Self::GiveBack => "given back",
            Self::Withdraw => "withdrawn",
        }
    }
}

impl RequestState {
    /// The state after `event`.
    ///
    /// Every pair that the diagram in the module's documentation does not show is an [`IllegalRequestEvent`].
    pub(crate) fn after(self, event: RequestEvent) -> Result<Self, IllegalRequestEvent> {
        use RequestEvent::{Deliver, Expire, GiveBack, Keep, Replace, Resolve, Return, Show, Use, Withdraw};
        let illegal = Err(IllegalRequestEvent { state: self.name(), event: event.name() });
        Ok(match (self, event) {
            (Self::Open, Resolve) | (Self::Resolved { used_by: None }, Replace) => Self::Resolved { used_by: None },
            (Self::Open, Expire) | (Self::Delivering { expired: true, .. }, GiveBack) => Self::Expired,
            (Self::Open, Deliver { attempt, handover, of_child: true }) => {
                Self::given(attempt, handover, false, None, false)
            }
            (Self::Resolved { used_by }, Deliver { attempt, handover, .. }) => {
                Self::given(attempt, handover, true, used_by, false)
            }
            (Self::Expired, Deliver { attempt, handover, .. }) => Self::given(attempt, handover, true, None, true),
            // An agent may read a result again that it was given.
            (Self::Delivering { attempt, .. }, Deliver { attempt: again, .. }) if attempt != again => return illegal,
            (same @ Self::Delivering { .. }, Deliver { .. }) => same,
            (Self::Delivering { attempt, resolved, handover, used_by, expired }, Return | Show) => {
                Self::Delivering { attempt, resolved, handover: handover.after(event), used_by, expired }
            }
            (Self::Resolved { used_by }, Use { attempt }) if is_free(used_by, attempt) => {
                Self::Resolved { used_by: Some(attempt) }
            }
            (Self::Delivering { attempt, resolved, handover, used_by, expired: false }, Use { attempt: user })
                if is_free(used_by, user) =>
            {
                Self::Delivering { attempt, resolved, handover, used_by: Some(user), expired: false }
            }
            (Self::Delivered { attempt, used_by, expired: false }, Use { attempt: user }) if is_free(used_by, user) => {
                Self::Delivered { attempt, used_by: Some(user), expired: false }
            }
            (Self::Delivering { attempt, used_by, expired, .. }, Keep) => Self::Delivered { attempt, used_by, expired },
            (Self::Delivering { resolved: true, used_by, .. }, GiveBack) => Self::Resolved { used_by },
            (Self::Delivering { resolved: false, .. }, GiveBack) => Self::Open,
            (Self::Open | Self::Resolved { .. } | Self::Expired | Self::Delivering { .. }, Withdraw) => Self::Withdrawn,
            _ => return illegal,
        })
    }

    /// Its name in lists and in the database.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Resolved { .. } => "resolved",
            Self::Expired => "expired",
            Self::Delivering { .. } => "delivering",
            Self::Delivered { .. } => "delivered",
            Self::Withdrawn => "withdrawn",
        }
    }

    /// Whether it was answered or has expired, or what it waits for has happened. A child's end is not recorded here, but in
    /// the child's own state.
    pub(crate) fn is_resolved(&self) -> bool {
        matches!(
            self,
            Self::Resolved { .. } | Self::Expired | Self::Delivering { resolved: true, .. } | Self::Delivered { .. }
        )
    }

    /// Whether it expired.
    pub(crate) fn is_expired(&self) -> bool {
        matches!(self, Self::Expired | Self::Delivering { expired: true, .. } | Self::Delivered { expired: true, .. })
    }

    fn given(
        attempt: AttemptId,
        handover: Handover,
        resolved: bool,
        used_by: Option<AttemptId>,
        expired: bool,
    ) -> Self {
        Self::Delivering { attempt, resolved, handover, used_by, expired }
    }
}

impl Handover {
    fn after(self, event: RequestEvent) -> Self {
        match (self, event) {
            (_, RequestEvent::Show) => Self::Shown,
            (Self::ToReturn | Self::ByInput, RequestEvent::Return) => Self::Returned,
            (same, _) => same,
        }
    }
}

/// A call that was approved once runs in one attempt, however often that attempt asks.
fn is_free(used_by: Option<AttemptId>, attempt: AttemptId) -> bool {
    used_by.is_none_or(|used_by| used_by == attempt)
}

#[cfg(test)]
mod tests;
