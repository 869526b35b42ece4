//! Finds agents that should start afresh. A person is told, and decides.

use serde::Serialize;

use crate::core::chain::frame::Frame;
use crate::core::chain::frame_state::FrameState;
use crate::core::chain::tree::Node;
use crate::core::id::FrameId;
use crate::core::steering::fresh_start::AfreshReason;
use crate::runtime::RuntimeError;
use crate::runtime::delivery::stale_files;
use crate::store::Store;

/// How many agents of a chain are checked: the files that they know are read.
const MOST: usize = 20;

/// An agent that should start afresh.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct AfreshAdvice {
    pub(crate) agent: FrameId,
    #[serde(flatten)]
    pub(crate) reason: AfreshReason,
}

impl AfreshAdvice {
    /// The command that a person can run.
    pub(crate) fn command(&self) -> String {
        format!("agent-cli resume {} --afresh", self.agent.short())
    }
}

/// The agents below `top` that continue and should start afresh.
pub(crate) fn below(store: &Store, top: FrameId) -> Result<Vec<AfreshAdvice>, RuntimeError> {
    let tree = store.tree(top)?;
    let continues = |node: &&Node| node.kept && !node.is_group && node.handed_off_to().is_none();
    let agents: Vec<_> = tree.leaves_up().into_iter().filter(continues).map(|node| node.id).take(MOST).collect();
    of_agents(store, &agents)
}

/// Selects the agents that should start afresh.
pub(crate) fn of_agents(store: &Store, agents: &[FrameId]) -> Result<Vec<AfreshAdvice>, RuntimeError> {
    let mut advice = Vec::new();
    for agent in agents {
        let reason = store.frame(*agent)?.map_or(Ok(None), |frame| of_agent(store, &frame))?;
        advice.extend(reason.map(|reason| AfreshAdvice { agent: *agent, reason }));
    }
    Ok(advice)
}

/// Why an agent should start afresh, if it continues and should.
pub(crate) fn of_agent(store: &Store, frame: &Frame) -> Result<Option<AfreshReason>, RuntimeError> {
    let continues = !frame.state.is_over() && !matches!(frame.state, FrameState::Running { .. });
    if frame.checkpoint.is_none() || frame.summary_lacks().is_some() || !continues {
        return Ok(None);
    }
    let last = store.attempts(frame.id)?.into_iter().find(|attempt| Some(attempt.id) == frame.checkpoint);
    Ok(AfreshReason::new(last.and_then(|last| last.context), || stale_files::how_many_changed(store, frame)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::agent::usage::context_size::Context;
    use crate::core::attempt::decision::decide;
    use crate::core::attempt::facts::Facts;
    use crate::store::testing::{self, attempt_end, reply};
    use crate::store::{AttemptEnd, Caller};

    fn ends(store: &Store, caller: Caller, words: &str, tokens: u64) {
        let decision = decide(&Facts::from_ending(reply(words)));
        let context = Some(Context { tokens, window: 200_000 });
        store.end_attempt(&AttemptEnd { context, ..attempt_end(caller, &decision) }).unwrap();
    }

    #[test]
    fn only_an_agent_that_continues_is_advised_to_start_afresh() {
        let (_temp, store) = testing::store();
        let root = store.root();
        assert_eq!(below(&store, root).unwrap(), []);
        let full = AfreshAdvice { agent: root, reason: AfreshReason::Context { tokens: 170_000, window: 200_000 } };
        for (words, tokens, expected) in [
            ("SGN_PEND_STARTED", 10_000, vec![]),
            ("SGN_PEND_STARTED", 170_000, vec![full.clone()]),
            ("done", 170_000, vec![]),
        ] {
            let caller = store.start(root);
            assert_eq!(below(&store, root).unwrap(), [], "it runs");
            ends(&store, caller, words, tokens);
            assert_eq!(below(&store, root).unwrap(), expected, "{words}, {tokens}");
        }
        assert_eq!(full.command(), format!("agent-cli resume {} --afresh", root.short()));
    }
}
