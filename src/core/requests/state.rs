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
//! child. A question that nobody answers in time goes from `Open` to `Expired`, which is like `Resolved` but for its answer:
//! there is none, so it cannot be replaced.

use serde::{Deserialize, Serialize};

use crate::core::id::AttemptId;

/// Where a request is in its life.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum RequestState {
    /// It has no result, as far as its own record says.
    Open,
    /// It was answered, or what it waits for has happened.
    Resolved {
        /// The attempt in which a call ran that was approved once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        used_by: Option<AttemptId>,
    },
    /// Nobody answered it in time.
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
    /// Nobody waits for it any more.
    Withdrawn,
}

/// How an attempt receives a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Handover {
    /// In a prompt, or in a file that the agent has read.
    #[default]
    Given,
    /// The resumed call has yet to return it.
    ToReturn,
    /// The resumed call has been told to return it: if the agent makes the same request again, that is a new one.
    Returned,
    /// The call has returned it, and the user's hooks have run on it.
    Shown,
}

/// Something that happened to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestEvent {
    /// It was answered, or what it waits for has happened.
    Resolve,
    /// Its time is over, and nobody answered it.
    Expire,
    /// The answer was replaced by another one.
    Replace,
    /// An attempt is given its result.
    Deliver {
        attempt: AttemptId,
        /// Whether the attempt's resumed call returns it.
        to_return: bool,
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
    /// # Errors
    ///
    /// [`IllegalRequestEvent`] for every pair that the diagram in the module's documentation does not show.
    pub(crate) fn after(self, event: RequestEvent) -> Result<Self, IllegalRequestEvent> {
        use RequestEvent::{Deliver, Expire, GiveBack, Keep, Replace, Resolve, Return, Show, Use, Withdraw};
        let illegal = Err(IllegalRequestEvent { state: self.name(), event: event.name() });
        Ok(match (self, event) {
            (Self::Open, Resolve) | (Self::Resolved { used_by: None }, Replace) => Self::Resolved { used_by: None },
            (Self::Open, Expire) | (Self::Delivering { expired: true, .. }, GiveBack) => Self::Expired,
            (Self::Open, Deliver { attempt, to_return, of_child: true }) => {
                Self::given(attempt, to_return, false, None, false)
            }
            (Self::Resolved { used_by }, Deliver { attempt, to_return, .. }) => {
                Self::given(attempt, to_return, true, used_by, false)
            }
            (Self::Expired, Deliver { attempt, to_return, .. }) => Self::given(attempt, to_return, true, None, true),
            // An agent may read a result that it was given a second time.
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
    #[must_use]
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

    /// Whether it was answered or has expired, or what it waits for has happened. A child's end is not recorded here, but in the child's own
    /// state.
    #[must_use]
    pub(crate) fn is_resolved(&self) -> bool {
        matches!(
            self,
            Self::Resolved { .. } | Self::Expired | Self::Delivering { resolved: true, .. } | Self::Delivered { .. }
        )
    }

    /// Whether nobody answered it in time.
    #[must_use]
    pub(crate) fn is_expired(&self) -> bool {
        matches!(self, Self::Expired | Self::Delivering { expired: true, .. } | Self::Delivered { expired: true, .. })
    }

    fn given(attempt: AttemptId, to_return: bool, resolved: bool, used_by: Option<AttemptId>, expired: bool) -> Self {
        Self::Delivering { attempt, resolved, handover: Handover::new(to_return), used_by, expired }
    }
}

impl Handover {
    fn new(to_return: bool) -> Self {
        if to_return { Self::ToReturn } else { Self::Given }
    }

    fn after(self, event: RequestEvent) -> Self {
        match (self, event) {
            (_, RequestEvent::Show) => Self::Shown,
            (Self::ToReturn, RequestEvent::Return) => Self::Returned,
            (same, _) => same,
        }
    }
}

/// A call that was approved once runs in one attempt, however often that attempt asks.
fn is_free(used_by: Option<AttemptId>, attempt: AttemptId) -> bool {
    used_by.is_none_or(|used_by| used_by == attempt)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    fn id(n: u128) -> AttemptId {
        AttemptId(Uuid::from_u128(n))
    }

    fn deliver(n: u128) -> RequestEvent {
        RequestEvent::Deliver { attempt: id(n), to_return: false, of_child: false }
    }

    fn delivering(resolved: bool, handover: Handover, used_by: Option<AttemptId>) -> RequestState {
        RequestState::Delivering { attempt: id(1), resolved, handover, used_by, expired: false }
    }

    const RESOLVED: RequestState = RequestState::Resolved { used_by: None };

    fn used() -> RequestState {
        RequestState::Resolved { used_by: Some(id(1)) }
    }

    #[test]
    fn every_state_has_its_events() {
        use RequestEvent::{Expire, GiveBack, Keep, Replace, Resolve, Return, Show, Use, Withdraw};
        use RequestState::{Delivered, Expired, Open, Withdrawn};
        let of_child = RequestEvent::Deliver { attempt: id(1), to_return: false, of_child: true };
        let to_return = RequestEvent::Deliver { attempt: id(1), to_return: true, of_child: false };
        let uses = |n| Use { attempt: id(n) };
        let given = delivering(true, Handover::Given, None);
        let delivered = |used_by| Delivered { attempt: id(1), used_by, expired: false };
        let expired_given = |handover| RequestState::Delivering {
            attempt: id(1),
            resolved: true,
            handover,
            used_by: None,
            expired: true,
        };
        let rows = [
            (Open, Resolve, Some(RESOLVED)),
            (Open, of_child, Some(delivering(false, Handover::Given, None))),
            (Open, deliver(1), None),
            (Open, Withdraw, Some(Withdrawn)),
            (Open, Replace, None),
            (Open, uses(1), None),
            (Open, Keep, None),
            (Open, GiveBack, None),
            (RESOLVED, Resolve, None),
            (RESOLVED, Replace, Some(RESOLVED)),
            (RESOLVED, deliver(1), Some(given.clone())),
            (RESOLVED, to_return, Some(delivering(true, Handover::ToReturn, None))),
            (RESOLVED, uses(1), Some(used())),
            (RESOLVED, Withdraw, Some(Withdrawn)),
            (RESOLVED, Show, None),
            (RESOLVED, Keep, None),
            (used(), Replace, None),
            (used(), uses(1), Some(used())),
            (used(), uses(2), None),
            (used(), deliver(1), Some(delivering(true, Handover::Given, Some(id(1))))),
            (given.clone(), deliver(1), Some(given.clone())),
            (given.clone(), deliver(2), None),
            (given.clone(), Resolve, None),
            (given.clone(), Replace, None),
            (given.clone(), Return, Some(given.clone())),
            (delivering(true, Handover::ToReturn, None), Return, Some(delivering(true, Handover::Returned, None))),
            (delivering(true, Handover::Returned, None), Return, Some(delivering(true, Handover::Returned, None))),
            (given.clone(), Show, Some(delivering(true, Handover::Shown, None))),
            (given.clone(), uses(1), Some(delivering(true, Handover::Given, Some(id(1))))),
            (delivering(true, Handover::Given, Some(id(1))), uses(2), None),
            (given.clone(), Keep, Some(delivered(None))),
            (given.clone(), GiveBack, Some(RESOLVED)),
            (delivering(false, Handover::Shown, None), GiveBack, Some(Open)),
            (delivering(true, Handover::Shown, Some(id(1))), GiveBack, Some(used())),
            (given, Withdraw, Some(Withdrawn)),
            (delivered(None), uses(2), Some(delivered(Some(id(2))))),
            (delivered(Some(id(1))), uses(2), None),
            (delivered(None), Resolve, None),
            (delivered(None), Replace, None),
            (delivered(None), deliver(2), None),
            (delivered(None), GiveBack, None),
            (delivered(None), Keep, None),
            (delivered(None), Withdraw, None),
            (Open, Expire, Some(Expired)),
            (RESOLVED, Expire, None),
            (Expired, Expire, None),
            (Expired, Resolve, None),
            (Expired, Replace, None),
            (Expired, uses(1), None),
            (Expired, Withdraw, Some(Withdrawn)),
            (Expired, deliver(1), Some(expired_given(Handover::Given))),
            (expired_given(Handover::Shown), GiveBack, Some(Expired)),
            (expired_given(Handover::Shown), uses(1), None),
            (expired_given(Handover::Shown), Keep, Some(Delivered { attempt: id(1), used_by: None, expired: true })),
            (delivered(None), Expire, None),
            (Withdrawn, Expire, None),
            (Withdrawn, Resolve, None),
            (Withdrawn, of_child, None),
            (Withdrawn, uses(1), None),
            (Withdrawn, Withdraw, None),
        ];
        for (state, event, expected) in rows {
            assert_eq!(state.clone().after(event).ok(), expected, "{state:?} {event:?}");
        }
    }

    #[test]
    fn it_is_written_as_the_database_reads_it() {
        let json = |state: RequestState| serde_json::to_string(&state).unwrap();
        assert_eq!(json(RequestState::Open), r#"{"state":"open"}"#);
        assert_eq!(json(RESOLVED), r#"{"state":"resolved"}"#);
        let state = delivering(true, Handover::ToReturn, Some(id(2)));
        let text = json(state.clone());
        assert_eq!(
            text,
            r#"{"state":"delivering","attempt":"00000000-0000-0000-0000-000000000001","resolved":true,"handover":"to_return","used_by":"00000000-0000-0000-0000-000000000002"}"#
        );
        assert_eq!(serde_json::from_str::<RequestState>(&text).unwrap(), state);
    }

    fn events() -> impl Strategy<Value = RequestEvent> {
        use RequestEvent::{Expire, GiveBack, Keep, Replace, Resolve, Return, Show, Withdraw};
        let attempts = (0..3u128).prop_map(id);
        prop_oneof![
            prop::sample::select(vec![Resolve, Expire, Replace, Return, Show, Keep, GiveBack, Withdraw]),
            (attempts.clone(), any::<bool>(), any::<bool>())
                .prop_map(|(attempt, to_return, of_child)| RequestEvent::Deliver { attempt, to_return, of_child }),
            attempts.prop_map(|attempt| RequestEvent::Use { attempt }),
        ]
    }

    fn user(state: &RequestState) -> Option<AttemptId> {
        match state {
            RequestState::Resolved { used_by }
            | RequestState::Delivering { used_by, .. }
            | RequestState::Delivered { used_by, .. } => *used_by,
            RequestState::Open | RequestState::Expired | RequestState::Withdrawn => None,
        }
    }

    proptest! {
        #[test]
        fn a_result_is_delivered_once_and_used_in_one_attempt(events in prop::collection::vec(events(), 0..40)) {
            let mut state = RequestState::Open;
            for event in events {
                let before = state.clone();
                let Ok(after) = state.clone().after(event) else { continue };
                prop_assert!(!matches!(before, RequestState::Withdrawn));
                if matches!(before, RequestState::Delivered { .. }) {
                    prop_assert_eq!(after.name(), "delivered");
                }
                if let (Some(first), Some(then)) = (user(&before), user(&after)) {
                    prop_assert_eq!(first, then);
                }
                if let RequestState::Delivered { attempt, .. } = &after
                    && let RequestState::Delivering { attempt: given, .. } = &before
                {
                    prop_assert_eq!(attempt, given);
                }
                prop_assert!(!before.is_expired() || after.is_expired() || after == RequestState::Withdrawn);
                prop_assert!(before == RequestState::Open || !after.is_expired() || before.is_expired());
                prop_assert!(!before.is_resolved() || after.is_resolved() || after == RequestState::Withdrawn);
                state = after;
            }
        }
    }
}
