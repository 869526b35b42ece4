use jiff::Timestamp;

use super::*;
use crate::core::agent::reply_schema::ReplyShape;
use crate::core::id::FrameId;
use crate::core::steering::fresh_start::testing::SUMMARY;
use crate::core::steering::stop_order::By;

const RESETS_AT: Timestamp = Timestamp::UNIX_EPOCH;

fn later(ending: Ending) -> Facts {
    Facts { has_checkpoint: true, ..Facts::from_ending(ending) }
}

pub(super) fn said(text: &str) -> Ending {
    Ending::Reply(text.into())
}

pub(super) fn refused(objection: Objection) -> Ending {
    Ending::Refused { why: "No deferred tool marker found".into(), objection }
}

pub(super) fn died(worked: bool) -> Ending {
    Ending::Died { worked, how: "killed by signal 9".into() }
}

pub(super) fn overloaded(worked: bool) -> Ending {
    Ending::Unavailable { why: "overloaded".into(), worked }
}

pub(super) fn limited(worked: bool) -> Ending {
    Ending::UsageLimit { resets_at: RESETS_AT, worked }
}

pub(super) fn error() -> Ending {
    Ending::Error("max turns".into())
}

fn misfit(was_corrected: bool) -> Facts {
    let shape = ReplyShape::Misfit(vec!["/a: it is not a number".into()]);
    Facts { shape, was_corrected, ..Facts::from_ending(said("{\"a\": true}")) }
}

/// The rows of the table in `docs/recovery.md`, with an attempt for each.
fn rows() -> Vec<(&'static str, Facts)> {
    vec![
        ("reply", Facts::from_ending(said("Jan 1st"))),
        ("reply, and it was told something since", Facts { has_messages: true, ..Facts::from_ending(said("Jan 1st")) }),
        (
            "reply, while something ran in its background that was ended",
            Facts { ended_beside: vec!["the server".into()], ..Facts::from_ending(said("Jan 1st")) },
        ),
        ("reply that does not fit its schema", misfit(false)),
        ("reply that does not fit, after it was told so", misfit(true)),
        (
            "requests whose results it has not been given, whatever was said",
            Facts { has_requests: true, ..Facts::from_ending(said("I asked.")) },
        ),
        ("`SGN_PEND_STARTED` without a request", Facts::from_ending(said("SGN_PEND_STARTED"))),
        ("`SGN_PEND_ONGOING`", Facts::from_ending(said("SGN_PEND_ONGOING"))),
        ("`SGN_UNHANDLED`", Facts::from_ending(said("SGN_UNHANDLED"))),
        ("usage limit with a reset time, before work", Facts::from_ending(limited(false))),
        ("usage limit with a reset time, after work", Facts::from_ending(limited(true))),
        ("API not available, before work", Facts::from_ending(overloaded(false))),
        ("API not available, after work", Facts::from_ending(overloaded(true))),
        ("refused before any work", Facts::from_ending(refused(Objection::Unknown))),
        ("error after work", Facts::from_ending(error())),
        ("stopped, before work", Facts::from_ending(Ending::Stopped { worked: false })),
        ("stopped, after work", Facts::from_ending(Ending::Stopped { worked: true })),
        ("shut down with its runner, before work", Facts::from_ending(Ending::ShutDown { worked: false })),
        ("shut down with its runner, after work", Facts::from_ending(Ending::ShutDown { worked: true })),
        ("stopped by the budget, before work", Facts::from_ending(Ending::OverBudget { worked: false })),
        ("stopped by the budget, after work", Facts::from_ending(Ending::OverBudget { worked: true })),
        ("died, before work", Facts::from_ending(died(false))),
        ("died, after work", Facts::from_ending(died(true))),
        ("died with its runner, before work", Facts { is_abandoned: true, ..Facts::from_ending(died(false)) }),
        ("died with its runner, after work", Facts { is_abandoned: true, ..Facts::from_ending(died(true)) }),
    ]
}

pub(super) fn to_stop(how: StopKind) -> Stop {
    Stop { how, now: false, by: By::Person, reason: None, of: FrameId::random(), report: None }
}

fn frame_in_words(frame: &Ended, facts: &Facts) -> String {
    let words = match frame {
        Ended::Pause(then) => match &**then {
            Ended::Cancel | Ended::BackOff { .. } | Ended::Die { .. } => return "paused, then ready again".to_owned(),
            failed @ Ended::Fail(_) => return frame_in_words(failed, facts),
            then => return format!("paused, then {}", frame_in_words(then, facts)),
        },
        Ended::Fail(Failure { kind: FailureKind::Stopped, .. }) => "stopped",
        Ended::Done => "done",
        Ended::Wait(Wait::Requests) => "waits for them",
        Ended::Wait(Wait::AgentDecides) => "waits, agent decides",
        Ended::Wait(Wait::UsageLimit { .. }) => "waits until then",
        Ended::Wait(Wait::Retry { .. } | Wait::Restart { .. }) => panic!("the state counts the tries"),
        Ended::Retry { .. } => "waits for its next try",
        Ended::BackOff { .. } => "backs off",
        Ended::Die { .. } => "ready again; if it dies again, backs off",
        Ended::Fail(_) => "failed",
        Ended::Cancel => "cancelled",
        Ended::Summarised => "waits for its requests, or ready again",
        Ended::Back if facts.has_checkpoint => "as before",
        Ended::Again | Ended::Back => "ready again",
    };
    words.to_owned()
}

/// A decision in the words of the table.
fn in_words(facts: &Facts) -> String {
    let Decision { session, frame, error, next, .. } = decide(facts);
    let session = match session {
        Fate::Keep => "keep",
        Fate::Discard => "discard",
        Fate::Lost => "lost",
    };
    let frame = frame_in_words(&frame, facts);
    let error = if error.is_some() { "; error" } else { "" };
    let skip = if next == Next::Skip { "; not again" } else { "" };
    format!("{session}; {frame}{error}{skip}")
}

#[test]
fn the_table_of_the_documentation_holds() {
    let recovery = include_str!("../../../../docs/recovery.md");
    let (_, table) = recovery.split_once("| how the attempt ended | first attempt | later attempt").unwrap();
    let written: Vec<_> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    let decided = rows().into_iter().map(|(row, facts)| {
        let later = Facts { has_checkpoint: true, ..facts.clone() };
        format!("| {row} | {} | {} |", in_words(&facts), in_words(&later))
    });
    assert_eq!(written, decided.collect::<Vec<_>>());
}

#[test]
fn a_stop_changes_only_what_becomes_of_the_frame() {
    let recovery = include_str!("../../../../docs/recovery.md");
    let (_, table) = recovery.split_once("| how the attempt ended | to be stopped | to be paused |").unwrap();
    let written: Vec<_> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    let names = ["reply", "requests", "`SGN_PEND_STARTED`", "error", "stopped, after", "died, before", "died, after"];
    let rows = rows().into_iter().filter(|(row, _)| names.iter().any(|name| row.starts_with(name)));
    let decided = rows.map(|(row, facts)| {
        let with = |how| Facts { stop: Some(to_stop(how)), ..facts.clone() };
        format!("| {row} | {} | {} |", in_words(&with(StopKind::Stop)), in_words(&with(StopKind::Pause)))
    });
    assert_eq!(written, decided.collect::<Vec<_>>());
}

#[test]
fn a_summary_is_recorded_or_everything_is_as_before() {
    let recovery = include_str!("../../../../docs/recovery.md");
    let (_, table) = recovery.split_once("| how it ended | what follows |").unwrap();
    let written: Vec<_> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    let asked = |lacks: &[&str], ending| {
        let lacks = lacks.iter().map(|name| (*name).to_owned()).collect();
        Facts { summarises: Some(lacks), ..later(ending) }
    };
    let rows = [
        ("a summary", asked(&[], said(SUMMARY))),
        ("a text that lacks a part of it", asked(&[], said("SGN_PEND_STARTED"))),
        ("the same, after it was told so", asked(&["Goal"], said("I am done."))),
        ("usage limit with a reset time", asked(&[], limited(true))),
        ("API not available", asked(&[], overloaded(true))),
        ("refused before any work", asked(&[], refused(Objection::Start))),
        ("error after work", asked(&[], error())),
        ("stopped", asked(&[], Ending::Stopped { worked: true })),
        ("shut down with its runner", asked(&[], Ending::ShutDown { worked: true })),
        ("stopped by the budget", asked(&[], Ending::OverBudget { worked: true })),
        ("died", asked(&[], died(true))),
        ("died with its runner", Facts { is_abandoned: true, ..asked(&[], died(true)) }),
    ];
    let decided = rows.iter().map(|(row, facts)| format!("| {row} | {} |", in_words(facts)));
    assert_eq!(written, decided.collect::<Vec<_>>());
}

#[test]
fn a_new_session_is_told_of_no_trouble_that_the_old_one_knew() {
    let trouble = |misfits: &[&str]| {
        let misfits = misfits.iter().map(|misfit| (*misfit).to_owned()).collect();
        Some(Trouble { what: "killed".into(), misfits, ..Trouble::default() })
    };
    let after = |trouble| decide(&Facts { summarises: Some(Vec::new()), trouble, ..later(said(SUMMARY)) }).trouble;
    assert_eq!(after(trouble(&[])), None);
    assert_eq!(after(trouble(&["/a: it"])), trouble(&["/a: it"]), "its reply has to be corrected there");
}

#[test]
fn a_stopped_agent_learns_of_it_only_if_it_was_cut_short() {
    let stop = Some(to_stop(StopKind::Pause));
    let asked = Facts { stop: stop.clone(), has_requests: true, ..later(Ending::Suspended) };
    assert_eq!(decide(&asked).trouble, None);
    let cut = Facts { stop, uncertain_calls: vec!["Bash: make".into()], ..later(Ending::Stopped { worked: true }) };
    let trouble = decide(&cut).trouble.unwrap();
    assert_eq!((trouble.what.as_str(), trouble.calls.len()), ("paused by a person", 1));
}

#[test]
fn a_frame_that_fails_says_why() {
    for (facts, kind, message) in [
        (Facts::from_ending(said("SGN_UNHANDLED")), FailureKind::Unhandled, UNHANDLED),
        (Facts::from_ending(refused(Objection::Start)), FailureKind::Refused, "No deferred tool marker found"),
        (Facts::from_ending(error()), FailureKind::Error, "max turns"),
        (later(error()), FailureKind::Error, "max turns"),
    ] {
        let Decision { frame, error, .. } = decide(&facts);
        assert_eq!((frame, error.as_deref()), (Ended::Fail(Failure { kind, message: message.into() }), Some(message)));
    }
    assert_eq!(decide(&later(limited(true))).frame, Ended::Wait(Wait::UsageLimit { resets_at: RESETS_AT, tries: 0 }));
    assert_eq!(decide(&later(overloaded(true))).frame, Ended::Retry { why: "overloaded".into() });
}

#[test]
fn the_caller_hears_what_went_wrong() {
    for (ending, message) in [
        (said("SGN_UNHANDLED"), UNHANDLED),
        (refused(Objection::Start), "No deferred tool marker found"),
        (error(), "max turns"),
        (Ending::Stopped { worked: true }, "stopped"),
        (died(true), "killed by signal 9 before the agent had finished"),
    ] {
        assert_eq!(decide(&later(ending)).error.as_deref(), Some(message));
    }
    let quiet = [said("Jan 1st"), Ending::Suspended, said("SGN_PEND_ONGOING"), limited(true), overloaded(false)];
    assert!(quiet.into_iter().all(|ending| decide(&later(ending)).error.is_none()));
}

#[test]
fn a_frame_begins_to_wait_unless_it_goes_back_to_it() {
    for ending in [Ending::Suspended, said("SGN_PEND_STARTED"), limited(false), overloaded(true)] {
        assert!(decide(&later(ending)).begins_to_wait());
    }
    for ending in [said("Jan 1st"), said("SGN_PEND_ONGOING"), error(), died(true), Ending::Stopped { worked: true }] {
        assert!(!decide(&later(ending)).begins_to_wait());
    }
}

#[test]
fn what_cannot_be_continued_from_is_lost_and_the_frame_as_if_it_could() {
    for ending in [died(true), Ending::Suspended, Ending::Stopped { worked: true }, error(), limited(true)] {
        let kept = decide(&later(ending.clone()));
        assert_eq!((kept.session, &kept.redelivery), (Fate::Keep, &Redelivery::Only(Vec::new())));
        let lost = decide(&Facts { salvage: Salvage::Nothing, ..later(ending) });
        assert_eq!((lost.session, lost.redelivery, lost.frame), (Fate::Lost, Redelivery::All, kept.frame));
    }
    let reply = Facts { salvage: Salvage::Nothing, ..later(said("Jan 1st")) };
    assert_eq!((decide(&reply).session, decide(&reply).frame), (Fate::Lost, Ended::Done));
    let first = Facts { has_checkpoint: false, ..reply };
    assert_eq!((decide(&first).session, decide(&first).frame), (Fate::Keep, Ended::Done));
    assert_eq!(decide(&Facts { salvage: Salvage::Nothing, ..later(died(false)) }).session, Fate::Discard);
}

#[test]
fn a_turn_that_ended_by_itself_and_was_not_recorded_is_known_and_not_begun_anew_in_this_run() {
    for salvage in [Salvage::Nothing, Salvage::Part] {
        for ending in [Ending::Suspended, error(), limited(true), said("SGN_PEND_STARTED")] {
            let decision = decide(&Facts { salvage, ..later(ending.clone()) });
            assert!(decision.is_unrecorded && decision.trouble.is_some_and(|trouble| trouble.unrecorded), "{ending:?}");
            assert_eq!(decision.next, Next::Skip);
        }
        let recorded = |facts: Facts| !decide(&Facts { salvage, ..facts }).is_unrecorded;
        assert!(recorded(later(died(true))) && recorded(later(Ending::Stopped { worked: true })));
        assert!(recorded(Facts { was_killed: true, ..later(Ending::Suspended) }), "it had no time to write");
        assert!(recorded(later(said("Jan 1st"))), "a reply counts");
    }
    assert!(!decide(&later(Ending::Suspended)).is_unrecorded);
}

#[test]
fn want_of_room_is_no_failure_that_a_parent_is_told_of() {
    let ended = |objection| decide(&Facts::from_ending(refused(objection))).frame;
    assert!(matches!(ended(Objection::Room), Ended::BackOff { .. }));
    assert!(matches!(ended(Objection::Start), Ended::Fail(_)));
}

#[test]
fn what_an_agent_has_perhaps_not_seen_is_given_again() {
    let (unseen, looked_up) = (RequestId::random(), RequestId::random());
    let facts = |salvage| Facts { unseen: vec![unseen], looked_up: vec![looked_up], salvage, ..later(died(true)) };
    let redelivery = |salvage| decide(&facts(salvage)).redelivery;
    assert_eq!(redelivery(Salvage::Whole), Redelivery::Only(vec![unseen, looked_up]));
    assert_eq!(redelivery(Salvage::Part), Redelivery::Only(vec![unseen, looked_up]));
    let replied = Facts { looked_up: vec![looked_up], ..later(said("over")) };
    assert_eq!(decide(&replied).frame, Ended::Done, "it does not wait for what it has looked up");
    assert_eq!(redelivery(Salvage::Nothing), Redelivery::All);
    let discarded = Facts { ending: died(false), unseen: Vec::new(), ..facts(Salvage::Whole) };
    assert_eq!(decide(&discarded).redelivery, Redelivery::All);
}

#[test]
fn the_next_prompt_says_how_an_attempt_ended_if_it_ended_badly() {
    for (facts, what) in [
        (later(died(true)), Some("killed by signal 9")),
        (later(error()), Some("max turns")),
        (later(Ending::Stopped { worked: true }), Some("a person stopped it")),
        (later(Ending::ShutDown { worked: true }), Some("the system ended the program that ran it")),
        (later(limited(true)), Some("the usage limit was reached")),
        (later(overloaded(true)), Some("overloaded")),
        (Facts { has_requests: true, ..later(died(true)) }, Some("killed by signal 9")),
        (Facts { salvage: Salvage::Part, ..later(Ending::Suspended) }, Some("claude could not record all of it")),
        (Facts { salvage: Salvage::Nothing, ..later(Ending::Suspended) }, Some("claude could not record all of it")),
        (later(Ending::Suspended), None),
        (later(said("SGN_PEND_STARTED")), None),
        (later(said("Jan 1st")), None),
    ] {
        let known =
            Trouble { what: "an earlier one".into(), calls: vec!["Bash: a".into()], lost: true, ..Trouble::default() };
        let facts = Facts { trouble: Some(known), uncertain_calls: vec!["Bash: b".into()], ..facts };
        let trouble = decide(&facts).trouble;
        assert_eq!(trouble.as_ref().map(|trouble| trouble.what.as_str()), what, "{facts:?}");
        let Some(trouble) = trouble else { continue };
        // The kept conversation contains what was said about an earlier one.
        let (lost, calls) = match facts.salvage {
            Salvage::Nothing => (true, vec!["Bash: a", "Bash: b"]),
            Salvage::Part | Salvage::Whole => (false, vec!["Bash: b"]),
        };
        assert_eq!((trouble.lost, trouble.calls), (lost, calls.into_iter().map(str::to_owned).collect()));
    }
}

#[test]
fn a_refusal_to_go_on_at_a_call_is_met_with_the_next_way() {
    let silent = |ending, way| Facts { silent: Some(way), ..later(ending) };
    let unknown = || refused(Objection::Unknown);
    for (facts, next) in [
        (silent(unknown(), Way::Input), Next::Continue(Way::Fork)),
        (silent(unknown(), Way::InPlace), Next::Continue(Way::Prompt)),
        (silent(unknown(), Way::Prompt), Next::Skip),
        (silent(refused(Objection::Start), Way::Fork), Next::Skip),
        (silent(refused(Objection::Session), Way::Fork), Next::Skip),
        (later(unknown()), Next::Skip),
        (silent(error(), Way::Fork), Next::AsItComes),
        (silent(died(false), Way::Fork), Next::Skip),
        // It has failed, so nothing is continued.
        (Facts { has_checkpoint: false, ..silent(unknown(), Way::Fork) }, Next::Skip),
    ] {
        let decision = decide(&facts);
        assert_eq!(decision.next, next, "{facts:?}");
        if matches!(next, Next::Continue(_)) {
            assert_eq!((decision.session, decision.frame, decision.error), (Fate::Discard, Ended::Back, None));
        }
    }
}

#[test]
fn an_attempt_that_died_in_an_earlier_run_is_no_failure_of_this_one() {
    for worked in [false, true] {
        let here = decide(&later(died(worked)));
        assert_eq!((here.next, here.error.is_some()), (Next::Skip, true));
        let earlier = decide(&Facts { is_abandoned: true, ..later(died(worked)) });
        assert_eq!((earlier.next, &earlier.error), (Next::AsItComes, &None));
        assert!(matches!(earlier.frame, Ended::Back | Ended::Again) && matches!(here.frame, Ended::Die { .. }));
        assert_eq!((earlier.session, earlier.trouble), (here.session, here.trouble));
    }
    assert_eq!(decide(&Facts { is_abandoned: true, ..later(refused(Objection::Start)) }).next, Next::Skip);
}

#[test]
fn a_person_is_told_of_a_signal_in_a_sentence_and_of_pauses_in_a_row() {
    let notes = |facts: &Facts| decide(facts).notes;
    assert_eq!(notes(&Facts::from_ending(said("so SGN_PEND_STARTED it is"))), [Note::InASentence(Signal::Started)]);
    assert_eq!(notes(&Facts::from_ending(said("SGN_PEND_STARTED\nand SGN_PEND_STARTED it is"))), []);
    assert_eq!(notes(&Facts { has_requests: true, ..Facts::from_ending(said("so SGN_PEND_STARTED it is")) }), []);
    for (earlier_pauses, expected) in [(1, vec![]), (2, vec![Note::PausesInARow(3)]), (6, vec![Note::PausesInARow(7)])]
    {
        assert_eq!(notes(&Facts { earlier_pauses, ..later(said("SGN_PEND_STARTED")) }), expected);
        assert_eq!(notes(&Facts { earlier_pauses, ..later(said("SGN_PEND_ONGOING")) }), []);
    }
}
