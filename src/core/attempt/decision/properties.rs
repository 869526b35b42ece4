use proptest::prelude::*;

use super::tests::{died, error, limited, overloaded, refused, to_stop};
use super::*;
use crate::core::agent::reply_schema::ReplyShape;
use crate::core::steering::fresh_start::testing::SUMMARY;

fn endings() -> impl Strategy<Value = Ending> {
    let text = prop_oneof![
        "[a-z ]{0,20}",
        "(SGN_PEND_STARTED|SGN_PEND_ONGOING|SGN_UNHANDLED)",
        "so (SGN_PEND_STARTED|SGN_PEND_ONGOING|SGN_UNHANDLED) it is"
    ];
    let objection =
        prop_oneof![Just(Objection::Session), Just(Objection::Start), Just(Objection::Room), Just(Objection::Unknown)];
    prop_oneof![
        text.prop_map(Ending::Reply),
        Just(Ending::Suspended),
        any::<bool>().prop_map(limited),
        any::<bool>().prop_map(overloaded),
        objection.prop_map(refused),
        Just(error()),
        any::<bool>().prop_map(|worked| Ending::Stopped { worked }),
        any::<bool>().prop_map(|worked| Ending::ShutDown { worked }),
        any::<bool>().prop_map(|worked| Ending::OverBudget { worked }),
        any::<bool>().prop_map(died),
    ]
}

prop_compose! {
    fn any_facts()(
        ending in endings(),
        (has_checkpoint, has_requests, awaits_approval, is_abandoned, is_unseen) in any::<(bool, bool, bool, bool, bool)>(),
        salvage in prop_oneof![Just(Salvage::Whole), Just(Salvage::Part), Just(Salvage::Nothing)],
        has_trouble: bool,
        silent in prop_oneof![Just(None), Just(Some(Way::Input)), Just(Some(Way::Fork)), Just(Some(Way::InPlace)), Just(Some(Way::Prompt))],
        earlier_pauses in 0..5_usize,
        how in prop_oneof![Just(None), Just(Some(StopKind::Stop)), Just(Some(StopKind::Pause))],
        (has_messages, has_beside, was_killed, was_corrected, has_background) in any::<(bool, bool, bool, bool, bool)>(),
        shape in prop_oneof![Just(ReplyShape::Free), Just(ReplyShape::Fits("{}".to_owned())), Just(ReplyShape::Misfit(vec!["/a: it".to_owned()]))],
    ) -> Facts {
        let trouble = Trouble { what: "it".into(), calls: vec!["Bash: a".into()], ..Trouble::default() };
        Facts {
            ending,
            has_checkpoint,
            has_requests,
            has_background,
            begins_afresh: false,
            awaits_approval,
            unseen: is_unseen.then(RequestId::random).into_iter().collect(),
            looked_up: vec![RequestId::random()],
            results: Vec::new(),
            texts: Vec::new(),
            salvage,
            uncertain_calls: vec!["Bash: b".into()],
            trouble: has_trouble.then_some(trouble),
            earlier_pauses,
            silent,
            was_killed,
            is_abandoned,
            stop: how.map(to_stop),
            has_messages,
            ended_beside: has_beside.then(|| "the server".to_owned()).into_iter().collect(),
            shape,
            was_corrected,
            spoke: true,
            summarises: None,
        }
    }
}

proptest! {
    #[test]
    fn who_is_to_stop_does_not_run_again(facts in any_facts()) {
        let decision = decide(&facts);
        if facts.stop.is_some() {
            let rests = matches!(decision.frame, Ended::Done | Ended::Fail(_) | Ended::Pause(_));
            prop_assert!(rests && !matches!(decision.next, Next::Continue(_)));
        }
    }

    #[test]
    fn a_frame_is_done_only_with_a_reply_of_an_agent_that_waits_for_nothing(facts in any_facts()) {
        let is_done = decide(&facts).frame == Ended::Done;
        let has_replied = match &facts.ending {
            Ending::Reply(text) => Signal::on_a_line(text).is_none(),
            _ => false,
        };
        prop_assert!(!is_done || (has_replied && !facts.has_requests && facts.unseen.is_empty()));
    }

    #[test]
    fn a_frame_is_done_only_with_a_reply_that_fits(facts in any_facts()) {
        let Decision { frame, meaning, .. } = decide(&facts);
        if frame == Ended::Done {
            match &facts.shape {
                ReplyShape::Free => prop_assert_eq!(meaning, Meaning::Ended(facts.ending)),
                ReplyShape::Fits(json) => prop_assert_eq!(meaning, Meaning::Ended(Ending::Reply(json.clone()))),
                ReplyShape::Misfit(_) => prop_assert!(false, "it does not fit"),
            }
        }
    }

    #[test]
    fn an_agent_corrects_its_reply_once_in_a_turn(facts in any_facts()) {
        let decision = decide(&facts);
        if let Meaning::Misfit { again, reasons } = &decision.meaning {
            prop_assert_eq!(*again, facts.was_corrected);
            let told = decision.trouble.clone().map(|trouble| trouble.misfits);
            prop_assert_eq!(told.as_ref(), Some(reasons), "whatever comes between");
            let is_asked_again = matches!(&decision.frame, Ended::Again)
                || matches!(&decision.frame, Ended::Pause(then) if **then == Ended::Again);
            prop_assert!(!is_asked_again || !again);
        }
    }

    #[test]
    fn a_discarded_attempt_changes_no_trouble(facts in any_facts()) {
        let decision = decide(&facts);
        if decision.session == Fate::Discard {
            prop_assert_eq!(decision.trouble, facts.trouble);
        }
    }

    #[test]
    fn a_summary_ends_a_session_and_nothing_else_does(facts in any_facts(), again: bool, is_whole: bool) {
        let ending = if is_whole { Ending::Reply(SUMMARY.to_owned()) } else { facts.ending.clone() };
        let summarises = Some(again.then(|| "Goal".to_owned()).into_iter().collect());
        let facts = Facts { summarises, has_checkpoint: true, silent: None, ending, ..facts };
        let Decision { meaning, session, frame, redelivery, .. } = decide(&facts);
        prop_assert_eq!((session, redelivery), (Fate::Discard, Redelivery::All));
        prop_assert_eq!(matches!(meaning, Meaning::Summary(_)), is_whole);
        let then = if let Ended::Pause(then) = &frame { then } else { &frame };
        prop_assert!(!matches!(then, Ended::Done | Ended::Again));
        prop_assert!(*then != Ended::Summarised || is_whole);
        prop_assert!(facts.stop.is_some() || !matches!(then, Ended::Fail(_)), "the agent itself has not failed");
    }

    #[test]
    fn what_no_session_has_is_given_again(facts in any_facts()) {
        let decision = decide(&facts);
        match decision.session {
            Fate::Discard | Fate::Lost => prop_assert_eq!(decision.redelivery, Redelivery::All),
            Fate::Keep => {
                let Redelivery::Only(again) = decision.redelivery else { return Err(TestCaseError::fail("all")) };
                prop_assert!(facts.unseen.iter().all(|unseen| again.contains(unseen)));
            }
        }
    }

    #[test]
    fn a_session_is_a_checkpoint_only_if_it_can_be_continued_from(facts in any_facts()) {
        let decision = decide(&facts);
        if facts.salvage == Salvage::Nothing {
            let is_first_reply = decision.frame == Ended::Done && !facts.has_checkpoint;
            prop_assert!(decision.session != Fate::Keep || is_first_reply);
        } else {
            prop_assert!(decision.session != Fate::Lost);
        }
    }

    #[test]
    fn nobody_who_went_back_is_attempted_twice_in_a_run(facts in any_facts()) {
        let decision = decide(&facts);
        let is_again = matches!(decision.frame, Ended::Back | Ended::Again) && !["has_messages", "cut_off", "misfit", "over_budget"].contains(&decision.meaning.name());
        let died_elsewhere = facts.is_abandoned && decision.error.is_none() && decision.meaning.name() == "died";
        prop_assert!(!is_again || died_elsewhere || decision.next != Next::AsItComes);
    }
}
