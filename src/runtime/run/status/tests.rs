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
fn a_frame_failed_in_the_way_that_its_record_says() {
    let kind = |kind| error(FrameId::random(), &Failure { kind, message: "why".into() }).kind;
    assert!(matches!(kind(FailureKind::Refused), FrameErrorKind::Refused(_)));
    assert!(matches!(kind(FailureKind::Stopped), FrameErrorKind::Stopped(_)));
    assert!(matches!(kind(FailureKind::Error), FrameErrorKind::Ended(_)));
}
