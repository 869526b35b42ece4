//! The steps of a chain as one line each, and what can still happen in it, for people who follow it.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::core::chain::frame_state::FrameState;
use crate::core::chain::runnable::Attempted;
use crate::core::chain::tree::{Node, Tree};
use crate::core::chain::waiting_on::Blocking;
use crate::core::chain::waiting_on::shown_state::ShownState;
use crate::core::id::FrameId;
use crate::core::requests::request::External;
use crate::core::steering::stop_order::Stop;
use crate::core::text::escape;
use crate::core::text::time::{on_clock, time_until};
use crate::core::waits::scheduled::Scheduled;

/// A step of an agent: its name, and what happens.
pub(crate) fn step(id: FrameId, task: &str, what: &str) -> String {
    const LONGEST: usize = 40;
    let task = escape::one_line(task);
    let short: String = task.chars().take(LONGEST).collect();
    let short = escape::without_joiner(&short);
    let dots = if short.len() < task.len() { "…" } else { "" };
    format!("{} {short}{dots}: {what}", id.short())
}

/// The step with which an attempt has ended, in a run of the agent `top`.
/// `is_group`: whether `top` is a group, whose members are agents of that run.
pub(crate) fn end_step(
    tree: &Tree,
    node: &Node,
    top: FrameId,
    is_group: bool,
    now: Timestamp,
    zone: &TimeZone,
) -> String {
    let is_member = || is_group && node.parent == Some(top);
    let how = match ShownState::at_end(&node.state) {
        // Why is reported when the run ends.
        Some(state @ (ShownState::Failed | ShownState::Stopped)) if node.id == top || is_member() => {
            state.words(now, zone)
        }
        _ => ended(tree, node, now, zone),
    };
    step(node.id, &node.title, &how)
}

/// What an agent does after an attempt has ended: its state, in the words of lists, with the reason.
pub(crate) fn ended(tree: &Tree, node: &Node, now: Timestamp, zone: &TimeZone) -> String {
    let state = tree.shown_state_of(node, false, now);
    match &node.state {
        // The message says who stopped it.
        FrameState::Failed { failure } if state == ShownState::Stopped => failure.message.trim().to_owned(),
        FrameState::Failed { failure } => format!("failed: {}", failure.message.trim()),
        FrameState::Paused { .. } => node.stop.as_ref().map_or_else(|| state.words(now, zone), Stop::in_words),
        _ => waits(tree, node, state, now, zone),
    }
}

fn waits(tree: &Tree, node: &Node, state: ShownState, now: Timestamp, zone: &TimeZone) -> String {
    let mut said = state.words(now, zone);
    if let ShownState::Limit { until: at } | ShownState::Retry { at } = state {
        said = format!("{said} (in {})", time_until(at, now));
    }
    let mut awaited: Vec<String> = match tree.children_awaited_by(node) {
        0 => Vec::new(),
        1 => vec!["a child".to_owned()],
        children => vec![format!("{children} children")],
    };
    for blocker in tree.blockers_of(node, now) {
        match &blocker.what {
            what if state != ShownState::Waits && ShownState::blocked_by(what) == state => match what {
                // One approval is needed after the other.
                Blocking::Permission { tool, .. } if said == state.words(now, zone) => said = format!("{said} {tool}"),
                Blocking::Retry { why, .. } => said = format!("{said}, after: {}", why.trim()),
                _ => {}
            },
            what => {
                let reason = reason(what, now, zone);
                if !awaited.contains(&reason) {
                    awaited.push(reason);
                }
            }
        }
    }
    match (state, awaited.join(" and ")) {
        (_, awaited) if awaited.is_empty() => said,
        (ShownState::Waits, awaited) => format!("waits for {awaited}"),
        (_, awaited) => format!("{said}, and waits for {awaited}"),
    }
}

fn reason(what: &Blocking, now: Timestamp, zone: &TimeZone) -> String {
    match what {
        Blocking::Question { .. } => "an answer".to_owned(),
        Blocking::Permission { tool, .. } => format!("an approval of a call of {tool}"),
        Blocking::Plan { .. } => "an approval of its plan".to_owned(),
        Blocking::External { wait: External::Time(time), .. } => format!("a time in {}", time_until(*time, now)),
        Blocking::External { wait: External::Scheduled(Scheduled { at, .. }), .. } => {
            format!("a time that it set, in {}", time_until(*at, now))
        }
        Blocking::External { wait: External::Command(_), .. } => "a command to succeed".to_owned(),
        Blocking::External { wait, .. } => wait.in_words(|at| on_clock(at, now, zone)),
        Blocking::UsageLimit { resets_at } => format!("the usage limit to reset in {}", time_until(*resets_at, now)),
        Blocking::Retry { at, why, .. } => format!("a retry in {}, after: {}", time_until(*at, now), why.trim()),
        Blocking::Budget { .. } => "a larger budget".to_owned(),
        Blocking::Parallel { .. } | Blocking::ParallelTotal { .. } => "a free slot".to_owned(),
        Blocking::Paused { .. } => "a person to continue it".to_owned(),
        Blocking::Agent => "something that only the agent can judge".to_owned(),
    }
}

/// What can still happen in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChainOutlook {
    /// A process runs an agent in it.
    Runs,
    /// It can continue: a process may be about to do so.
    CanContinue,
    /// Nothing happens until something outside changes: each agent that waits, and what for.
    Waits(Vec<(FrameId, String)>),
    /// Its top is done, failed or was stopped.
    Over,
}

/// What can still happen in a tree. `runs`: whether a process runs a frame that is recorded as running.
pub(crate) fn outlook(tree: &Tree, runs: impl Fn(FrameId) -> bool, now: Timestamp, zone: &TimeZone) -> ChainOutlook {
    let nodes = tree.parents_first();
    let running: Vec<_> = nodes.iter().filter(|node| matches!(node.state, FrameState::Running { .. })).collect();
    if running.iter().any(|node| runs(node.id)) {
        return ChainOutlook::Runs;
    }
    if tree.get(tree.top()).is_none_or(|top| top.state.is_over()) {
        return ChainOutlook::Over;
    }
    if !running.is_empty()
        || !tree.runnable(&Attempted::default(), now).is_empty()
        || !tree.to_try_again().is_empty()
        || tree.has_frames_to_end()
    {
        return ChainOutlook::CanContinue;
    }
    let blocked = nodes.iter().filter(|node| !tree.blockers_of(node, now).is_empty());
    ChainOutlook::Waits(blocked.map(|node| (node.id, ended(tree, node, now, zone))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::chain::frame_state::{Failure, FailureKind, Wait};
    use crate::core::chain::tree::Node;
    use crate::core::chain::tree::testing::{node, request};
    use crate::core::requests::question_form::Form;
    use crate::core::requests::request::RequestKind;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn said(state: FrameState, kinds: Vec<RequestKind>) -> String {
        let id = FrameId::random();
        let requests = kinds.into_iter().map(|kind| request(id, kind)).collect();
        let node = Node { requests, ..node(id, None, state) };
        let tree = Tree::new(id, vec![node]);
        ended(&tree, tree.get(id).unwrap(), at(5), &TimeZone::UTC)
    }

    #[test]
    fn a_step_is_one_line_with_a_short_id() {
        let id = "4f2c1a90-0000-4000-8000-000000000000".parse().unwrap();
        assert_eq!(step(id, "ins1.md", "started"), "4f2c1a90 ins1.md: started");
        let long = format!("4f2c1a90 a⏎{}…: done", "b".repeat(38));
        assert_eq!(step(id, &format!("a\n{}", "b".repeat(99)), "done"), long);
    }

    #[test]
    fn every_end_has_its_words() {
        let failure = Failure { kind: FailureKind::Error, message: " boom\n".into() };
        assert_eq!(said(FrameState::Done, vec![]), "done");
        assert_eq!(said(FrameState::Failed { failure }, vec![]), "failed: boom");
        let stopped = Failure { kind: FailureKind::Stopped, message: "stopped by a person: later".into() };
        assert_eq!(said(FrameState::Failed { failure: stopped }, vec![]), "stopped by a person: later");
        assert_eq!(said(FrameState::Cancelled, vec![]), "interrupted");
        assert_eq!(said(FrameState::Ready, vec![]), "can continue");
        let waiting = |wait| FrameState::Waiting { wait };
        let ask = || RequestKind::Ask(Form::text("When?"));
        let permission =
            RequestKind::Permission { tool: "Bash".into(), input: serde_json::Value::Null, reason: None, place: None };
        assert_eq!(said(waiting(Wait::Requests), vec![ask(), ask()]), "asks");
        assert_eq!(said(waiting(Wait::Requests), vec![permission]), "approve? Bash");
        assert_eq!(said(waiting(Wait::Requests), vec![]), "can continue");
        let time = RequestKind::Wait(External::Time(at(7_205)));
        assert_eq!(said(waiting(Wait::Requests), vec![time, ask()]), "asks, and waits for a time in 2 h");
        let busy = Wait::Retry { tries: 1, why: "API overloaded (529)".into() };
        assert_eq!(said(waiting(busy), vec![]), "retry at 00:00 (in 25 s), after: API overloaded (529)");
        let limit = Wait::UsageLimit { resets_at: at(65), tries: 0 };
        assert_eq!(said(waiting(limit), vec![]), "limit until 00:01 (in 1 min)");
        assert_eq!(said(waiting(Wait::AgentDecides), vec![]), "can continue");
    }

    fn of(nodes: Vec<Node>, runs: bool) -> ChainOutlook {
        outlook(&Tree::new(nodes[0].id, nodes), |_| runs, Timestamp::UNIX_EPOCH, &TimeZone::UTC)
    }

    #[test]
    fn watching_ends_when_nothing_can_happen_without_others() {
        let id = FrameId::random();
        let running = || FrameState::Running { waited: None };
        assert_eq!(of(vec![node(id, None, running())], true), ChainOutlook::Runs);
        assert_eq!(of(vec![node(id, None, running())], false), ChainOutlook::CanContinue);
        assert_eq!(of(vec![node(id, None, FrameState::Ready)], false), ChainOutlook::CanContinue);
        assert_eq!(of(vec![node(id, None, FrameState::Done)], false), ChainOutlook::Over);
        let resets_at = Timestamp::from_second(60).unwrap();
        let limited = FrameState::Waiting { wait: Wait::UsageLimit { resets_at, tries: 0 } };
        let why = "limit until 00:01 (in 1 min)".to_owned();
        assert_eq!(of(vec![node(id, None, limited)], false), ChainOutlook::Waits(vec![(id, why)]));
        // A child may continue when its parent has failed.
        let child = node(FrameId::random(), Some(id), running());
        let failed = node(id, None, FrameState::Done);
        assert_eq!(of(vec![failed, child], true), ChainOutlook::Runs);
    }
}
