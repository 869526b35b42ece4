//! What counts as an answer to a question, an approval or a plan.

use crate::core::requests::proposed_plan::permit;
use crate::core::requests::request::RequestKind;
use crate::core::text::escape::shortened;

/// Why a text is not an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoAnswer {
    #[error("the answer is empty")]
    Empty,
    /// An approval needs `allow` or `deny`.
    #[error("answer with \"allow\", or with \"deny\" and optionally a reason")]
    NeitherAllowNorDeny,
    /// A plan needs `allow` or `deny`.
    #[error(
        "answer with \"allow\" and optionally the mode to continue in ({modes}), or with \"deny\" and optionally a reason"
    )]
    NotOnThePlan { modes: String },
    /// The question only accepts its options.
    #[error("\"{}\" is not one of the options: {offered}", shortened(given.trim()))]
    NotAnOption { given: String, offered: String },
    /// Numbers that are not options.
    #[error("\"{}\" is not one of the options: {offered}", shortened(given))]
    NoSuchChoice { given: String, offered: String },
}

/// The answer that a person gives to `kind` with `text`.
///
/// A text that names no option is the answer itself if free text is allowed, unless it consists of numbers, which is more
/// likely a typing mistake.
pub(crate) fn from_text(kind: &RequestKind, text: &str) -> Result<String, NoAnswer> {
    match kind {
        RequestKind::Ask(form) if !form.options.is_empty() => match form.chosen(text) {
            None if !form.free_text => verbatim(kind, text),
            None if form.is_meant_as_numbers(text) => {
                Err(NoAnswer::NoSuchChoice { given: text.trim().to_owned(), offered: form.offered() })
            }
            Some(chosen) => Ok(chosen),
            None => verbatim(kind, text),
        },
        _ => verbatim(kind, text),
    }
}

/// The answer that a person gives to `kind` with exactly `text`, even if it is a number.
pub(crate) fn verbatim(kind: &RequestKind, text: &str) -> Result<String, NoAnswer> {
    if text.trim().is_empty() {
        return Err(NoAnswer::Empty);
    }
    if let RequestKind::Ask(form) = kind {
        let no_option = || NoAnswer::NotAnOption { given: text.to_owned(), offered: form.offered() };
        return form.exactly(text).ok_or_else(no_option);
    }
    if matches!(kind, RequestKind::Permission { .. }) && permit(text).is_none() {
        return Err(NoAnswer::NeitherAllowNorDeny);
    }
    if let RequestKind::Plan(plan) = kind
        && plan.decided(text).is_none()
    {
        return Err(NoAnswer::NotOnThePlan { modes: plan.modes.join(", ") });
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::core::requests::proposed_plan::Permit;
    use crate::core::requests::question_form::{Form, QuestionOption};

    fn asked(labels: &[&str], multi_select: bool) -> RequestKind {
        let option = |key: &&str| QuestionOption { key: (*key).to_owned(), description: "x".into() };
        let options = labels.iter().map(option).collect();
        RequestKind::Ask(Form { options, multiple: multi_select, native: true, ..Form::text("Which?") })
    }

    #[test]
    fn one_choice_is_named_by_its_label_or_its_number() {
        let kind = asked(&["Apple", "Pear, ripe"], false);
        for (text, expected) in [
            ("Apple", "Apple"),
            (" Apple\n", "Apple"),
            ("1", "Apple"),
            ("2", "Pear, ripe"),
            ("Pear, ripe", "Pear, ripe"),
            ("apple", "apple"),
            ("Apple, Pear", "Apple, Pear"),
            ("3.5", "3.5"),
            ("2025-01-01", "2025-01-01"),
            ("10:30", "10:30"),
            ("2 of them", "2 of them"),
            ("-", "-"),
            ("  neither\n", "  neither\n"),
        ] {
            assert_eq!(from_text(&kind, text).as_deref(), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn several_choices_are_named_where_several_may_be_chosen() {
        let kind = asked(&["Apple", "Pear", "Nut, salted"], true);
        for (text, expected) in [
            ("Apple", "Apple"),
            ("2,1", "Pear, Apple"),
            ("Apple, 2", "Apple, Pear"),
            ("3", "Nut, salted"),
            ("Nut, salted", "Nut, salted"),
            ("Apple, figs", "Apple, figs"),
        ] {
            assert_eq!(from_text(&kind, text).as_deref(), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn numbers_that_choose_nothing_are_no_answer() {
        let numbers = [
            "0", "7", " 7\n", "-1", "+7", "007", "99999999999999999999999", "7.", "#7", "\u{ff17}", "1 7", "1;7",
            "1&2", "1-2", "1 - 2", "7,7", "1,,7",
        ];
        for kind in [asked(&["Apple", "Pear"], false), asked(&["Apple", "Pear"], true)] {
            for text in numbers {
                assert!(matches!(from_text(&kind, text), Err(NoAnswer::NoSuchChoice { .. })), "{text:?}");
                assert_eq!(verbatim(&kind, text).as_deref(), Ok(text));
            }
        }
        let (one, several) = (asked(&["Apple", "Pear"], false), asked(&["Apple", "Pear"], true));
        for text in ["1,2", "1, 2", "Apple, 2"] {
            assert!(from_text(&one, text).is_err(), "{text:?}");
            assert!(from_text(&several, text).is_ok(), "{text:?}");
        }
        for text in ["1,3", "Apple, 3", "3, Apple", "1,,2"] {
            assert!(from_text(&several, text).is_err(), "{text:?}");
        }
        let error = from_text(&asked(&["Apple\n\u{1b}[2J", "Pear"], false), "7").unwrap_err();
        assert_eq!(error.to_string(), "\"7\" is not one of the options: choose one of 1. Apple⏎\\u{1b}[2J, 2. Pear");
    }

    proptest! {
        #[test]
        fn whatever_is_recorded_is_a_choice_or_has_more_than_numbers(
            text in "[ 0-9,;&/+#.)-]{1,8}|\\PC{0,6}", several: bool, labels in prop::collection::vec("[a-z0-9]{1,3}", 1..4),
        ) {
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            if let Ok(recorded) = from_text(&asked(&labels, several), &text) {
                let chosen = recorded.split(", ").all(|label| labels.contains(&label));
                prop_assert!(chosen || text.trim().parse::<u64>().is_err(), "{recorded}");
            }
        }
    }

    fn only(keys: &[&str], multiple: bool) -> RequestKind {
        match asked(keys, multiple) {
            RequestKind::Ask(form) => RequestKind::Ask(Form { free_text: false, native: false, ..form }),
            other => other,
        }
    }

    #[test]
    fn without_free_text_only_options_are_answers() {
        let (one, several) = (only(&["yes", "2", "not now"], false), only(&["yes", "2", "not now"], true));
        for (text, recorded) in [("yes", "yes"), (" yes\n", "yes"), ("1", "yes"), ("2", "2"), ("3", "not now")] {
            assert_eq!(from_text(&one, text).as_deref(), Ok(recorded), "{text:?}");
            assert_eq!(from_text(&several, text).as_deref(), Ok(recorded), "{text:?}");
        }
        assert_eq!(from_text(&several, "3,yes,1").as_deref(), Ok("not now, yes"));
        for text in ["Yes", "no", "4", "1-2", "yes, no", "yes,", "yes or 2"] {
            for kind in [&one, &several] {
                assert!(matches!(from_text(kind, text), Err(NoAnswer::NotAnOption { .. })), "{text:?}");
                assert!(matches!(verbatim(kind, text), Err(NoAnswer::NotAnOption { .. })), "{text:?}");
            }
        }
        assert!(from_text(&one, "yes, 2").is_err());
        assert!(verbatim(&one, "1").is_err(), "as a text it is none of the keys");
        let error = from_text(&one, "no").unwrap_err().to_string();
        assert_eq!(error, "\"no\" is not one of the options: choose one of 1. yes, 2. 2, 3. not now");
    }

    proptest! {
        #[test]
        fn what_is_recorded_without_free_text_names_options_in_their_own_bytes(
            text in "[ 0-9,a-c]{1,8}|\\PC{0,6}", several: bool, exact: bool,
            keys in prop::collection::hash_set("[a-c0-9]{1,2}", 1..4),
        ) {
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            let kind = only(&keys, several);
            let recorded = if exact { verbatim(&kind, &text) } else { from_text(&kind, &text) };
            if let Ok(recorded) = recorded {
                let chosen: Vec<&str> = recorded.split(", ").collect();
                prop_assert!(chosen.iter().all(|key| keys.contains(key)), "{recorded}");
                prop_assert!(several || chosen.len() == 1);
                // An answer names itself, so it can be given again as it was recorded.
                prop_assert_eq!(verbatim(&kind, &recorded), Ok(recorded));
            }
            for key in &keys {
                prop_assert_eq!(from_text(&kind, key), Ok((*key).to_owned()));
            }
        }
    }

    #[test]
    fn where_a_key_could_be_the_number_of_another_option_only_keys_count() {
        for (keys, text, recorded) in [
            (["2", "1", "x"], "1", Ok("1")),
            (["2", "1", "x"], "2", Ok("2")),
            (["2", "1", "x"], "3", Err("\"3\" is not one of the options: choose one of the keys 2, 1, x")),
            (["00", "01", "x"], "1", Err("\"1\" is not one of the options: choose one of the keys 00, 01, x")),
            (["00", "01", "x"], "01", Ok("01")),
            (["1", "x", "3"], "2", Ok("x")),
            (["10", "20", "30"], "2", Ok("20")),
            (["10", "20", "30"], "30", Ok("30")),
        ] {
            for kind in [asked(&keys, false), only(&keys, false)] {
                let read = from_text(&kind, text).map_err(|error| error.to_string());
                assert_eq!(read, recorded.map(str::to_owned).map_err(str::to_owned), "{keys:?} {text}");
            }
        }
        let several = asked(&["2", "1", "x"], true);
        assert_eq!(from_text(&several, "1,x").as_deref(), Ok("1, x"));
        assert!(from_text(&several, "1,3").is_err());
    }

    #[test]
    fn an_example_is_an_answer() {
        for (keys, multiple, example) in [
            (&["a", "b"][..], false, "1"),
            (&["a", "b"], true, "1,2"),
            (&["a"], true, "1"),
            (&["-", "1"], true, "1"),
            (&["b", "+1"], false, "+1"),
        ] {
            let kind = only(keys, multiple);
            let RequestKind::Ask(form) = &kind else { unreachable!("it is a question") };
            assert_eq!(form.example(), Some(example));
            assert!(from_text(&kind, example).is_ok(), "{keys:?}");
        }
        assert_eq!(Form::text("When?").example(), None);
    }

    #[test]
    fn a_permission_is_given_or_not() {
        let deny = |reason: &str| Some(Permit::Deny { reason: reason.to_owned() });
        for (text, expected) in [
            ("allow", Some(Permit::Allow)),
            (" allow\n", Some(Permit::Allow)),
            ("deny", deny("")),
            ("deny: not today", deny("not today")),
            ("deny\nnot today\n", deny("not today")),
            ("Allow", Some(Permit::Allow)),
            ("ALLOW", Some(Permit::Allow)),
            ("Deny, not today", deny("not today")),
            ("allow it", None),
            ("yes", None),
            ("y", None),
            ("denying", None),
        ] {
            assert_eq!(permit(text), expected, "{text:?}");
            let kind = RequestKind::Permission {
                tool: "Bash".into(),
                input: serde_json::Value::Null,
                reason: None,
                place: None,
            };
            assert_eq!(from_text(&kind, text).is_ok(), expected.is_some(), "{text:?}");
        }
    }

    #[test]
    fn a_plain_question_takes_any_text_but_none() {
        let plain = RequestKind::Ask(Form::text("When?"));
        assert_eq!(from_text(&plain, " 1 \n").as_deref(), Ok(" 1 \n"));
        for kind in [plain, asked(&["Apple"], true)] {
            assert_eq!(from_text(&kind, " \n"), Err(NoAnswer::Empty));
        }
    }
}
