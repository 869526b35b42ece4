//! The events that a person can be notified about.

use serde::{Deserialize, Serialize};

use crate::core::chain::frame_state::{FailureKind, FrameState, Wait};
use crate::core::requests::request::RequestKind;

/// An event that a person can be notified about. Each is a key of `[on]` in the config file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) enum Occasion {
    /// An agent asks a question.
    Question,
    /// An agent needs an approval, of a tool call or of its plan.
    Approval,
    /// A chain is done.
    Done,
    /// A chain failed, or one of its agents could not be started or died.
    Failed,
    /// An agent reached the usage limit of its account.
    Limit,
    /// Nothing has happened in a running agent for a long time.
    Stalled,
    /// A chain has spent its budget.
    Budget,
}

impl Occasion {
    pub(crate) const ALL: [Self; 7] =
        [Self::Question, Self::Approval, Self::Done, Self::Failed, Self::Limit, Self::Stalled, Self::Budget];

    /// Its name in the config file, in the environment of the command, and in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Question => "question",
            Self::Approval => "approval",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Limit => "limit",
            Self::Stalled => "stalled",
            Self::Budget => "budget",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|occasion| occasion.name() == name)
    }

    /// The event of a request; `None`: no person must answer it.
    pub(crate) fn of_request(kind: &RequestKind) -> Option<Self> {
        match kind {
            RequestKind::Ask { .. } => Some(Self::Question),
            RequestKind::Permission { .. } | RequestKind::Plan(_) => Some(Self::Approval),
            RequestKind::Spawn { .. } | RequestKind::Wait(_) => None,
        }
    }

    /// The event of a frame that has entered this state. The outcome of an agent below the root is reported to the agent above
    /// it. `out_of_time`: whether its timeout has stopped it; every other stop was ordered by a person or an agent.
    pub(crate) fn of_state(state: &FrameState, is_root: bool, out_of_time: bool) -> Option<Self> {
        match state {
            FrameState::Done if is_root => Some(Self::Done),
            FrameState::Failed { failure } if is_root && (failure.kind != FailureKind::Stopped || out_of_time) => {
                Some(Self::Failed)
            }
            FrameState::Waiting { wait: Wait::UsageLimit { .. } } => Some(Self::Limit),
            // The agent above it is not told: it continues once the cause is fixed.
            FrameState::Waiting { wait: Wait::Restart { tries: 1, .. } } => Some(Self::Failed),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::chain::frame_state::Failure;

    #[test]
    fn every_name_names_one() {
        for occasion in Occasion::ALL {
            assert_eq!(Occasion::named(occasion.name()), Some(occasion));
            assert_eq!(serde_json::to_value(occasion).unwrap(), occasion.name());
        }
        assert_eq!(Occasion::named("stop"), None);
    }

    #[test]
    fn a_person_is_told_how_a_chain_ends_unless_somebody_stopped_it() {
        let failed = |kind| FrameState::Failed { failure: Failure { kind, message: String::new() } };
        let limit = FrameState::Waiting { wait: Wait::UsageLimit { resets_at: jiff::Timestamp::UNIX_EPOCH, tries: 0 } };
        let restart = |tries| FrameState::Waiting { wait: Wait::Restart { tries, why: "no claude".into() } };
        for (state, is_root, out_of_time, expected) in [
            (FrameState::Done, true, false, Some(Occasion::Done)),
            (FrameState::Done, false, false, None),
            (failed(FailureKind::Error), true, false, Some(Occasion::Failed)),
            (failed(FailureKind::Error), false, false, None),
            (failed(FailureKind::Stopped), true, false, None),
            (failed(FailureKind::Stopped), true, true, Some(Occasion::Failed)),
            (limit.clone(), true, false, Some(Occasion::Limit)),
            (limit, false, false, Some(Occasion::Limit)),
            (restart(1), false, false, Some(Occasion::Failed)),
            (restart(2), false, false, None),
            (FrameState::Cancelled, true, false, None),
            (FrameState::Waiting { wait: Wait::Requests }, true, false, None),
        ] {
            assert_eq!(Occasion::of_state(&state, is_root, out_of_time), expected, "{state:?}");
        }
    }
}
