//! The form of a question: what an agent asks, and what can be answered.

pub(crate) mod answer_file;
pub(crate) mod bad_form;
pub(crate) mod question_file;

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::core::id::RequestId;
use crate::core::requests::question_form::answer_file::{AnswerFile, Posted};
use crate::core::text::escape::shortened;

/// A question as its agent asks it, with agent-cli or with Claude Code's own tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Form {
    /// Its text.
    pub question: String,
    /// The question in a word or two. Only Claude Code's own tool has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// What a person should know before they answer.
    pub context: Option<String>,
    /// In the order in which people see them.
    pub options: Vec<QuestionOption>,
    /// Whether several options may be chosen.
    pub multiple: bool,
    /// Whether any text is an answer. Always true without options.
    pub free_text: bool,
    /// The answer if none is given until `expires_at`: one that the form allows.
    pub default: Option<String>,
    /// When the question expires.
    pub expires_at: Option<Timestamp>,
    /// Whether it was asked with Claude Code's own tool.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub native: bool,
    /// Where its agent has posted it as a file, if it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub posted: Option<Posted>,
    /// The questions that it was asked together with, if there is one result for all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<Batch>,
    /// The file that contains it, and in which a person can answer it. Absolute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The content of the file in which it can be answered, if it was read. Never stored.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub answer_file: Option<Box<AnswerFile>>,
}

/// What a question is a part of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Batch {
    /// All questions that were asked together have the same one. It belongs to no request.
    pub id: RequestId,
    /// The name of the question in the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// One option.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QuestionOption {
    /// What is chosen, and what the agent gets. Claude Code calls it a label.
    #[serde(alias = "label")]
    pub key: String,
    /// Its meaning. May be empty.
    #[serde(default)]
    pub description: String,
}

impl Form {
    /// A question that any text answers.
    pub fn text(question: &str) -> Self {
        Self {
            question: question.to_owned(),
            header: None,
            context: None,
            options: Vec::new(),
            multiple: false,
            free_text: true,
            default: None,
            expires_at: None,
            native: false,
            posted: None,
            batch: None,
            file: None,
            answer_file: None,
        }
    }

    /// The keys that `text` names, joined as Claude Code joins them. `None`: it names no option, or more than may be chosen.
    ///
    /// Options are named by their keys or, if [they have some](Self::is_numbered), by their numbers, from 1; several are separated
    /// by commas.
    pub(crate) fn chosen(&self, text: &str) -> Option<String> {
        let one = |text: &str| self.named(text.trim());
        let several = || joined(text.split(',').map(one)).filter(|_| self.multiple);
        one(text).map(str::to_owned).or_else(several)
    }

    /// The answer that is exactly `text`: numbers have no meaning. `None`: it neither names options nor is free text allowed.
    pub(crate) fn exactly(&self, text: &str) -> Option<String> {
        if self.free_text {
            return Some(text.to_owned());
        }
        let one = |text: &str| self.options.iter().find(|option| option.key == text.trim()).map(|option| &*option.key);
        let several = || joined(text.split(',').map(one)).filter(|_| self.multiple);
        one(text).map(str::to_owned).or_else(several)
    }

    /// The file in which it can be answered, if there is one.
    pub(crate) fn answered_in(&self) -> Option<PathBuf> {
        match &self.posted {
            Some(posted) => posted.answered(),
            None => self.file.clone(),
        }
    }

    fn named(&self, text: &str) -> Option<&str> {
        let keys = || self.options.iter().map(|option| option.key.as_str());
        let numbered = || keys().nth(text.parse::<usize>().ok().filter(|_| self.is_numbered())?.checked_sub(1)?);
        keys().find(|key| *key == text).or_else(numbered)
    }

    /// Whether options have numbers. They have none if a key looks like the number of another option: one of two people would
    /// then choose something else than they mean.
    pub(crate) fn is_numbered(&self) -> bool {
        self.misleading_key().is_none()
    }

    fn misleading_key(&self) -> Option<&str> {
        let numbers = 1..=self.options.len();
        let is_misleading =
            |own: usize, key: &str| key.parse().is_ok_and(|other| own != other && numbers.contains(&other));
        self.options
            .iter()
            .zip(1..)
            .find(|(option, own)| is_misleading(*own, &option.key))
            .map(|(option, _)| &*option.key)
    }

    /// The mark before an option in a list. `at`: from 0.
    pub(crate) fn mark(&self, at: usize) -> String {
        if self.is_numbered() { format!("{}.", at + 1) } else { "-".to_owned() }
    }

    /// What a person could type to choose something; `None`: there are no options.
    pub(crate) fn example(&self) -> Option<&str> {
        match (self.options.len(), self.multiple) {
            (0, _) => None,
            (2.., true) if self.is_numbered() => Some("1,2"),
            _ => Some(self.misleading_key().unwrap_or("1")),
        }
    }

    /// Whether `text` is a number, or a list with numbers in it.
    pub(crate) fn is_meant_as_numbers(&self, text: &str) -> bool {
        let among_keys = || {
            let parts = || text.split(',').map(str::trim);
            parts().any(is_number) && parts().all(|part| is_number(part) || self.named(part).is_some())
        };
        let parts = text.split(|c: char| c.is_whitespace() || SEPARATORS.contains(&c));
        let only_numbers = parts.filter(|part| !part.is_empty()).all(is_number_or_range);
        only_numbers && text.contains(char::is_numeric) || among_keys()
    }

    /// The same question, which expires this many seconds after `now` unless it has its own expiry.
    pub(crate) fn expiring_after(self, seconds: Option<u64>, now: Timestamp) -> Self {
        let after = seconds.and_then(|seconds| i64::try_from(seconds).ok());
        let at = || Timestamp::from_second(now.as_second().checked_add(after?)?).ok();
        Self { expires_at: self.expires_at.or_else(at), ..self }
    }

    /// Whether it has expired at `now` unless it was answered.
    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }

    /// How long it waited for an answer if it was asked at `made` and has expired.
    pub(crate) fn seconds_since(&self, made: Timestamp) -> u64 {
        let waited = self.expires_at.map(|expires_at| expires_at.duration_since(made).as_secs());
        waited.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or_default()
    }

    /// What the agent gets after the question has expired. A default is its first line.
    pub(crate) fn unanswered(&self) -> String {
        let until = self.expires_at.map(|expires_at| format!(" until {expires_at:.0}")).unwrap_or_default();
        match &self.default {
            Some(default) => format!("{default}\n\n(This is the default: no answer{until}.)"),
            None => format!("the question has expired: no answer{until}"),
        }
    }

    /// How the options are named in an answer, and whether it can be something else; `None`: there are none.
    pub(crate) fn naming(&self) -> Option<String> {
        let what = match (self.options.is_empty(), self.is_numbered(), self.multiple) {
            (true, ..) => return None,
            (_, true, false) => "the number or key of an option",
            (_, false, false) => "the key of an option",
            (_, true, true) => "numbers or keys of options, with commas",
            (_, false, true) => "keys of options, with commas",
        };
        Some(format!("{what}{}", if self.free_text { ", or any text" } else { "" }))
    }

    /// The options, on one line.
    pub(crate) fn offered(&self) -> String {
        let is_numbered = self.is_numbered();
        let one = |(at, option): (usize, &QuestionOption)| match shortened(option.key.trim()) {
            key if is_numbered => format!("{} {key}", self.mark(at)),
            key => key,
        };
        let all: Vec<_> = self.options.iter().enumerate().map(one).collect();
        let how_many = if self.multiple { "any of" } else { "one of" };
        let keys = if is_numbered { "" } else { "the keys " };
        format!("choose {how_many} {keys}{}", all.join(", "))
    }
}

/// Each of these keys once. `None`: one of them is missing.
fn joined<'a>(keys: impl Iterator<Item = Option<&'a str>>) -> Option<String> {
    let mut chosen: Vec<&str> = Vec::new();
    for key in keys {
        let key = key?;
        if !chosen.contains(&key) {
            chosen.push(key);
        }
    }
    Some(chosen.join(", "))
}

/// Separators that people put between numbers.
const SEPARATORS: [char; 5] = [',', ';', '&', '/', '+'];

/// A number as people type it to choose from a list: `7`, `7.`, `#7`, `-1`.
fn is_number(text: &str) -> bool {
    let text = text.strip_prefix(['#', '-', '+']).unwrap_or(text);
    let digits = text.strip_suffix(['.', ')']).unwrap_or(text);
    !digits.is_empty() && digits.chars().all(char::is_numeric)
}

/// The same, or `1-3`. A text with more hyphens may be a date.
fn is_number_or_range(text: &str) -> bool {
    is_number(text) || text == "-" || text.split_once('-').is_some_and(|(from, to)| is_number(from) && is_number(to))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_form_is_written_whole() {
        assert_eq!(
            serde_json::to_value(Form::text("When?")).unwrap(),
            json!({"question": "When?", "context": null, "options": [], "multiple": false, "free_text": true,
                "default": null, "expires_at": null})
        );
    }

    #[test]
    fn a_form_is_read_as_it_was_written() {
        let options = vec![QuestionOption { key: "Jan".into(), description: "January".into() }];
        let chosen = Form { header: Some("H".into()), options, multiple: true, native: true, ..Form::text("When?") };
        for form in [Form::text("When?"), chosen] {
            assert_eq!(serde_json::from_value::<Form>(serde_json::to_value(&form).unwrap()).unwrap(), form);
        }
    }
}
