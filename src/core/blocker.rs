//! What a tree waits for, beyond the reach of its runner.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::id::{FrameId, RequestId};
use super::question::Choices;
use super::request::{External, Wish};
use super::state::{FrameState, Wait};
use super::tree::{Node, Tree};

/// Something that a tree waits for and that no process of `agent-cli` can bring about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Blocker {
    /// The frame that waits.
    pub frame: FrameId,
    /// Since when.
    pub since: Timestamp,
    /// What for.
    #[serde(flatten)]
    pub what: Blocking,
}

/// What a [`Blocker`] is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum Blocking {
    /// A person's answer.
    Question {
        /// The id to answer with.
        id: RequestId,
        /// The question.
        question: String,
        /// What it offers.
        #[serde(flatten)]
        choices: Option<Choices>,
    },
    /// A person's permission for a call.
    Permission {
        /// The id to answer with.
        id: RequestId,
        /// The tool that is called.
        tool: String,
        /// Its input.
        input: Value,
    },
    /// Something outside.
    External {
        /// What.
        wait: External,
    },
    /// A usage limit.
    UsageLimit {
        /// When it is lifted.
        resets_at: Timestamp,
    },
    /// Something that the agent alone can judge.
    Agent,
}

impl Tree {
    /// What the tree waits for, the deepest first.
    #[must_use]
    pub fn blockers(&self, now: Timestamp) -> Vec<Blocker> {
        self.leaves_up().into_iter().flat_map(|node| self.blockers_of(node, now)).collect()
    }

    /// What one frame waits for, its children not counted.
    #[must_use]
    pub fn blockers_of(&self, node: &Node, now: Timestamp) -> Vec<Blocker> {
        let FrameState::Waiting { wait } = &node.state else {
            return Vec::new();
        };
        let open = node.requests.iter().filter(|request| !self.is_over(request));
        let mut found: Vec<(Timestamp, Blocking)> = open
            .filter_map(|request| match &request.wish {
                Wish::Spawn { .. } => None,
                Wish::Ask { question, choices } => {
                    let (question, choices) = (question.clone(), choices.clone());
                    Some((request.made, Blocking::Question { id: request.id, question, choices }))
                }
                Wish::Permission { tool, input } => {
                    let (tool, input) = (tool.clone(), input.clone());
                    Some((request.made, Blocking::Permission { id: request.id, tool, input }))
                }
                Wish::Wait(wait) => Some((request.made, Blocking::External { wait: wait.clone() })),
            })
            .collect();
        match wait {
            Wait::Requests => {}
            Wait::UsageLimit { resets_at } if now >= *resets_at => {}
            Wait::UsageLimit { resets_at } => found.push((node.since, Blocking::UsageLimit { resets_at: *resets_at })),
            Wait::AgentDecides => found.push((node.since, Blocking::Agent)),
        }
        found.into_iter().map(|(since, what)| Blocker { frame: node.id, since, what }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::SessionId;
    use crate::core::request::Request;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn waiting(wait: Wait, asked: &[(&str, bool)]) -> Tree {
        let id = FrameId::random();
        let request = |(question, settled): &(&str, bool)| Request {
            id: RequestId::random(),
            frame: id,
            attempt: SessionId::from(id),
            call: None,
            wish: Wish::Ask { question: (*question).to_owned(), choices: None },
            settled: *settled,
            made: NOW,
        };
        let requests = asked.iter().map(request).collect();
        let state = FrameState::Waiting { wait };
        Tree::new(id, vec![Node { id, parent: None, title: String::new(), state, since: NOW, kept: true, requests }])
    }

    #[test]
    fn open_questions_block_and_answered_ones_do_not() {
        let blockers = waiting(Wait::Requests, &[("When?", false), ("Where?", true)]).blockers(NOW);
        assert_eq!(blockers.len(), 1);
        assert!(matches!(&blockers[0].what, Blocking::Question { question, .. } if question == "When?"));
    }

    #[test]
    fn a_usage_limit_blocks_until_its_time() {
        let resets_at = Timestamp::from_second(100).unwrap();
        let tree = waiting(Wait::UsageLimit { resets_at }, &[]);
        assert_eq!(tree.blockers(NOW)[0].what, Blocking::UsageLimit { resets_at });
        assert_eq!(tree.blockers(resets_at), []);
    }

    #[test]
    fn an_agent_that_decides_is_named() {
        assert_eq!(waiting(Wait::AgentDecides, &[]).blockers(NOW)[0].what, Blocking::Agent);
    }
}
