//! What is known of an attempt when it has ended: all that the [decision](crate::core::attempt::decision) on it depends on.

use crate::core::attempt::continuation::Way;
use crate::core::attempt::ending::Ending;
use crate::core::attempt::salvage::Salvage;
use crate::core::chain::frame::Trouble;
use crate::core::id::RequestId;

/// What is known of an attempt when it has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// How it ended.
    pub ending: Ending,
    /// Whether its frame has a checkpoint: its agent was woken, and the next attempt can fall back to it.
    pub has_checkpoint: bool,
    /// Whether requests stand that it made, or jobs, whose results its agent has not been given. They may be there.
    pub has_requests: bool,
    /// Whether one of them is for an approval: the agent was stopped at a call.
    pub awaits_approval: bool,
    /// The requests whose results it was given and has not seen, because a hook or a rule has put something in their place.
    pub unseen: Vec<RequestId>,
    /// The requests that it made itself and whose results its agent has looked up.
    pub looked_up: Vec<RequestId>,
    /// The results that its agent was given.
    pub results: Vec<String>,
    /// Whatever else its agent was told: its prompt, its instructions.
    pub texts: Vec<String>,
    /// What can be continued from.
    pub salvage: Salvage,
    /// The tool calls of which the conversation does not tell what came of them, a line each.
    pub uncertain_calls: Vec<String>,
    /// What its agent was told of the attempt before.
    pub trouble: Option<Trouble>,
    /// How many attempts in a row have ended before it with an agent that waits without a request.
    pub earlier_pauses: usize,
    /// In which way it was to go on at a suspended call, without a prompt; `None`: it had one, or nobody knows.
    pub silent: Option<Way>,
    /// Whether the run of the program that started it is over.
    pub is_abandoned: bool,
}

impl Facts {
    /// Those of a frame's first attempt that ended like this, and of which nothing else is to be said.
    #[must_use]
    pub fn of(ending: Ending) -> Self {
        Self {
            ending,
            has_checkpoint: false,
            has_requests: false,
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
            is_abandoned: false,
        }
    }
}
