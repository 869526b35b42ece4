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

use crate::core::steering::stop_order::{Stop, StopKind};

/// The state of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum FrameState {
    /// It needs an attempt and waits for nothing.
    Ready,
    /// An attempt is running, or was running when its runner died.
    Running {
        /// What it will wait for again if the attempt is discarded; `None`: it was ready.
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
    /// It is paused until a person continues it.
    Paused {
        /// What it will wait for again then; `None`: nothing.
        waited: Option<Wait>,
    },
}

/// The state of an agent, by its name alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum AgentStatus {
    /// Nothing keeps it from running.
    Ready,
    /// It is running.
    Running,
    /// It waits, and nothing is running.
    Waiting,
    /// It is paused.
    Paused,
    /// It has replied.
    Done,
    /// It ended with an error, or was stopped.
    Failed,
    /// Interrupted by Ctrl-C.
    Cancelled,
}

impl AgentStatus {
    pub(crate) const ALL: [Self; 7] =
        [Self::Ready, Self::Running, Self::Waiting, Self::Paused, Self::Done, Self::Failed, Self::Cancelled];

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Paused => "paused",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What a waiting agent waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Wait {
    /// The requests that it made: answers, children, files, times, commands. Ends when all of them have ended.
    Requests,
    /// Its usage limit, until that time, or until after a backoff if it was not lifted then.
    UsageLimit {
        /// When the limit is lifted.
        resets_at: Timestamp,
        /// The number of consecutive tries that reached the limit again.
        #[serde(default)]
        tries: u32,
    },
    /// The next try after a temporary API error. [`crate::core::chain::backoff`] says how long that takes.
    Retry {
        /// The number of consecutive tries that met such an error.
        tries: u32,
        /// The last error, for people.
        why: String,
    },
    /// The next try after an attempt that could not start, died or failed. A person who resumes the chain need not wait for it.
    Restart {
        /// The number of consecutive tries with this outcome.
        tries: u32,
        /// The outcome of the last attempt, for people.
        why: String,
    },
    /// Something that only the agent can judge. Checking it costs an attempt.
    AgentDecides,
}

/// Why an agent failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Failure {
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// The message of `claude` or the agent, for people.
    pub message: String,
}

/// The kinds of failure that need different remedies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum FailureKind {
    /// `claude` refused to start, or to do any work: nothing was lost.
    Refused,
    /// The agent worked and then met an error: an API error, a budget, a limit of turns.
    Error,
    /// The agent replied that it does not know why it was resumed.
    Unhandled,
    /// It was stopped. Nothing is retried.
    Stopped,
}

/// An event for a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FrameEvent {
    /// An attempt begins.
    Begin,
    /// The attempt ended.
    End(Ended),
    /// An attempt could not even begin: why, for people.
    PutOff(String),
    /// A person retries a failed, cancelled or [pausing](crate::core::chain::backoff) frame.
    TryAgain {
        /// Whether some of its requests have no result yet: it waits for those first.
        open_requests: bool,
    },
    /// A frame that is not running must pause.
    Pause,
    /// It must continue.
    Continue,
    /// A frame that is not running must end.
    Stop(Failure),
    /// A person has a new instruction for an agent that has ended.
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
    /// It could not start or failed, and waits for its next try.
    BackOff {
        /// What happened, for people.
        why: String,
    },
    /// It died. The first time that may be by chance, and it is retried immediately.
    Die {
        /// How it died, for people.
        why: String,
    },
    /// It failed.
    Fail(Failure),
    /// It was stopped.
    Cancel,
    /// It pauses, and then continues as after this end.
    Pause(Box<Ended>),
    /// It needs another attempt, which continues from what this one did.
    Again,
    /// As if the attempt had not happened: it waits for the same thing again, or is ready again.
    Back,
    /// It wrote a summary and starts afresh: it waits for its requests as before, or is ready.
    Summarised,
}

/// An event that the state does not allow. It means a defect or a damaged database, never a user's mistake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an agent that is {state} cannot {event}")]
pub struct IllegalEvent {
    state: &'static str,
    event: &'static str,
}

impl Failure {
    /// The failure of an agent that was stopped.
    pub(crate) fn from_stop(stop: &Stop) -> Self {
        Self { kind: FailureKind::Stopped, message: stop.in_words() }
    }
}

impl Ended {
    /// This end, if a stop is recorded and the agent has not replied.
    pub(crate) fn stopped(self, stop: &Stop) -> Self {
        match stop.how {
            StopKind::Stop => Self::Fail(Failure::from_stop(stop)),
            StopKind::Pause => Self::Pause(Box::new(self)),
        }
    }

    /// Whether the attempt changed anything for its frame. An attempt that only has to be repeated, at once or after a pause,
    /// did not.
    pub(crate) fn is_progress(&self) -> bool {
        match self {
            Self::Wait(wait) => !wait.is_pause(),
            Self::Retry { .. } | Self::BackOff { .. } | Self::Die { .. } | Self::Back => false,
            Self::Pause(ended) => ended.is_progress(),
            Self::Done | Self::Fail(_) | Self::Cancel | Self::Again | Self::Summarised => true,
        }
    }
}

impl FrameState {
    /// The state after `event`.
    ///
    /// Every pair that the diagram in the module's documentation does not show is an [`IllegalEvent`].
    pub(crate) fn after(self, event: FrameEvent) -> Result<Self, IllegalEvent> {
        use FrameEvent::{Begin, Continue, End, Instruct, Pause, PutOff, Stop, TryAgain};
        match (self, event) {
            (Self::Ready, Begin) => Ok(Self::Running { waited: None }),
            (Self::Waiting { wait }, Begin) => Ok(Self::Running { waited: Some(wait) }),
            (running @ Self::Running { .. }, End(Ended::Pause(ended))) => Ok(running.after(End(*ended))?.paused()),
            (Self::Running { waited }, End(ended)) => Ok(match ended {
                Ended::Done => Self::Done,
                Ended::Wait(Wait::UsageLimit { resets_at, .. }) => {
                    let tries = match waited {
                        Some(Wait::UsageLimit { tries, .. }) => tries.saturating_add(1),
                        _ => 0,
                    };
                    Self::Waiting { wait: Wait::UsageLimit { resets_at, tries } }
                }
                Ended::Wait(wait) => Self::Waiting { wait },
                Ended::Retry { why } => {
                    let before = match waited {
                        Some(Wait::Retry { tries, .. }) => tries,
                        _ => 0,
                    };
                    Self::Waiting { wait: Wait::Retry { tries: before.saturating_add(1), why } }
                }
                Ended::BackOff { why } => backing_off(waited.as_ref(), 1, why),
                Ended::Die { why } => backing_off(waited.as_ref(), 0, why),
                Ended::Fail(failure) => Self::Failed { failure },
                Ended::Cancel => Self::Cancelled,
                Ended::Again => Self::Ready,
                Ended::Pause(_) => Self::Paused { waited: None },
                // A pause that has ended is not restored.
                Ended::Back => match waited {
                    Some(wait) if !wait.is_pause() => Self::Waiting { wait },
                    _ => Self::Ready,
                },
                Ended::Summarised => after_all(waited == Some(Wait::Requests)),
            }),
            (Self::Ready, PutOff(why)) => Ok(backing_off(None, 1, why)),
            (Self::Waiting { wait }, PutOff(why)) => Ok(backing_off(Some(&wait), 1, why)),
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

    /// The paused form of this state.
    fn paused(self) -> Self {
        match self {
            // A person who continues it need not wait.
            Self::Waiting { wait: Wait::Restart { .. } } | Self::Ready | Self::Cancelled => {
                Self::Paused { waited: None }
            }
            Self::Waiting { wait } => Self::Paused { waited: Some(wait) },
            state @ (Self::Running { .. } | Self::Done | Self::Failed { .. } | Self::Paused { .. }) => state,
        }
    }

    /// The state in one word, as people and `--json` see it.
    pub(crate) fn name(&self) -> &'static str {
        self.status().name()
    }

    pub(crate) fn status(&self) -> AgentStatus {
        match self {
            Self::Ready => AgentStatus::Ready,
            Self::Running { .. } => AgentStatus::Running,
            Self::Waiting { .. } => AgentStatus::Waiting,
            Self::Done => AgentStatus::Done,
            Self::Failed { .. } => AgentStatus::Failed,
            Self::Cancelled => AgentStatus::Cancelled,
            Self::Paused { .. } => AgentStatus::Paused,
        }
    }

    /// Whether it has neither ended nor an attempt.
    pub(crate) fn is_pending(&self) -> bool {
        matches!(self, Self::Ready | Self::Waiting { .. })
    }

    /// Whether its agent has ended its turn and waits for requests.
    pub(crate) fn waits_for_requests(&self) -> bool {
        matches!(self, Self::Waiting { wait: Wait::Requests })
    }

    /// Whether a parent need no longer wait for this frame.
    ///
    /// A cancelled or paused frame has not ended: a person may continue it.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self, Self::Done | Self::Failed { .. })
    }

    /// Whether it was stopped.
    pub(crate) fn was_stopped(&self) -> bool {
        matches!(self, Self::Failed { failure: Failure { kind: FailureKind::Stopped, .. } })
    }
}

/// The state of a frame that waited for this and then could not be tried, or was tried without success. `first`: how much that
/// counts the first time.
fn backing_off(waited: Option<&Wait>, first: u32, why: String) -> FrameState {
    let tries = match waited {
        Some(Wait::Restart { tries, .. }) => tries.saturating_add(1),
        _ => first,
    };
    FrameState::Waiting { wait: Wait::Restart { tries, why } }
}

/// The state of a frame that will be retried.
fn after_all(open_requests: bool) -> FrameState {
    if open_requests { FrameState::Waiting { wait: Wait::Requests } } else { FrameState::Ready }
}

impl FrameEvent {
    fn name(&self) -> &'static str {
        match self {
            Self::Begin => "begin an attempt",
            Self::End(_) => "end an attempt",
            Self::PutOff(_) => "be put off",
            Self::TryAgain { .. } => "be retried",
            Self::Pause => "be paused",
            Self::Continue => "be continued",
            Self::Stop(_) => "be stopped",
            Self::Instruct => "get a new instruction",
        }
    }
}

#[cfg(test)]
mod tests;
