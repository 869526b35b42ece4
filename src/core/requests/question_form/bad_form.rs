//! Which forms of questions are refused.

use std::collections::HashSet;

use jiff::Timestamp;

use crate::core::requests::answer::verbatim;
use crate::core::requests::question_form::Form;
use crate::core::requests::request::RequestKind;
use crate::core::text::escape::shortened;

/// Why a form cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadForm {
    #[error("the question is empty")]
    NoQuestion,
    #[error("the question and its context have more than 1 MiB")]
    TooLong,
    #[error("the key of an option is empty")]
    EmptyKey,
    #[error("the key \"{}\" begins or ends with a blank", shortened(.0))]
    Blanks(String),
    #[error("the key \"{}\" has more than one line, or control characters", shortened(.0))]
    Control(String),
    #[error("the key \"{}\" has more than {MOST_KEY} bytes: describe the option instead", shortened(.0))]
    LongKey(String),
    #[error("two options have the key \"{}\"", shortened(.0))]
    SameKey(String),
    #[error("the key \"{}\" has a comma: commas separate the answers if several options may be chosen", shortened(.0))]
    Comma(String),
    #[error("a question has at most {MOST_OPTIONS} options")]
    TooManyOptions,
    #[error("several answers need options to choose from")]
    NothingToChoose,
    #[error("the default \"{}\" is not an answer: {why}", shortened(.default))]
    Default { default: String, why: String },
    #[error("the question would have expired at {0:.0}")]
    Expired(Timestamp),
}

const MOST_OPTIONS: usize = 100;
/// In bytes. A key is typed, and shown in lists.
const MOST_KEY: usize = 200;
/// In bytes, of all texts together.
const MOST_TEXT: usize = 1 << 20;

impl Form {
    /// The form as it is asked at `now`: its default is written like an answer.
    pub(crate) fn checked(mut self, now: Timestamp) -> Result<Self, BadForm> {
        if self.question.trim().is_empty() {
            return Err(BadForm::NoQuestion);
        }
        if self.options.len() > MOST_OPTIONS {
            return Err(BadForm::TooManyOptions);
        }
        let described: usize = self.options.iter().map(|option| option.description.len()).sum();
        if self.question.len() + self.context.as_ref().map_or(0, String::len) + described > MOST_TEXT {
            return Err(BadForm::TooLong);
        }
        if self.multiple && self.options.is_empty() {
            return Err(BadForm::NothingToChoose);
        }
        let mut seen = HashSet::new();
        for option in &self.options {
            self.check_key(&option.key)?;
            if !seen.insert(&option.key) {
                return Err(BadForm::SameKey(option.key.clone()));
            }
        }
        if let Some(expires_at) = self.expires_at.filter(|expires_at| *expires_at <= now) {
            return Err(BadForm::Expired(expires_at));
        }
        if let Some(default) = self.default.take() {
            self.default = match verbatim(&RequestKind::Ask(self.clone()), &default) {
                Ok(answer) => Some(answer),
                Err(why) => return Err(BadForm::Default { default, why: why.to_string() }),
            };
        }
        Ok(self)
    }

    fn check_key(&self, key: &str) -> Result<(), BadForm> {
        match key {
            "" => Err(BadForm::EmptyKey),
            _ if key.trim().is_empty() => Err(BadForm::EmptyKey),
            _ if key.trim() != key => Err(BadForm::Blanks(key.to_owned())),
            _ if key.chars().any(char::is_control) => Err(BadForm::Control(key.to_owned())),
            _ if key.len() > MOST_KEY => Err(BadForm::LongKey(key.to_owned())),
            _ if self.multiple && key.contains(',') => Err(BadForm::Comma(key.to_owned())),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::requests::question_form::QuestionOption;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn form(keys: &[&str]) -> Form {
        let options: Vec<_> =
            keys.iter().map(|key| QuestionOption { key: (*key).into(), description: String::new() }).collect();
        Form { free_text: options.is_empty(), options, ..Form::text("Which?") }
    }

    #[test]
    fn bad_forms_are_refused() {
        let with_default = |keys: &[&str], default: &str| Form { default: Some(default.into()), ..form(keys) };
        let several = |keys: &[&str]| Form { multiple: true, ..form(keys) };
        for (form, refused) in [
            (Form::text(" \n"), "the question is empty"),
            (form(&["a", ""]), "the key of an option is empty"),
            (form(&["a", "a"]), "two options have the key \"a\""),
            (form(&[" a"]), "the key \" a\" begins or ends with a blank"),
            (form(&["a\nb"]), "the key \"a⏎b\" has more than one line, or control characters"),
            (form(&["a\u{1b}[2J"]), "the key \"a\\u{1b}[2J\" has more than one line, or control characters"),
            (
                several(&["a,b"]),
                "the key \"a,b\" has a comma: commas separate the answers if several options may be chosen",
            ),
            (
                with_default(&["a"], "b"),
                "the default \"b\" is not an answer: \"b\" is not one of the options: choose one of 1. a",
            ),
            (
                with_default(&["a", "b"], "a,b"),
                "the default \"a,b\" is not an answer: \"a,b\" is not one of the options: choose one of 1. a, 2. b",
            ),
            (with_default(&[], " "), "the default \" \" is not an answer: the answer is empty"),
            (several(&[]), "several answers need options to choose from"),
            (Form { expires_at: Some(NOW), ..form(&[]) }, "the question would have expired at 1970-01-01T00:00:00Z"),
            (Form::text(&"x".repeat(MOST_TEXT + 1)), "the question and its context have more than 1 MiB"),
        ] {
            assert_eq!(form.checked(NOW).map_err(|bad| bad.to_string()), Err(refused.to_owned()));
        }
        let many: Vec<String> = (0..=MOST_OPTIONS).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(form(&many).checked(NOW), Err(BadForm::TooManyOptions));
        assert!(form(&many[1..]).checked(NOW).is_ok());
    }

    #[test]
    fn a_default_is_any_answer_and_written_like_one() {
        let checked = |form: Form, default: &str| {
            Form { default: Some(default.into()), ..form }.checked(NOW).map(|form| form.default.unwrap())
        };
        let both = || Form { multiple: true, ..form(&["a", "b"]) };
        assert_eq!(checked(both(), "b,a").as_deref(), Ok("b, a"));
        assert_eq!(checked(form(&["a"]), "a").as_deref(), Ok("a"));
        assert_eq!(checked(Form { free_text: true, ..form(&["a"]) }, "1").as_deref(), Ok("1"));
        assert_eq!(checked(form(&[]), " some text").as_deref(), Ok(" some text"));
    }
}
