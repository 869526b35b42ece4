//! The states of a frame, and the one function that moves a frame between them.
//!
//! Live runs and recovery apply the same events, so there is only one way to reach a state.
//!
//! ```text
//!   ┌──────────── end ──────────────┐
//!   v                               │
//! Ready ──begin──> Running ──end──> ┴ Done | Waiting | Failed | Cancelled | Paused
//!   ^                 ^                       │          │         │
//!   │                 └──────── begin ────────┘          │         │
//!   └──────────────────── try again ─────────────────────┴─────────┘
//!
//! Ready | Waiting | Cancelled ──pause──> Paused ──continue──> Ready | Waiting
//! Ready | Waiting | Cancelled | Paused ──stop──> Failed
//! Done | Failed ──instruct──> Ready
//! ```

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Where a frame is in its life.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum FrameState {
    /// It needs an attempt and waits for nothing.
    Ready,
    /// An attempt runs, or ran when its runner died.
    Running {
        /// What the frame waits for again if the attempt is discarded; `None`: it was ready.
        waited: Option<Wait>,
    },
    /// It waits, without a process.
    Waiting {
        /// What for.
        wait: Wait,
    },
    /// It has replied. This state is final.
    Done,
    /// Its last attempt failed. A retry continues from the checkpoint.
    Failed {
        /// How and why.
        failure: Failure,
    },
    /// A person interrupted the program that ran it. A retry continues from the checkpoint.
    Cancelled,
    /// Somebody wants it to rest until they continue it.
    Paused {
        /// What it waits for again then; `None`: nothing.
        waited: Option<Wait>,
    },
}

/// What a waiting frame waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum Wait {
    /// The requests that it made: answers, children, files, times, commands. Over when all of them are over.
    Requests,
    /// Its usage limit. Over at that time.
    UsageLimit {
        /// When the limit is lifted.
        resets_at: Timestamp,
    },
    /// The next try after a temporary API error. [`crate::core::chain::backoff`] says how long that takes.
    Retry {
        /// The number of consecutive tries that met such an error.
        tries: u32,
        /// What the last one met, for people.
        why: String,
    },
    /// Something that only the agent can judge. Checking it costs an attempt.
    AgentDecides,
}

/// Why a frame failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// What `claude` or the agent said, for people.
    pub message: String,
}

/// The kinds of failure that need different remedies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// `claude` refused to start, or to do any work: nothing was lost.
    Refused,
    /// The agent worked and then met an error: an API error, a budget, a limit of turns.
    Error,
    /// The agent said that it does not know why it was resumed.
    Unhandled,
    /// Somebody stopped it. Nothing is tried again.
    Stopped,
}

/// Something that happened to a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameEvent {
    /// An attempt begins.
    Begin,
    /// The attempt ended.
    End(Ended),
    /// Somebody wants to retry a failed, cancelled or [pausing](crate::core::chain::backoff) frame.
    TryAgain {
        /// Whether some of its requests have no result yet: it waits for those first.
        open_requests: bool,
    },
    /// Somebody wants a frame to rest that does not run.
    Pause,
    /// They want it to go on.
    Continue,
    /// Somebody wants a frame to be over that does not run.
    Stop(Failure),
    /// A person has a new instruction for an agent that is over.
    Instruct,
}

/// What the end of an attempt does to the frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It replied.
    Done,
    /// It waits for this.
    Wait(Wait),
    /// It met a temporary API error and waits for its next try.
    Retry {
        /// The error, for people.
        why: String,
    },
    /// It failed.
    Fail(Failure),
    /// It was stopped.
    Cancel,
    /// It rests, and then goes on as after this end.
    Pause(Box<Ended>),
    /// It needs another attempt, which continues from what this one did.
    Again,
    /// As if the attempt had not happened: it waits for the same thing again, or is ready again.
    Back,
}

/// An event that the state does not allow. It means a defect or a damaged database, never a user's mistake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame that is {state} cannot {event}")]
pub struct IllegalEvent {
    state: &'static str,
    event: &'static str,
}

impl FrameState {
    /// The state after `event`.
    ///
    /// # Errors
    ///
    /// [`IllegalEvent`] for every pair that the diagram in the module's documentation does not show.
    pub fn after(self, event: FrameEvent) -> Result<Self, IllegalEvent> {
        use FrameEvent::{Begin, Continue, End, Instruct, Pause, Stop, TryAgain};
        match (self, event) {
            (Self::Ready, Begin) => Ok(Self::Running { waited: None }),
            (Self::Waiting { wait }, Begin) => Ok(Self::Running { waited: Some(wait) }),
            (running @ Self::Running { .. }, End(Ended::Pause(ended))) => Ok(running.after(End(*ended))?.paused()),
            (Self::Running { waited }, End(ended)) => Ok(match ended {
                Ended::Done => Self::Done,
                Ended::Wait(wait) => Self::Waiting { wait },
                Ended::Retry { why } => {
                    let before = match waited {
                        Some(Wait::Retry { tries, .. }) => tries,
                        _ => 0,
                    };
                    Self::Waiting { wait: Wait::Retry { tries: before.saturating_add(1), why } }
                }
                Ended::Fail(failure) => Self::Failed { failure },
                Ended::Cancel => Self::Cancelled,
                Ended::Again => Self::Ready,
                Ended::Pause(_) => Self::Paused { waited: None },
                // A pause that is over is not restored.
                Ended::Back => match waited {
                    Some(wait) if !wait.is_pause() => Self::Waiting { wait },
                    _ => Self::Ready,
                },
            }),
            (Self::Waiting { wait }, TryAgain { open_requests }) if wait.is_pause() => Ok(after_all(open_requests)),
            (Self::Failed { .. } | Self::Cancelled, TryAgain { open_requests }) => Ok(after_all(open_requests)),
            (state @ (Self::Ready | Self::Waiting { .. } | Self::Cancelled), Pause) => Ok(state.paused()),
            (Self::Paused { waited }, Continue) => Ok(waited.map_or(Self::Ready, |wait| Self::Waiting { wait })),
            (Self::Ready | Self::Waiting { .. } | Self::Cancelled | Self::Paused { .. }, Stop(failure)) => {
                Ok(Self::Failed { failure })
            }
            (Self::Done | Self::Failed { .. }, Instruct) => Ok(Self::Ready),
            (state, event) => Err(IllegalEvent { state: state.name(), event: event.name() }),
        }
    }

    /// The state of a frame that is to rest in this one.
    fn paused(self) -> Self {
        match self {
            Self::Waiting { wait } => Self::Paused { waited: Some(wait) },
            Self::Ready | Self::Cancelled => Self::Paused { waited: None },
            state @ (Self::Running { .. } | Self::Done | Self::Failed { .. } | Self::Paused { .. }) => state,
        }
    }

    /// The state in one word, as people and `--json` see it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Running { .. } => "running",
            Self::Waiting { .. } => "waiting",
            Self::Done => "done",
            Self::Failed { .. } => "failed",
            Self::Cancelled => "cancelled",
            Self::Paused { .. } => "paused",
        }
    }

    /// Whether it has neither ended nor an attempt: what it waits for may come.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        matches!(self, Self::Ready | Self::Waiting { .. })
    }

    /// Whether a parent need no longer wait for this frame.
    ///
    /// A cancelled or paused frame is not over: a person may continue it.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Done | Self::Failed { .. })
    }

    /// Whether somebody stopped it.
    #[must_use]
    pub fn was_stopped(&self) -> bool {
        matches!(self, Self::Failed { failure: Failure { kind: FailureKind::Stopped, .. } })
    }
}

/// The state of a frame that is to be retried.
fn after_all(open_requests: bool) -> FrameState {
    if open_requests { FrameState::Waiting { wait: Wait::Requests } } else { FrameState::Ready }
}

impl FrameEvent {
    fn name(&self) -> &'static str {
        match self {
            Self::Begin => "begin an attempt",
            Self::End(_) => "end an attempt",
            Self::TryAgain { .. } => "be retried",
            Self::Pause => "be paused",
            Self::Continue => "be continued",
            Self::Stop(_) => "be stopped",
            Self::Instruct => "get a new instruction",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states() -> [FrameState; 8] {
        let failure = Failure { kind: FailureKind::Error, message: "api error".into() };
        [
            FrameState::Ready,
            FrameState::Running { waited: None },
            FrameState::Running { waited: Some(Wait::AgentDecides) },
            FrameState::Waiting { wait: Wait::AgentDecides },
            FrameState::Done,
            FrameState::Failed { failure },
            FrameState::Cancelled,
            FrameState::Paused { waited: None },
        ]
    }

    fn allowed(event: &FrameEvent) -> Vec<&'static str> {
        let names = states().into_iter().filter(|state| state.clone().after(event.clone()).is_ok());
        let mut names: Vec<_> = names.map(|state| state.name()).collect();
        names.dedup();
        names
    }

    #[test]
    fn what_rests_goes_on_where_it_was() {
        for before in [FrameState::Ready, FrameState::Waiting { wait: Wait::Requests }] {
            let paused = before.clone().after(FrameEvent::Pause).unwrap();
            assert_eq!(paused.name(), "paused");
            assert_eq!(paused.after(FrameEvent::Continue), Ok(before.clone()));
            let running = before.clone().after(FrameEvent::Begin).unwrap();
            let paused = running.clone().after(FrameEvent::End(Ended::Pause(Box::new(Ended::Back)))).unwrap();
            assert_eq!(paused.after(FrameEvent::Continue), Ok(before));
            let asked = Ended::Pause(Box::new(Ended::Wait(Wait::AgentDecides)));
            let paused = running.after(FrameEvent::End(asked)).unwrap();
            assert_eq!(paused, FrameState::Paused { waited: Some(Wait::AgentDecides) });
        }
        assert_eq!(allowed(&FrameEvent::Pause), ["ready", "waiting", "cancelled"]);
        assert_eq!(allowed(&FrameEvent::Continue), ["paused"]);
    }

    #[test]
    fn what_does_not_run_and_is_not_over_is_stopped_at_once() {
        let failure = Failure { kind: FailureKind::Stopped, message: "stopped by a person".into() };
        assert_eq!(allowed(&FrameEvent::Stop(failure.clone())), ["ready", "waiting", "cancelled", "paused"]);
        let stopped = FrameState::Cancelled.after(FrameEvent::Stop(failure)).unwrap();
        assert!(stopped.was_stopped() && stopped.is_over());
    }

    #[test]
    fn only_what_is_over_gets_a_new_instruction() {
        assert_eq!(allowed(&FrameEvent::Instruct), ["done", "failed"]);
        assert_eq!(FrameState::Done.after(FrameEvent::Instruct), Ok(FrameState::Ready));
    }

    #[test]
    fn an_attempt_begins_where_nothing_runs_and_nothing_is_final() {
        let names: Vec<_> =
            states().into_iter().filter(|s| s.clone().after(FrameEvent::Begin).is_ok()).map(|s| s.name()).collect();
        assert_eq!(names, ["ready", "waiting"]);
    }

    #[test]
    fn only_a_running_attempt_ends() {
        for ended in [Ended::Done, Ended::Wait(Wait::Requests), Ended::Cancel, Ended::Again, Ended::Back] {
            for state in states() {
                let running = matches!(state, FrameState::Running { .. });
                assert_eq!(state.after(FrameEvent::End(ended.clone())).is_ok(), running);
            }
        }
    }

    #[test]
    fn a_discarded_attempt_leaves_the_frame_as_it_was() {
        for before in [FrameState::Ready, FrameState::Waiting { wait: Wait::AgentDecides }] {
            let running = before.clone().after(FrameEvent::Begin).unwrap();
            assert_eq!(running.after(FrameEvent::End(Ended::Back)), Ok(before));
        }
    }

    #[test]
    fn tries_are_counted_until_one_succeeds() {
        let retry = |state: FrameState| {
            let running = state.after(FrameEvent::Begin).unwrap();
            running.after(FrameEvent::End(Ended::Retry { why: "529".into() })).unwrap()
        };
        let failed = |tries| FrameState::Waiting { wait: Wait::Retry { tries, why: "529".into() } };
        let waiting = FrameState::Waiting { wait: Wait::Requests };
        assert_eq!([retry(FrameState::Ready), retry(waiting.clone())], [failed(1), failed(1)]);
        assert_eq!(retry(failed(1)), failed(2));
        let running = failed(7).after(FrameEvent::Begin).unwrap();
        assert_eq!(retry(running.after(FrameEvent::End(Ended::Wait(Wait::Requests))).unwrap()), failed(1));
    }

    #[test]
    fn a_pause_is_not_gone_back_to_and_can_be_ended() {
        let resets_at = Timestamp::UNIX_EPOCH;
        for wait in [Wait::UsageLimit { resets_at }, Wait::Retry { tries: 3, why: String::new() }] {
            let paused = FrameState::Waiting { wait };
            let running = paused.clone().after(FrameEvent::Begin).unwrap();
            assert_eq!(running.after(FrameEvent::End(Ended::Back)), Ok(FrameState::Ready));
            let again = |open_requests| paused.clone().after(FrameEvent::TryAgain { open_requests });
            assert_eq!(again(false), Ok(FrameState::Ready));
            assert_eq!(again(true), Ok(FrameState::Waiting { wait: Wait::Requests }));
        }
        assert!(states()[3].clone().after(FrameEvent::TryAgain { open_requests: false }).is_err());
    }

    #[test]
    fn done_is_final() {
        for event in [FrameEvent::Begin, FrameEvent::End(Ended::Back), FrameEvent::TryAgain { open_requests: false }] {
            assert!(FrameState::Done.after(event).is_err());
        }
    }

    #[test]
    fn what_failed_waits_for_its_open_requests_before_it_is_tried_again() {
        let again = |open_requests| FrameState::Cancelled.after(FrameEvent::TryAgain { open_requests });
        assert_eq!(again(true), Ok(FrameState::Waiting { wait: Wait::Requests }));
        assert_eq!(again(false), Ok(FrameState::Ready));
    }

    #[test]
    fn an_illegal_event_says_what_was_tried() {
        let error = FrameState::Done.after(FrameEvent::Begin).unwrap_err();
        assert_eq!(error.to_string(), "a frame that is done cannot begin an attempt");
    }
}
