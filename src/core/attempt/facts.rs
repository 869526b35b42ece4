//! Everything known about an attempt when it has ended, on which the [decision](crate::core::attempt::decision)
//! depends.

use crate::core::agent::reply_schema::ReplyShape;
use crate::core::attempt::continuation::Way;
use crate::core::attempt::ending::Ending;
use crate::core::attempt::salvaged::Salvage;
use crate::core::chain::frame::Trouble;
use crate::core::id::RequestId;
use crate::core::steering::stop_order::Stop;

/// What is known about an attempt when it has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// How the attempt ended.
    pub ending: Ending,
    /// Whether its frame has a checkpoint: its agent was woken, and the next attempt can fall back to it.
    pub has_checkpoint: bool,
    /// Whether its session begins with a summary of the one before.
    pub begins_afresh: bool,
    /// Whether it made requests or jobs whose results its agent has not been given, even if those exist already.
    pub has_requests: bool,
    /// Whether agents work in its background, or have ended, whose results its agent has not been given.
    pub has_background: bool,
    /// Whether one of its requests is for an approval: the agent was stopped at a call.
    pub awaits_approval: bool,
    /// The requests whose results were delivered but not seen: a hook or a rule replaced them, or its conversation lacks them.
    pub unseen: Vec<RequestId>,
    /// The requests whose results its agent has looked up and has perhaps not seen: its conversation lacks them. It may have used them
    /// in another way, and does not wait for them.
    pub looked_up: Vec<RequestId>,
    /// Results that were delivered to the agent.
    pub results: Vec<String>,
    /// Other texts that its agent was given: its prompt, its instructions.
    pub texts: Vec<String>,
    /// How much of its conversation can be continued from.
    pub salvage: Salvage,
    /// The tool calls whose outcome is missing from the conversation, one line each.
    pub uncertain_calls: Vec<String>,
    /// What its agent was told about the previous attempt.
    pub trouble: Option<Trouble>,
    /// How many attempts in a row ended before it with an agent that waits without a request.
    pub earlier_pauses: usize,
    /// The way in which it should have continued at a suspended call, without a prompt; `None`: it had a prompt, or this is
    /// unknown.
    pub silent: Option<Way>,
    /// Whether its process was ended from outside, perhaps before it had written down what it printed.
    pub was_killed: bool,
    /// Whether the run of the program that started it has ended.
    pub is_abandoned: bool,
    /// A stop of its agent that was recorded while it ran.
    pub stop: Option<Stop>,
    /// Whether its agent has not been given all of its messages.
    pub has_messages: bool,
    /// What ran in its agent's background after a reply, if this program has ended it.
    pub ended_beside: Vec<String>,
    /// What its reply is, given the schema of its agent's replies.
    pub shape: ReplyShape,
    /// Whether its agent has been told in this turn that a reply did not fit.
    pub was_corrected: bool,
    /// Whether its `claude` printed anything.
    pub spoke: bool,
    /// If its agent was asked for a summary of its conversation: what an earlier one lacked.
    pub summarises: Option<Vec<String>>,
}

impl Facts {
    /// Whether its agent may wait for something that was ended, and was not just told about such an end.
    pub(crate) fn is_cut_off(&self) -> bool {
        let was_told = self.trouble.as_ref().is_some_and(|trouble| !trouble.background.is_empty());
        !self.ended_beside.is_empty() && !was_told && self.stop.is_none() && self.salvage != Salvage::Nothing
    }

    /// The facts of a frame's first attempt that ended like this, and nothing else.
    pub fn from_ending(ending: Ending) -> Self {
        Self {
            ending,
            has_checkpoint: false,
            begins_afresh: false,
            has_requests: false,
            has_background: false,
            awaits_approval: false,
            unseen: Vec::new(),
            looked_up: Vec::new(),
            results: Vec::new(),
            texts: Vec::new(),
            salvage: Salvage::Whole,
            uncertain_calls: Vec::new(),
            trouble: None,
            earlier_pauses: 0,
            silent: None,
            was_killed: false,
            is_abandoned: false,
            stop: None,
            has_messages: false,
            ended_beside: Vec::new(),
            shape: ReplyShape::Free,
            was_corrected: false,
            spoke: true,
            summarises: None,
        }
    }
}
