//! What people and agents above do to agents.

use crate::core::id::FrameId;
use crate::core::steering::message::Message;
use crate::core::steering::stop_order::Stop;
use crate::failpoint::Step;

/// What people and agents above want of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Steering {
    /// That it stops or rests.
    pub stop: Option<Stop>,
    /// What they have told it, in order.
    pub messages: Vec<Message>,
}

impl Steering {
    /// Whether its agent has not been given all that it was told.
    pub(crate) fn has_news(&self) -> bool {
        self.messages.iter().any(|message| message.delivered_in.is_none())
    }
}

/// What a stop has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ordered {
    /// The agents that run, which are to end now.
    pub running: Vec<FrameId>,
    /// Those that rest or are over now, because they did not run.
    pub ended: Vec<FrameId>,
}

/// What an agent is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// Something for its work, which goes on.
    Message,
    /// A new task, once it is over.
    Instruction,
}

/// What happens to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateChange<'a> {
    /// A group ends whose members are all over.
    EndGroup,
    /// A frame ends that handed off to one that has replied.
    EndHandoff,
    /// A frame is tried again that failed, was cancelled or backs off; one that rests goes on. `top`: what a person resumes.
    TryAgain { top: FrameId },
    /// A frame waits for its next try because its attempt could not begin: why.
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
