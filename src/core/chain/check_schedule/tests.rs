//! When chains of every kind are checked.

use uuid::Uuid;

use super::*;

const ROOT: FrameId = FrameId(Uuid::from_u128(1));

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn plan(schedule: &mut CheckSchedule, reasons: &[ContinueReason], now: i64) -> CheckPlan {
    let candidate = |reason: &ContinueReason| ChangedChain {
        root: ROOT,
        reason: reason.clone(),
        progress: WaitProgress::default(),
    };
    let is_there = |wait: &External| wait.files().any(|path| path.ends_with("there"));
    let in_file = |form: &Form, _: &WaitProgress| match form.file.as_ref().unwrap().to_str().unwrap().split_once(' ') {
        Some(("soon", time)) => InFile::Soon(at(time.parse().unwrap())),
        Some(("answer", time)) => InFile::Answer(at(time.parse().unwrap())),
        Some(("refused", why)) => InFile::Refused { why: why.to_owned(), was_reported: false },
        _ => InFile::NoAnswer,
    };
    schedule.plan(reasons.iter().map(candidate).collect(), at(now), is_there, in_file)
}

fn is_due(schedule: &mut CheckSchedule, reasons: &[ContinueReason], now: i64) -> bool {
    !plan(schedule, reasons, now).due.is_empty()
}

#[test]
fn a_new_frame_is_started_only_by_its_maker_for_a_moment() {
    let until = |now| left_to_its_maker(at(100), at(now));
    let for_a_moment = Some(at(110));
    assert_eq!([91, 99, 100, 109].map(until), [for_a_moment; 4]);
    assert_eq!([90, 110].map(until), [None; 2]);
}

#[test]
fn what_nothing_keeps_is_due_once() {
    let mut schedule = CheckSchedule::default();
    assert_eq!(plan(&mut schedule, &[ContinueReason::Free, ContinueReason::Running], 0).due, [ROOT]);
    assert_eq!(plan(&mut schedule, &[], 0), CheckPlan::default());
}

#[test]
fn a_time_is_waited_for_and_not_looked_at() {
    let mut schedule = CheckSchedule::default();
    for reason in [ContinueReason::Until(at(90)), ContinueReason::Outside(External::Time(at(90)))] {
        let before = plan(&mut schedule, std::slice::from_ref(&reason), 89);
        assert_eq!((before.due, before.next), (vec![], Some(at(90))));
        assert!(is_due(&mut schedule, &[reason], 90));
    }
}

#[test]
fn a_file_is_due_when_it_is_there() {
    let mut schedule = CheckSchedule::default();
    let file = |name: &str| [ContinueReason::Outside(External::File(name.into()))];
    let missing = plan(&mut schedule, &file("/p/missing"), 0);
    assert_eq!((missing.due, missing.files), (vec![], vec![PathBuf::from("/p/missing")]));
    assert!(is_due(&mut schedule, &file("/p/there"), 0));
}

#[test]
fn a_question_in_a_file_is_due_when_its_answer_counts_and_again_after_each_change() {
    let mut schedule = CheckSchedule::default();
    let form = |name: &str| Box::new(Form { file: Some(name.into()), ..Form::text("When?") });
    let file = |name: &str| [ContinueReason::InFile { form: form(name), changed: None }];
    let empty = plan(&mut schedule, &file("/p/q.md"), 0);
    assert_eq!((empty.due, empty.next, empty.files), (vec![], None, vec![PathBuf::from("/p/q.md")]));
    let soon = plan(&mut schedule, &file("soon 9"), 0);
    assert_eq!((soon.due, soon.next), (vec![], Some(at(9))));
    let refused = plan(&mut schedule, &file("refused is a directory"), 0);
    let why = RefusedAnswer {
        root: ROOT,
        path: "refused is a directory".into(),
        why: "is a directory".into(),
        was_reported: false,
    };
    assert_eq!((refused.due, refused.next, refused.refused), (vec![], None, vec![why]));
    assert!(is_due(&mut schedule, &file("answer 5"), 9));
    let reasons = schedule.reasons(ROOT);
    schedule.checked(ROOT, reasons, at(9), CheckOutcome::NotRun);
    assert!(!is_due(&mut schedule, &file("answer 5"), 10), "it is not an answer");
    assert!(is_due(&mut schedule, &file("answer 10"), 10), "somebody has changed it");
}

#[test]
fn a_chain_that_is_as_it_was_rests_longer_every_time() {
    let mut schedule = CheckSchedule::default();
    let reasons = [ContinueReason::AgentDecides];
    let mut now = 0;
    for rest in [30, 60, 120] {
        assert!(is_due(&mut schedule, &reasons, now));
        schedule.checked(ROOT, reasons.to_vec(), at(now), CheckOutcome::Progressed);
        assert_eq!(plan(&mut schedule, &reasons, now + rest - 1).next, Some(at(now + rest)));
        now += rest;
    }
    assert!(
        is_due(&mut schedule, &[ContinueReason::AgentDecides, ContinueReason::Free], now - 1),
        "something has changed"
    );
}

#[test]
fn a_command_and_a_runner_are_looked_at_every_minute() {
    let mut schedule = CheckSchedule::default();
    for reason in [ContinueReason::Outside(External::Command("test -e x".into())), ContinueReason::Running] {
        for _ in 0..5 {
            let look = if reason == ContinueReason::Running { CheckOutcome::NotRun } else { CheckOutcome::NoProgress };
            schedule.checked(ROOT, vec![reason.clone()], at(0), look);
            assert_eq!(plan(&mut schedule, std::slice::from_ref(&reason), 59).next, Some(at(60)));
        }
        assert!(is_due(&mut schedule, &[reason], 60));
    }
}

#[test]
fn a_chain_that_got_on_and_can_continue_again_is_due_at_once() {
    let mut schedule = CheckSchedule::default();
    assert!(is_due(&mut schedule, &[ContinueReason::Free], 0));
    schedule.checked(ROOT, vec![ContinueReason::Free], at(0), CheckOutcome::Progressed);
    assert!(is_due(&mut schedule, &[ContinueReason::Free], 0), "its question was answered at once");
}

#[test]
fn a_chain_whose_time_has_come_for_nothing_rests_too() {
    let mut schedule = CheckSchedule::default();
    assert!(is_due(&mut schedule, &[ContinueReason::Until(at(9))], 9));
    schedule.checked(ROOT, vec![ContinueReason::Until(at(9))], at(9), CheckOutcome::NoProgress);
    for now in [9, 38] {
        assert!(
            !is_due(&mut schedule, &[ContinueReason::Free], now),
            "its question has expired, and its agent refuses"
        );
    }
    assert!(is_due(&mut schedule, &[ContinueReason::Free, ContinueReason::Running], 38), "something has changed");
    assert!(is_due(&mut schedule, &[ContinueReason::Free], 39));
}

#[test]
fn a_chain_that_could_not_be_run_is_tried_every_five_minutes_at_least() {
    let mut schedule = CheckSchedule::default();
    let mut now = 0;
    for rest in [30, 60, 120, 240, 300, 300, 300] {
        assert!(is_due(&mut schedule, &[ContinueReason::Free], now));
        schedule.checked(ROOT, vec![ContinueReason::Free], at(now), CheckOutcome::Failed);
        assert_eq!(plan(&mut schedule, &[ContinueReason::Free], now + rest - 1).next, Some(at(now + rest)));
        now += rest;
    }
}

#[test]
fn a_chain_without_a_place_is_looked_at_again_within_seconds() {
    let mut schedule = CheckSchedule::default();
    for now in 0..100 {
        schedule.checked(ROOT, vec![ContinueReason::Free], at(now), CheckOutcome::NoSlot);
        assert!(!is_due(&mut schedule, &[ContinueReason::Free], now + 1));
        assert!(is_due(&mut schedule, &[ContinueReason::Free], now + 2), "however often it found none");
    }
}

#[test]
fn a_clock_that_is_set_back_ends_a_rest() {
    for reason in [ContinueReason::Free, ContinueReason::Outside(External::Command("test -e x".into()))] {
        let mut schedule = CheckSchedule::default();
        schedule.checked(ROOT, vec![reason.clone()], at(10_000), CheckOutcome::NoProgress);
        assert!(!is_due(&mut schedule, std::slice::from_ref(&reason), 10_001));
        assert!(is_due(&mut schedule, &[reason], 0));
    }
}

#[test]
fn what_is_known_about_a_chain_that_waits_is_forgotten() {
    let mut schedule = CheckSchedule::default();
    schedule.checked(ROOT, vec![ContinueReason::Free], at(0), CheckOutcome::NoProgress);
    assert!(!is_due(&mut schedule, &[ContinueReason::Free], 1));
    plan(&mut schedule, &[], 2);
    assert!(is_due(&mut schedule, &[ContinueReason::Free], 3));
}
