//! The choices that a question offers, and which of them a text names.

use serde::{Deserialize, Serialize};

use crate::core::text::escape::shortened;

/// The choices offered with a question. Any other text is an answer too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choices {
    /// The question in a word or two.
    pub header: String,
    /// Whether several may be chosen.
    pub multi_select: bool,
    /// The choices, in the order in which people see them.
    pub options: Vec<Choice>,
}

/// One choice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The label that is chosen.
    pub label: String,
    /// What that means.
    pub description: String,
}

impl Choices {
    /// The labels that `text` names, as Claude Code joins them. `None`: it names no choice, or more than may be chosen.
    #[must_use]
    pub(crate) fn chosen(&self, text: &str) -> Option<String> {
        let one = |text: &str| self.named(text.trim()).map(str::to_owned);
        let several = || text.split(',').map(one).collect::<Option<Vec<_>>>().map(|labels| labels.join(", "));
        one(text).or_else(|| several().filter(|_| self.multi_select))
    }

    fn named(&self, text: &str) -> Option<&str> {
        let labels = || self.options.iter().map(|option| option.label.as_str());
        let numbered = || labels().nth(text.parse::<usize>().ok()?.checked_sub(1)?);
        labels().find(|label| *label == text).or_else(numbered)
    }

    /// Whether `text` is a number, or a list with numbers in it.
    #[must_use]
    pub(crate) fn is_meant_as_numbers(&self, text: &str) -> bool {
        let among_labels = || {
            let parts = || text.split(',').map(str::trim);
            parts().any(is_number) && parts().all(|part| is_number(part) || self.named(part).is_some())
        };
        let parts = text.split(|c: char| c.is_whitespace() || SEPARATORS.contains(&c));
        let only_numbers = parts.filter(|part| !part.is_empty()).all(is_number_or_range);
        only_numbers && text.contains(char::is_numeric) || among_labels()
    }

    /// The choices, on one line.
    #[must_use]
    pub(crate) fn offered(&self) -> String {
        let one = |(at, option): (usize, &Choice)| format!("{}. {}", at + 1, shortened(option.label.trim()));
        let all: Vec<_> = self.options.iter().enumerate().map(one).collect();
        let how_many = if self.multi_select { "any of" } else { "one of" };
        format!("choose {how_many} {}", all.join(", "))
    }
}

/// Separators that people put between numbers.
const SEPARATORS: [char; 5] = [',', ';', '&', '/', '+'];

/// A number as somebody types it to choose from a list: `7`, `7.`, `#7`, `-1`.
fn is_number(text: &str) -> bool {
    let text = text.strip_prefix(['#', '-', '+']).unwrap_or(text);
    let digits = text.strip_suffix(['.', ')']).unwrap_or(text);
    !digits.is_empty() && digits.chars().all(char::is_numeric)
}

/// The same, or `1-3`. A text with more hyphens may be a date.
fn is_number_or_range(text: &str) -> bool {
    is_number(text) || text == "-" || text.split_once('-').is_some_and(|(from, to)| is_number(from) && is_number(to))
}
