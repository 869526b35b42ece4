//! What a tree waits for that its runner cannot provide.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::core::agent::usage::rounded_usd;
use crate::core::chain::admission::NotAdmitted;
use crate::core::chain::frame_state::{AgentStatus, FrameState, Wait};
use crate::core::chain::runnable::Attempted;
use crate::core::chain::tree::{Node, Tree};
use crate::core::id::{FrameId, RequestId};
use crate::core::requests::approval::call_place::CallPlace;
use crate::core::requests::proposed_plan::ProposedPlan;
use crate::core::requests::question_form::Form;
use crate::core::requests::question_form::answer_file::AnswerFileContent;
use crate::core::requests::request::{External, Request, RequestKind};
use crate::core::waits::outlook::outlook;
use crate::core::waits::words::{self, ConditionState};

pub(crate) mod shown_state;

/// Something outside its processes that a chain waits for.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Blocker {
    /// The agent that waits.
    #[serde(rename = "agent")]
    pub frame: FrameId,
    /// When it began to wait.
    pub since: Timestamp,
    #[serde(flatten)]
    pub what: Blocking,
}

/// The kind of a [`Blocker`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "for", rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) enum Blocking {
    /// A person's answer.
    Question {
        /// The id to answer with.
        id: RequestId,
        #[serde(flatten)]
        form: Form,
    },
    /// A person's permission for a call.
    Permission {
        /// The id to answer with.
        id: RequestId,
        /// The tool that is called.
        tool: String,
        /// Its input.
        input: Value,
        /// Why a user's hook asks for it, if one does.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Where it acts, as far as known.
        #[serde(skip_serializing_if = "Option::is_none")]
        place: Option<CallPlace>,
    },
    /// A person's approval of a plan.
    Plan {
        /// The id to answer with.
        id: RequestId,
        /// The plan.
        #[serde(flatten)]
        plan: ProposedPlan,
    },
    /// Something outside the chain.
    External {
        /// What.
        wait: External,
        /// Its conditions and their progress.
        conditions: Vec<ConditionState>,
    },
    /// A usage limit.
    UsageLimit {
        /// When it is lifted.
        resets_at: Timestamp,
    },
    /// The next try, after a temporary API error or a failed attempt.
    Retry {
        /// When it is due.
        at: Timestamp,
        /// The number of consecutive failed tries.
        tries: u32,
        /// The last error.
        why: String,
    },
    /// A budget that has been spent.
    Budget {
        /// The budget, in US dollars.
        max_usd: f64,
        /// What the chain has spent.
        spent_usd: f64,
    },
    /// The end of one of the chain's agents, because the maximum number is running.
    Parallel {
        /// The maximum.
        most: u32,
    },
    /// The end of any agent, because the maximum number over all chains is running.
    ParallelTotal {
        /// How many may run.
        most: u32,
    },
    /// A person who continues a paused agent.
    Paused {
        /// What to resume.
        id: FrameId,
        /// Who paused it, and why.
        said: String,
    },
    /// Something that only the agent can judge.
    Agent,
}

impl Tree {
    /// The status of the whole chain, in the words for the states of agents: it is running as long as one of its agents is, and
    /// if it only waits for a person to continue an agent, its status is that agent's.
    pub(crate) fn status(&self, now: Timestamp) -> AgentStatus {
        let nodes = self.parents_first();
        if nodes.iter().any(|node| matches!(node.state, FrameState::Running { .. })) {
            return AgentStatus::Running;
        }
        let top = self.get(self.top()).map_or(AgentStatus::Done, |top| top.state.status());
        if self.has_ended() {
            return top;
        }
        if nodes.iter().any(|node| node.state == FrameState::Cancelled && self.is_awaited(node)) {
            return AgentStatus::Cancelled;
        }
        let blockers = self.blockers(now);
        let is_paused = |blocker: &Blocker| matches!(blocker.what, Blocking::Paused { .. });
        let all_paused = !blockers.is_empty() && blockers.iter().all(is_paused);
        let continued = || nodes.iter().find(|node| node.is_continued()).map_or(top, |node| node.state.status());
        match top {
            _ if all_paused => AgentStatus::Paused,
            AgentStatus::Done | AgentStatus::Failed => continued(),
            _ => top,
        }
    }

    /// What the tree waits for, deepest first.
    pub(crate) fn blockers(&self, now: Timestamp) -> Vec<Blocker> {
        self.leaves_up().into_iter().flat_map(|node| self.blockers_of(node, now)).collect()
    }

    /// What one frame waits for, not counting its children.
    pub(crate) fn blockers_of(&self, node: &Node, now: Timestamp) -> Vec<Blocker> {
        if let (FrameState::Paused { .. }, Some(stop)) = (&node.state, &node.stop) {
            // Resuming the top continues agents that were paused with one above it.
            let id = if self.get(stop.of).is_some() { stop.of } else { self.top() };
            let what = Blocking::Paused { id, said: stop.in_words() };
            return vec![Blocker { frame: node.id, since: node.since, what }];
        }
        let not_admitted = self.not_admitted(node, now).map(|why| (node.since, Blocking::from(why)));
        let wait = match &node.state {
            FrameState::Waiting { wait } => Some(wait),
            // Its process may linger in a call that asks a person.
            FrameState::Running { .. } => None,
            _ => {
                return not_admitted.into_iter().map(|(since, what)| Blocker { frame: node.id, since, what }).collect();
            }
        };
        let asks = |request: &Request| !matches!(request.kind, RequestKind::Wait(_));
        let open = node.requests.iter().filter(|request| !self.is_over(request) && (wait.is_some() || asks(request)));
        let mut found: Vec<(Timestamp, Blocking)> = open
            .filter_map(|request| match &request.kind {
                RequestKind::Spawn { .. } => None,
                RequestKind::Ask(form) => {
                    Some((request.made, Blocking::Question { id: request.id, form: form.clone() }))
                }
                RequestKind::Permission { tool, input, reason, place } => {
                    let (tool, input, reason, place) = (tool.clone(), input.clone(), reason.clone(), place.clone());
                    Some((request.made, Blocking::Permission { id: request.id, tool, input, reason, place }))
                }
                RequestKind::Plan(plan) => Some((request.made, Blocking::Plan { id: request.id, plan: plan.clone() })),
                RequestKind::Wait(wait) => {
                    let conditions = words::states(wait, &request.progress, now);
                    Some((request.made, Blocking::External { wait: wait.clone(), conditions }))
                }
            })
            .collect();
        match wait.map(|wait| (wait, wait.paused_until(node.since, now))) {
            Some((Wait::UsageLimit { .. }, Some(resets_at))) => {
                found.push((node.since, Blocking::UsageLimit { resets_at }));
            }
            Some((Wait::Retry { tries, why } | Wait::Restart { tries, why }, Some(at))) => {
                found.push((node.since, Blocking::Retry { at, tries: *tries, why: why.clone() }));
            }
            Some((Wait::AgentDecides, _)) => found.push((node.since, Blocking::Agent)),
            Some((Wait::Requests | Wait::UsageLimit { .. } | Wait::Retry { .. } | Wait::Restart { .. }, _)) | None => {}
        }
        found.extend(not_admitted);
        found.into_iter().map(|(since, what)| Blocker { frame: node.id, since, what }).collect()
    }

    fn not_admitted(&self, node: &Node, now: Timestamp) -> Option<NotAdmitted> {
        self.can_run(node, &Attempted::default(), now).then(|| self.admission(now).refuse(node)).flatten()
    }
}

impl From<NotAdmitted> for Blocking {
    fn from(why: NotAdmitted) -> Self {
        match why {
            NotAdmitted::Budget { max_usd, spent_usd } => Self::Budget { max_usd, spent_usd: rounded_usd(spent_usd) },
            NotAdmitted::UsageLimit { resets_at } => Self::UsageLimit { resets_at },
            NotAdmitted::Parallel { most } => Self::Parallel { most },
            NotAdmitted::ParallelTotal { most } => Self::ParallelTotal { most },
        }
    }
}

impl Tree {
    /// The next time after `now` at which a pause ends, a question expires, or a scheduled time arrives. `since`: when commands
    /// without an interval were last due.
    pub(crate) fn next_by_time(&self, attempted: &Attempted, since: Timestamp, now: Timestamp) -> Option<Timestamp> {
        // An account that has reached its usage limit affects agents anywhere in the chain.
        let pauses = self.all().flat_map(|node| [pause_ends(node), attempted.skipped_until(node)]).flatten();
        let waits = self.all().flat_map(|node| &node.requests).filter_map(|request| waits_until(request, since, now));
        pauses.chain(waits).filter(|time| *time > now).min()
    }
}

fn pause_ends(node: &Node) -> Option<Timestamp> {
    match &node.state {
        FrameState::Waiting { wait } => wait.pause_ends(node.since),
        _ => None,
    }
}

fn waits_until(request: &Request, since: Timestamp, now: Timestamp) -> Option<Timestamp> {
    match &request.kind {
        _ if request.state.is_resolved() => None,
        RequestKind::Wait(wait) => outlook(wait, &request.progress, since, now, |_| false).next,
        RequestKind::Ask(form) => {
            let counts_at = form.answer_file.as_ref().and_then(|file| match file.content {
                AnswerFileContent::Soon { counts_at } => Some(counts_at),
                _ => None,
            });
            counts_at.into_iter().chain(form.expires_at).min()
        }
        RequestKind::Permission { .. } | RequestKind::Plan(_) | RequestKind::Spawn { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::chain::tree::testing::node;
    use crate::core::id::AttemptId;
    use crate::core::requests::request::Request;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn waiting(wait: Wait, asked: &[(&str, bool)]) -> Tree {
        let id = FrameId::random();
        let request = |(question, resolved): &(&str, bool)| Request {
            id: RequestId::random(),
            frame: id,
            attempt: AttemptId::random(),
            call: None,
            kind: RequestKind::Ask(Form::text(question)),
            state: if *resolved {
                crate::core::requests::request_state::RequestState::Resolved { used_by: None }
            } else {
                crate::core::requests::request_state::RequestState::Open
            },
            made: NOW,
            progress: Default::default(),
        };
        let requests = asked.iter().map(request).collect();
        Tree::new(id, vec![Node { requests, ..node(id, None, FrameState::Waiting { wait }) }])
    }

    #[test]
    fn open_questions_block_and_answered_ones_do_not() {
        let blockers = waiting(Wait::Requests, &[("When?", false), ("Where?", true)]).blockers(NOW);
        assert_eq!(blockers.len(), 1);
        assert!(matches!(&blockers[0].what, Blocking::Question { form, .. } if form.question == "When?"));
    }

    #[test]
    fn a_usage_limit_blocks_until_its_time() {
        let resets_at = Timestamp::from_second(100).unwrap();
        let tree = waiting(Wait::UsageLimit { resets_at, tries: 0 }, &[]);
        assert_eq!(tree.blockers(NOW)[0].what, Blocking::UsageLimit { resets_at });
        assert_eq!(tree.blockers(resets_at), []);
    }

    #[test]
    fn an_agent_that_decides_is_named() {
        assert_eq!(waiting(Wait::AgentDecides, &[]).blockers(NOW)[0].what, Blocking::Agent);
    }
}

#[cfg(test)]
mod tests_of_time {
    use uuid::Uuid;

    use super::*;
    use crate::core::chain::frame_state::Wait;
    use crate::core::chain::tree::testing::node;
    use crate::core::id::{AttemptId, FrameId, RequestId};
    use crate::core::requests::question_form::Form;
    use crate::core::requests::request_state::RequestState;
    use crate::core::waits::conditions::External;
    use crate::core::waits::wait_progress::{CheckResult, WaitProgress};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// When something happens after 20 s to an agent that has waited for this for 5 s, and tried its second condition at 10 s.
    fn next(wait: Wait, kind: Option<RequestKind>, state: RequestState) -> Option<i64> {
        let id = FrameId(Uuid::from_u128(1));
        let mut progress = WaitProgress::default();
        progress.note_try(1, CheckResult::NotYet(String::new()), at(10));
        let request = |kind| Request {
            id: RequestId::random(),
            frame: id,
            attempt: AttemptId::random(),
            call: None,
            kind,
            state,
            made: at(0),
            progress,
        };
        let requests = kind.map(request).into_iter().collect();
        let node = Node { since: at(5), requests, ..node(id, None, FrameState::Waiting { wait }) };
        let tree = Tree::new(id, vec![node]);
        tree.next_by_time(&Attempted::default(), at(10), at(20)).map(Timestamp::as_second)
    }

    #[test]
    fn pauses_times_commands_and_questions_are_waited_for_by_the_clock() {
        let open = |kind| next(Wait::Requests, Some(kind), RequestState::Open);
        let expires = |second| RequestKind::Ask(Form { expires_at: Some(at(second)), ..Form::text("When?") });
        let command = External::Any(vec![External::File("/f".into()), External::Command("true".into())]);
        assert_eq!(next(Wait::Retry { tries: 1, why: String::new() }, None, RequestState::Open), Some(35));
        assert_eq!(next(Wait::Requests, None, RequestState::Open), None);
        assert_eq!([open(expires(30)), open(expires(20))], [Some(30), None]);
        assert_eq!(open(RequestKind::Wait(External::Time(at(25)))), Some(25));
        assert_eq!(open(RequestKind::Wait(command)), Some(70));
        let resolved = RequestState::Resolved { used_by: None };
        assert_eq!(next(Wait::Requests, Some(expires(30)), resolved), None);
    }
}
