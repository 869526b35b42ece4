use super::*;
use crate::core::chain::frame::Trouble;
use crate::core::id::RequestId;

fn facts(ending: Ending) -> Facts {
    Facts::from_ending(ending)
}

fn woken(ending: Ending) -> Facts {
    Facts { has_checkpoint: true, ..Facts::from_ending(ending) }
}

fn said(text: &str) -> Ending {
    Ending::Reply(text.into())
}

fn reply(text: &str) -> Meaning {
    Meaning::Ended(said(text))
}

fn given(texts: &[&str], facts: Facts) -> Facts {
    Facts { texts: texts.iter().map(|text| (*text).to_owned()).collect(), ..facts }
}

#[test]
fn the_record_wins_over_the_words() {
    let died = Ending::Died { worked: true, how: String::new() };
    for ending in [
        said("I asked, and now I chat"),
        said("SGN_PEND_STARTED"),
        said("SGN_PEND_ONGOING"),
        said("I was woken and say SGN_UNHANDLED to nobody"),
        died.clone(),
        Ending::Suspended,
    ] {
        let asked = Facts { has_requests: true, ..woken(ending.clone()) };
        assert_eq!(Meaning::from_facts(&asked), Meaning::Requested);
        let unseen = Facts { unseen: vec![RequestId::random()], ..woken(ending) };
        assert_eq!(Meaning::from_facts(&unseen), Meaning::Requested);
    }
    assert_eq!(Meaning::from_facts(&facts(died.clone())), Meaning::Ended(died));
    assert_eq!(Meaning::from_facts(&facts(Ending::Suspended)), Meaning::Started);
    let asked = |ending| Facts { has_requests: true, ..facts(ending) };
    assert_eq!(Meaning::from_facts(&asked(said("SGN_UNHANDLED"))), Meaning::Unhandled);
    assert_eq!(
        Meaning::from_facts(&asked(Ending::Stopped { worked: true })),
        Meaning::Ended(Ending::Stopped { worked: true })
    );
    let error = asked(Ending::Error("max turns".into()));
    assert_eq!(Meaning::from_facts(&error), Meaning::Ended(Ending::Error("max turns".into())));
    assert_eq!(Meaning::from_facts(&Facts { awaits_approval: true, ..error }), Meaning::Requested);
}

#[test]
fn a_signal_on_a_line_of_its_own_counts_unless_it_is_passed_on() {
    for (text, meaning) in [
        ("done\nSGN_PEND_STARTED.", Meaning::Started),
        ("SGN_PEND_ONGOING (question.md)", Meaning::Ongoing),
        ("`SGN_UNHANDLED`", Meaning::Unhandled),
    ] {
        assert_eq!(Meaning::from_facts(&facts(said(text))), meaning);
        let instructed = given(&["SGN_PEND_STARTED, SGN_PEND_ONGOING, SGN_UNHANDLED"], facts(said(text)));
        assert_eq!(Meaning::from_facts(&instructed), meaning, "an instruction names it");
        let passed_on = Facts { results: vec![format!("{text}\n")], ..facts(said(text)) };
        assert_eq!(Meaning::from_facts(&passed_on), reply(text));
    }
}

#[test]
fn a_word_in_a_sentence_counts_unless_the_agent_was_given_it() {
    for (text, facts, meaning) in [
        ("Replying SGN_PEND_STARTED to the caller.", facts as fn(Ending) -> Facts, Meaning::Started),
        ("No answer yet: SGN_PEND_ONGOING it is.", woken, Meaning::Ongoing),
        ("I do not know why, so SGN_UNHANDLED from me.", woken, Meaning::Unhandled),
    ] {
        assert_eq!(Meaning::from_facts(&facts(said(text))), meaning);
        for given_text in ["Do not say SGN_PEND_STARTED", "```\nSGN_PEND_ONGOING\n```", "say SGN_UNHANDLED", "nothing"]
        {
            let is_mention = given_text.contains(text.split(' ').find(|word| word.starts_with("SGN_")).unwrap());
            let expected = if is_mention { reply(text) } else { meaning.clone() };
            assert_eq!(Meaning::from_facts(&given(&[given_text], facts(said(text)))), expected, "{text} {given_text}");
            let result = Facts { results: vec![given_text.to_owned()], ..facts(said(text)) };
            assert_eq!(Meaning::from_facts(&result), expected, "{text} {given_text}");
        }
    }
    let never_woken = "I never had to say SGN_UNHANDLED to anybody.";
    assert_eq!(Meaning::from_facts(&facts(said(never_woken))), reply(never_woken));
    // If there are several, the agent's own last one counts.
    let several = "The document says SGN_PEND_ONGOING where I say SGN_PEND_STARTED now; SGN_PEND_ONGOING.";
    assert_eq!(Meaning::from_facts(&given(&["SGN_PEND_ONGOING"], woken(said(several)))), Meaning::Started);
}

#[test]
fn a_reply_that_fits_is_no_signal_unless_one_stands_beside_it() {
    let shaped = |text: &str, shape| Meaning::from_facts(&Facts { shape, ..woken(said(text)) });
    let fits = |json: &str| ReplyShape::Fits(json.to_owned());
    let misfit = || ReplyShape::Misfit(vec!["it".to_owned()]);
    let json = "[\n\"SGN_PEND_STARTED\"\n]";
    assert_eq!(shaped(json, fits(json)), reply(json));
    let sentence = r#"{"a": "I say SGN_PEND_STARTED"}"#;
    assert_eq!(shaped(sentence, fits(sentence)), reply(sentence));
    let block = "```json\n{}\n```";
    assert_eq!(shaped(block, fits("{}")), reply("{}"));
    assert_eq!(shaped(&format!("{block}\nSGN_PEND_STARTED"), fits("{}")), Meaning::Started);
    assert_eq!(shaped("SGN_PEND_STARTED", misfit()), Meaning::Started);
    assert_eq!(shaped("yes", misfit()), Meaning::Misfit { reasons: vec!["it".to_owned()], again: false });
    let told = Facts { has_messages: true, shape: misfit(), ..woken(said("yes")) };
    assert_eq!(Meaning::from_facts(&told), Meaning::HasMessages);
    let asked = Facts { has_requests: true, shape: misfit(), ..woken(said("yes")) };
    assert_eq!(Meaning::from_facts(&asked), Meaning::Requested);
}

#[test]
fn the_end_of_a_turn_joins_what_runs_in_the_background() {
    let beside = |ending| Meaning::from_facts(&Facts { has_background: true, ..facts(ending) });
    assert_eq!(beside(said("I am done.")), Meaning::Requested);
    assert_eq!(beside(said("SGN_PEND_STARTED")), Meaning::Requested);
    let died = Ending::Died { worked: true, how: "killed".into() };
    assert_eq!(beside(died.clone()), Meaning::Ended(died));
}

#[test]
fn one_misfit_is_corrected_in_a_turn_whatever_comes_between() {
    for (earlier, expected) in [
        (&[][..], false),
        (&["misfit"], true),
        (&["died", "", "requested", "misfit"], true),
        (&["stopped", "misfit", "reply"], true),
        (&["reply", "misfit"], false),
        (&["second_misfit", "misfit"], false),
        (&["requested", "error", "misfit"], false),
        (&["cut_off", "has_messages", "started"], false),
    ] {
        assert_eq!(was_corrected(earlier.iter().copied()), expected, "{earlier:?}");
    }
}

#[test]
fn a_failure_names_a_few_reasons() {
    let reasons: Vec<_> = (1..=5).map(|n| format!("/{n}: it")).collect();
    assert_eq!(misfit(&reasons[..1]), "the reply does not fit its schema: /1: it");
    assert_eq!(misfit(&reasons), "the reply does not fit its schema: /1: it; /2: it; /3: it; and 2 more");
}

#[test]
fn a_quotation_is_a_reply() {
    for text in ["```\nSGN_PEND_STARTED\n```", "> SGN_UNHANDLED", "so:\n~~~\nSGN_PEND_ONGOING"] {
        assert_eq!(Meaning::from_facts(&woken(said(text))), reply(text));
    }
}

#[test]
fn the_table_of_the_protocol_holds() {
    let protocol = include_str!("../../../../docs/protocol.md");
    let (_, table) = protocol.split_once("| last words | on record | meaning |\n").unwrap();
    let rows: Vec<_> = table.lines().skip(1).take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 15, "{rows:?}");
    for row in rows {
        let [words, on_record, meaning] = row.trim_matches('|').split('|').collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let words = words.trim();
        let words = words.strip_prefix("`` ").and_then(|words| words.strip_suffix(" ``")).unwrap_or_else(|| {
            words.strip_prefix('`').and_then(|words| words.strip_suffix('`')).unwrap_or_else(|| panic!("{row}"))
        });
        let words = words.replace('⏎', "\n");
        let facts = match on_record.trim() {
            "" => facts(said(&words)),
            "woken" => woken(said(&words)),
            "a result that it was not given" => Facts { has_requests: true, ..facts(said(&words)) },
            "it was given a text with that word" => given(&["say SGN_PEND_STARTED when you wait"], woken(said(&words))),
            "it was given exactly that" => Facts { results: vec![words.clone()], ..woken(said(&words)) },
            other => panic!("{other}"),
        };
        let expected = match meaning.trim() {
            "it waits for its requests" => Meaning::Requested,
            "it waits" => Meaning::Started,
            "it still waits" => Meaning::Ongoing,
            "it does not know why it was woken" => Meaning::Unhandled,
            "a reply" => reply(&words),
            other => panic!("{other}"),
        };
        assert_eq!(Meaning::from_facts(&facts), expected, "{row}");
    }
}

#[test]
fn who_may_wait_for_what_was_ended_is_told_once() {
    let replied = Facts { ended_beside: vec!["the server".into()], ..Facts::from_ending(Ending::Reply("so".into())) };
    assert_eq!(Meaning::from_facts(&replied), Meaning::CutOff);
    let told = Trouble { background: vec!["a monitor".into()], ..Trouble::default() };
    assert_eq!(Meaning::from_facts(&Facts { trouble: Some(told), ..replied.clone() }), reply("so"));
    let cut_short = Trouble { what: "529".into(), ..Trouble::default() };
    assert_eq!(Meaning::from_facts(&Facts { trouble: Some(cut_short), ..replied.clone() }), Meaning::CutOff);
    assert_eq!(Meaning::from_facts(&Facts { has_requests: true, ..replied }), Meaning::Requested);
}
