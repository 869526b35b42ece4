//! How people and agents above steer agents.

use crate::core::id::FrameId;
use crate::core::steering::message::Message;
use crate::core::steering::stop_order::Stop;
use crate::failpoint::Step;

/// Orders and messages for an agent, from people and agents above.
#[derive(Clone, Debug, PartialEq)]
pub struct Steering {
    /// The order to stop or pause.
    pub stop: Option<Stop>,
    /// Their messages, in order.
    pub messages: Vec<Message>,
}

impl Steering {
    /// Whether its agent has not been given all of its messages.
    pub(crate) fn has_news(&self) -> bool {
        self.messages.iter().any(|message| message.delivered_in.is_none())
    }
}

/// The effect of a stop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ordered {
    /// The running agents, which must end now.
    pub running: Vec<FrameId>,
    /// The agents that were not running, and are paused or have ended now.
    pub ended: Vec<FrameId>,
}

/// A text for an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// A message about its current work, which continues.
    Message,
    /// A new task for a finished agent.
    Instruction,
}

/// An event for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateChange<'a> {
    /// A group ends because all of its members have ended.
    EndGroup,
    /// A frame ends because it handed off to one that has replied.
    EndHandoff,
    /// A failed, cancelled or backing-off frame is retried, or a paused one continues. `top`: what a person resumes.
    TryAgain { top: FrameId },
    /// A frame waits for its next try because its attempt could not begin, for this reason.
    PutOff(&'a str),
}

impl StateChange<'_> {
    pub(crate) fn step(self) -> Step {
        match self {
            Self::EndGroup | Self::EndHandoff => Step::EndAttempt,
            Self::TryAgain { .. } => Step::TryAgain,
            Self::PutOff(_) => Step::PutOff,
        }
    }
}
