//! The status of a chain, for the caller of `spawn` and `resume`.

use jiff::Timestamp;

use crate::core::chain::frame_state::{Failure, FailureKind, FrameState};
use crate::core::chain::group::GroupMember;
use crate::core::chain::runnable::Attempted;
use crate::core::chain::tree::{Node, Tree};
use crate::core::chain::waiting_on::{Blocker, Blocking};
use crate::core::id::FrameId;
use crate::runtime::RuntimeError;
use crate::runtime::requests::posted::filing;
use crate::runtime::run::driven::{Busy, Driven};
use crate::runtime::run::frame_error::{FrameError, FrameErrorKind};
use crate::runtime::run::{background, external_waits};
use crate::store::{Attempts, Driving, Lease, Replies, Store};

/// The status of a chain in which nothing can run.
#[derive(Debug)]
pub(crate) enum ChainStatus {
    Done(String),
    Waits {
        new: bool,
        blockers: Vec<Blocker>,
        /// Frames that are run by other processes.
        busy: Vec<Busy>,
        /// What went wrong, and what an agent will be told when its other waits have ended.
        errors: Vec<FrameError>,
    },
    /// Its top is a group whose agents have all ended, and some of which failed.
    PartlyFailed {
        replies: String,
        errors: Vec<FrameError>,
    },
    /// An error that no agent in the chain can handle.
    Failed(Vec<FrameError>),
    Interrupted,
}

/// The status of the chain if nothing in it can run; `None` if the chain must be run to find out.
///
/// A poll does no more than this: it starts no process and no async runtime, and writes nothing unless an external wait has
/// ended.
pub(crate) fn poll(store: &Store, top: FrameId) -> Result<Option<ChainStatus>, RuntimeError> {
    let tree = store.tree(top)?;
    if tree.get(top).is_some_and(|node| node.state.is_over()) {
        filing::file_ended(store, Some(top))?;
    }
    match tree.get(top).map(|node| &node.state) {
        None => return Ok(None),
        Some(FrameState::Done) => return Ok(latest_reply(store, top)?.map(ChainStatus::Done)),
        Some(state) if state.was_stopped() => return Ok(Some(stopped(store, top, state)?)),
        Some(_) => {}
    }
    let now = Timestamp::now();
    let Some(mut tree) = at_rest(store, tree, now)? else { return Ok(None) };
    if !tree.to_try_again().is_empty() || !tree.to_restart().is_empty() || !tree.to_continue().is_empty() {
        return Ok(None);
    }
    let mut busy = Vec::new();
    for node in tree.leaves_up().into_iter().filter(|node| runs(node)) {
        if is_free(store, node.id)? {
            return Ok(None);
        }
        let runner = store.attempts(Attempts::RunningOf(node.id))?.pop().map(|attempt| attempt.runner);
        busy.push(Busy { frame: node.id, runner });
    }
    external_waits::observe(store, &mut tree, now)?;
    let blockers = tree.blockers(now);
    let is_held_up = blockers.iter().any(|blocker| matches!(blocker.what, Blocking::Parallel { .. }));
    // Frames whose runner died no longer count towards the limits, wherever in the chain they are.
    if is_held_up && any_is_free(store, &tree)? {
        return Ok(None);
    }
    Ok(Some(ChainStatus::Waits { new: false, blockers, busy, errors: Vec::new() }))
}

/// What the agent of a frame last replied, to anyone.
fn latest_reply(store: &Store, frame: FrameId) -> Result<Option<String>, RuntimeError> {
    let later = store.steering(frame)?.messages.into_iter().rev().find_map(|message| message.reply);
    Ok(match later {
        Some(reply) => Some(reply),
        None => store.replies(frame)?.reply,
    })
}

/// The status of a chain whose top was stopped.
fn stopped(store: &Store, top: FrameId, state: &FrameState) -> Result<ChainStatus, RuntimeError> {
    let Replies { reply, members } = store.replies(top)?;
    if let Some(replies) = reply.filter(|_| !members.is_empty()) {
        return Ok(ChainStatus::PartlyFailed { replies, errors: members.iter().filter_map(error).collect() });
    }
    let FrameState::Failed { failure } = state else { return Ok(ChainStatus::Interrupted) };
    Ok(ChainStatus::Failed(vec![FrameError { frame: top, kind: FrameErrorKind::Stopped(failure.message.clone()) }]))
}

/// Whether the attempt of a running frame can be concluded: it has no runner, or its runner has abandoned it.
fn is_free(store: &Store, frame: FrameId) -> Result<bool, RuntimeError> {
    if !Lease::is_held(store.dir(), frame)? {
        return Ok(true);
    }
    let (Some(known), Some(attempt)) = (store.frame(frame)?, store.attempts(Attempts::RunningOf(frame))?.pop()) else {
        return Ok(false);
    };
    background::is_abandoned(store, &known, &attempt)
}

/// Whether any attempt in the chain can be concluded.
fn any_is_free(store: &Store, tree: &Tree) -> Result<bool, RuntimeError> {
    for node in tree.all().filter(|node| runs(node)) {
        if is_free(store, node.id)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether something in the chain of `root` can run now. Unlike [`poll`], this skips failed agents, and chains that another
/// process runs.
pub(crate) fn can_continue(store: &Store, root: FrameId) -> Result<bool, RuntimeError> {
    if Driving::is_marked(store.dir(), root)? {
        return Ok(false);
    }
    match at_rest(store, store.tree(root)?, Timestamp::now())? {
        Some(tree) => any_is_free(store, &tree),
        None => Ok(true),
    }
}

/// The chain after checking what it waits for outside. `None`: an agent or a command in it can run now, or a group must end.
fn at_rest(store: &Store, mut tree: Tree, now: Timestamp) -> Result<Option<Tree>, RuntimeError> {
    if external_waits::without_processes(store, &tree, now)? {
        return Ok(None);
    }
    if external_waits::has_outside_waits(&tree) {
        tree = store.tree(tree.top())?;
    }
    let is_at_rest = tree.runnable(&Attempted::default(), now).is_empty() && !tree.has_frames_to_end();
    Ok(is_at_rest.then_some(tree))
}

fn runs(node: &Node) -> bool {
    matches!(node.state, FrameState::Running { .. })
}

/// The status of the chain after a run.
pub(crate) fn after(store: &Store, top: FrameId, driven: Driven) -> Result<ChainStatus, RuntimeError> {
    let mut tree = store.tree(top)?;
    match (tree.get(top).map(|node| &node.state), latest_reply(store, top)?) {
        (Some(state), _) if state.was_stopped() => return stopped(store, top, state),
        (Some(FrameState::Done), Some(reply)) => return Ok(ChainStatus::Done(reply)),
        (Some(FrameState::Failed { .. }), Some(replies)) => {
            let errors = store.replies(top)?.members.iter().filter_map(error).collect();
            return Ok(ChainStatus::PartlyFailed { replies, errors });
        }
        _ => {}
    }
    if driven.interrupted {
        return Ok(ChainStatus::Interrupted);
    }
    let now = Timestamp::now();
    external_waits::observe(store, &mut tree, now)?;
    let mut blockers = tree.blockers(now);
    blockers.extend(driven.no_place.map(|(frame, why)| Blocker { frame, since: now, what: why.into() }));
    let failed = |frame| driven.errors.iter().any(|error| error.frame == frame && !error.kind.leaves_a_wait());
    if !driven.errors.is_empty() && blockers.iter().all(|blocker| failed(blocker.frame)) {
        return Ok(ChainStatus::Failed(driven.errors));
    }
    let waits = |frame| tree.get(frame).is_some_and(|node| matches!(node.state, FrameState::Waiting { .. }));
    // Nothing would have been started if the budget had been spent before.
    let over_budget = |blocker: &Blocker| matches!(blocker.what, Blocking::Budget { .. });
    let new = driven.started.iter().any(|frame| waits(*frame)) || driven.worked && blockers.iter().any(over_budget);
    Ok(ChainStatus::Waits { new, blockers, busy: driven.busy, errors: driven.errors })
}

/// As [`after`], for a run without a waiting caller: a chain that will be retried is waiting.
pub(crate) fn after_unattended(store: &Store, top: FrameId, driven: Driven) -> Result<ChainStatus, RuntimeError> {
    let busy = driven.busy.clone();
    let status = after(store, top, driven)?;
    let ChainStatus::Failed(errors) = status else { return Ok(status) };
    let blockers = store.tree(top)?.blockers(Timestamp::now());
    Ok(if blockers.is_empty() {
        ChainStatus::Failed(errors)
    } else {
        ChainStatus::Waits { new: false, blockers, busy, errors }
    })
}

/// Why a member of a group failed, if it did.
fn error(member: &GroupMember) -> Option<FrameError> {
    let Failure { kind, message } = member.failure()?.clone();
    let why = match kind {
        FailureKind::Refused => FrameErrorKind::Refused(message),
        FailureKind::Stopped => FrameErrorKind::Stopped(message),
        FailureKind::Error | FailureKind::Unhandled => FrameErrorKind::Ended(message),
    };
    Some(FrameError { frame: member.id, kind: why })
}

impl ChainStatus {
    /// The reply of the top, or the replies of a group.
    pub(crate) fn reply(&self) -> Option<&str> {
        match self {
            Self::Done(reply) | Self::PartlyFailed { replies: reply, .. } => Some(reply),
            Self::Waits { .. } | Self::Failed(_) | Self::Interrupted => None,
        }
    }

    pub(crate) fn errors(&self) -> &[FrameError] {
        match self {
            Self::Waits { errors, .. } | Self::PartlyFailed { errors, .. } | Self::Failed(errors) => errors,
            Self::Done(_) | Self::Interrupted => &[],
        }
    }

    /// Whether there are errors, and each means that `claude` could not be used at all.
    pub(crate) fn is_refusal(&self) -> bool {
        let refused = |error: &FrameError| {
            matches!(
                error.kind,
                FrameErrorKind::Program(_) | FrameErrorKind::Refused(_) | FrameErrorKind::NoConversation { .. }
            )
        };
        match self {
            Self::Failed(errors) | Self::Waits { errors, .. } => !errors.is_empty() && errors.iter().all(refused),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::attempt::ending::Ending;
    use crate::core::chain::limits::Limits;
    use crate::core::steering::stop_order::{By, Stop, StopKind};
    use crate::store::NewFrame;
    use crate::store::testing::{self, new};

    #[test]
    fn a_poll_shows_what_a_chain_waits_for() {
        let (_temp, store) = testing::store();
        let (root, question) = store.asking("When?");
        let Some(ChainStatus::Waits { new, blockers, busy, errors }) = poll(&store, root).unwrap() else {
            panic!("it waits")
        };
        assert!(!new && busy.is_empty() && errors.is_empty());
        assert!(matches!(&blockers[..], [Blocker { what: Blocking::Question { id, .. }, .. }] if *id == question));
        assert!(!can_continue(&store, root).unwrap());
        store.answer(question, "Jan 1st").unwrap();
        assert!(poll(&store, root).unwrap().is_none());
        assert!(can_continue(&store, root).unwrap());
    }

    #[test]
    fn an_agent_that_another_process_runs_is_left_alone_and_one_without_a_runner_is_not() {
        let (_temp, store) = testing::store();
        let caller = store.start(store.root());
        store.dir().frame_dir(caller.frame).unwrap();
        let lease = Lease::try_take(store.dir(), caller.frame).unwrap().unwrap();
        let Some(ChainStatus::Waits { busy, .. }) = poll(&store, caller.frame).unwrap() else { panic!("it runs") };
        assert_eq!(busy, [Busy { frame: caller.frame, runner: Some(42) }]);
        assert!(!can_continue(&store, caller.frame).unwrap());
        drop(lease);
        assert!(poll(&store, caller.frame).unwrap().is_none());
        assert!(can_continue(&store, caller.frame).unwrap());
    }

    #[test]
    fn a_limit_is_waited_for_unless_those_who_meet_it_are_dead() {
        let (_temp, store) = testing::store();
        let limits = Limits { max_parallel: 1, ..Limits::default() };
        let caller = store.start(store.create_root(&NewFrame { limits, ..new("root") }).unwrap());
        let [one, other] = ["one", "other"].map(|task| store.request_child(caller, None, &new(task), task).unwrap().1);
        store.end(caller, &Ending::Suspended);
        store.start(one);
        let lease = Lease::try_take(store.dir(), one).unwrap().unwrap();
        let Some(ChainStatus::Waits { blockers, .. }) = poll(&store, other).unwrap() else { panic!("one runs") };
        assert!(matches!(&blockers[..], [Blocker { what: Blocking::Parallel { .. }, .. }]), "{blockers:?}");
        drop(lease);
        assert!(poll(&store, other).unwrap().is_none());
    }

    #[test]
    fn what_is_dead_elsewhere_in_the_chain_is_no_reason_to_continue_an_agent_that_waits() {
        let (_temp, store) = testing::store();
        let caller = store.start(store.root());
        let child = store.request_child(caller, None, &new("child"), "child").unwrap().1;
        let asking = store.start(child);
        store.request(asking, None, &[testing::ask("When?")]).unwrap();
        store.end(asking, &Ending::Suspended);
        assert!(poll(&store, caller.frame).unwrap().is_none(), "nobody runs it");
        assert!(poll(&store, child).unwrap().is_some());
    }

    #[test]
    fn a_chain_that_was_stopped_is_over_until_a_person_continues_it() {
        let (_temp, store) = testing::store();
        let (root, _) = store.asking("When?");
        let stop = Stop { how: StopKind::Stop, now: false, by: By::Person, reason: None, of: root, report: None };
        store.order_stop(root, &stop, &[]).unwrap();
        for status in [poll(&store, root).unwrap().unwrap(), after(&store, root, Driven::default()).unwrap()] {
            let ChainStatus::Failed(errors) = status else { panic!("{status:?}") };
            assert!(matches!(&errors[..], [FrameError { frame, kind: FrameErrorKind::Stopped(_) }] if *frame == root));
        }
        assert!(!can_continue(&store, root).unwrap());
    }

    #[test]
    fn a_chain_that_another_process_drives_is_not_continued_by_itself() {
        let (_temp, store) = testing::store();
        let root = store.root();
        assert!(can_continue(&store, root).unwrap());
        let driving = Driving::mark(store.dir(), root).unwrap();
        assert!(!can_continue(&store, root).unwrap());
        drop(driving);
        assert!(can_continue(&store, root).unwrap());
    }

    #[test]
    fn the_reply_of_the_top_is_the_end() {
        let (_temp, store) = testing::store();
        let caller = store.start(store.root());
        store.end(caller, &testing::reply("Jan 1st"));
        let status = poll(&store, caller.frame).unwrap().unwrap();
        assert_eq!((status.reply(), status.is_refusal()), (Some("Jan 1st"), false));
        assert!(
            matches!(after(&store, caller.frame, Driven::default()).unwrap(), ChainStatus::Done(reply) if reply == "Jan 1st")
        );
        assert!(!can_continue(&store, caller.frame).unwrap());
    }

    #[test]
    fn a_failure_is_tried_again_by_a_poll_and_not_by_what_continues_chains_by_itself() {
        let (_temp, store) = testing::store();
        let caller = store.start(store.root());
        store.end(caller, &testing::refused("no such model"));
        assert!(poll(&store, caller.frame).unwrap().is_none());
        assert!(!can_continue(&store, caller.frame).unwrap());
    }

    #[test]
    fn what_went_wrong_is_a_failure_only_if_nothing_else_is_waited_for() {
        let (_temp, store) = testing::store();
        let (root, _) = store.asking("When?");
        let with_error = |frame| {
            let mut driven = Driven::default();
            driven.failed(frame, FrameErrorKind::Refused("no such model".into()));
            after(&store, root, driven).unwrap()
        };
        let failed = with_error(root);
        assert!(matches!(&failed, ChainStatus::Failed(errors) if errors.len() == 1) && failed.is_refusal());
        let waits = with_error(FrameId::random());
        assert!(matches!(&waits, ChainStatus::Waits { errors, .. } if errors.len() == 1));
        assert!(matches!(
            after(&store, root, Driven { interrupted: true, ..Driven::default() }).unwrap(),
            ChainStatus::Interrupted
        ));
    }

    #[test]
    fn a_wait_is_new_if_a_frame_that_waits_has_begun_to_in_this_run() {
        let (_temp, store) = testing::store();
        let (root, _) = store.asking("When?");
        for (started, is_new) in [(None, false), (Some(root), true), (Some(FrameId::random()), false)] {
            let driven = Driven { worked: true, started: started.into_iter().collect(), ..Driven::default() };
            assert!(matches!(after(&store, root, driven).unwrap(), ChainStatus::Waits { new, .. } if new == is_new));
        }
    }

    #[test]
    fn only_a_chain_that_claude_never_worked_on_was_refused() {
        let failed = |kinds: Vec<FrameErrorKind>| {
            let errors = kinds.into_iter().map(|kind| FrameError { frame: FrameId::random(), kind });
            ChainStatus::Failed(errors.collect()).is_refusal()
        };
        let refused = || FrameErrorKind::Refused("no".into());
        let lost = FrameErrorKind::NoConversation { said: "no".into(), anew: String::new() };
        assert!(failed(vec![refused(), lost]));
        assert!(!failed(vec![refused(), FrameErrorKind::Ended("max turns".into())]));
        let waits = |errors| ChainStatus::Waits { new: false, blockers: Vec::new(), busy: Vec::new(), errors };
        let error = FrameError { frame: FrameId::random(), kind: refused() };
        assert!(waits(vec![error]).is_refusal() && !waits(Vec::new()).is_refusal());
        assert!(!ChainStatus::Interrupted.is_refusal());
    }

    #[test]
    fn a_member_of_a_group_failed_in_the_way_that_its_record_says() {
        let (id, state) = (FrameId::random(), FrameState::Done);
        let member = GroupMember { id, task: "a task".into(), state, reply: None, worktree: None };
        let kind = |kind| {
            let failure = Failure { kind, message: "why".into() };
            error(&GroupMember { state: FrameState::Failed { failure }, ..member.clone() }).unwrap().kind
        };
        assert!(matches!(kind(FailureKind::Refused), FrameErrorKind::Refused(_)));
        assert!(matches!(kind(FailureKind::Stopped), FrameErrorKind::Stopped(_)));
        assert!(matches!(kind(FailureKind::Error), FrameErrorKind::Ended(_)));
        assert!(error(&member).is_none());
    }
}
