//! What a person may be asked besides a plain question, and what counts as an answer to it.

use serde::{Deserialize, Serialize};

use super::request::Wish;

/// The choices that come with a question. Any other text is an answer too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choices {
    /// The question in a word or two.
    pub header: String,
    /// Whether several may be chosen.
    pub multi_select: bool,
    /// What may be chosen, in the order in which people see it.
    pub options: Vec<Choice>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// What is chosen.
    pub label: String,
    /// What that means.
    pub description: String,
}

/// Why a text is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// Nothing was said.
    #[error("the answer is empty")]
    Empty,
    /// A permission is given or not.
    #[error("a permission is answered with \"allow\", or with \"deny\" and perhaps a reason")]
    NeitherAllowNorDeny,
}

/// What a person decides about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permit {
    /// It may run, once.
    Allow,
    /// It may not.
    Deny {
        /// Why, in the person's words. May be empty.
        reason: String,
    },
}

/// The decision in an answer. `None`: it is neither.
#[must_use]
pub fn permit(text: &str) -> Option<Permit> {
    let text = text.trim();
    let (word, reason) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    match word.trim_end_matches([':', ',']) {
        "allow" if reason.is_empty() => Some(Permit::Allow),
        "deny" => Some(Permit::Deny { reason: reason.trim().to_owned() }),
        _ => None,
    }
}

/// The answer that a person gives to `wish` with `text`.
///
/// Choices are named by their labels or by their numbers, from 1; several are separated by commas. What names no choice is
/// the answer as it is. So is a number that is itself a label.
///
/// # Errors
///
/// [`NoAnswer`] where the text cannot be one.
pub fn answer(wish: &Wish, text: &str) -> Result<String, NoAnswer> {
    if text.trim().is_empty() {
        return Err(NoAnswer::Empty);
    }
    Ok(match wish {
        Wish::Ask { choices: Some(choices), .. } => choices.chosen(text).unwrap_or_else(|| text.to_owned()),
        Wish::Permission { .. } if permit(text).is_none() => return Err(NoAnswer::NeitherAllowNorDeny),
        _ => text.to_owned(),
    })
}

impl Choices {
    /// The labels that `text` names, as Claude Code joins them. `None`: it names no choice, or more than may be chosen.
    fn chosen(&self, text: &str) -> Option<String> {
        let one = |text: &str| self.named(text.trim()).map(str::to_owned);
        let several = || text.split(',').map(one).collect::<Option<Vec<_>>>().map(|labels| labels.join(", "));
        one(text).or_else(|| several().filter(|_| self.multi_select))
    }

    fn named(&self, text: &str) -> Option<&str> {
        let labels = || self.options.iter().map(|option| option.label.as_str());
        let numbered = || labels().nth(text.parse::<usize>().ok()?.checked_sub(1)?);
        labels().find(|label| *label == text).or_else(numbered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(labels: &[&str], multi_select: bool) -> Wish {
        let option = |label: &&str| Choice { label: (*label).to_owned(), description: "x".into() };
        let options = labels.iter().map(option).collect();
        let choices = Choices { header: "H".into(), multi_select, options };
        Wish::Ask { question: "Which?".into(), choices: Some(choices) }
    }

    #[test]
    fn one_choice_is_named_by_its_label_or_its_number() {
        let wish = asked(&["Apple", "Pear, ripe"], false);
        for (text, expected) in [
            ("Apple", "Apple"),
            (" Apple\n", "Apple"),
            ("1", "Apple"),
            ("2", "Pear, ripe"),
            ("Pear, ripe", "Pear, ripe"),
            ("0", "0"),
            ("3", "3"),
            ("1, 2", "1, 2"),
            ("apple", "apple"),
            ("  neither\n", "  neither\n"),
        ] {
            assert_eq!(answer(&wish, text).as_deref(), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn several_choices_are_named_where_several_may_be_chosen() {
        let wish = asked(&["Apple", "Pear", "Nut, salted"], true);
        for (text, expected) in [
            ("Apple", "Apple"),
            ("2,1", "Pear, Apple"),
            ("Apple, 2", "Apple, Pear"),
            ("3", "Nut, salted"),
            ("Nut, salted", "Nut, salted"),
            ("Apple, figs", "Apple, figs"),
            ("1,,2", "1,,2"),
        ] {
            assert_eq!(answer(&wish, text).as_deref(), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn a_number_that_is_a_label_is_that_label() {
        assert_eq!(answer(&asked(&["2", "1"], false), "1").as_deref(), Ok("1"));
        assert_eq!(answer(&asked(&["10", "20"], false), "2").as_deref(), Ok("20"));
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
            ("allow it", None),
            ("yes", None),
            ("Allow", None),
            ("denying", None),
        ] {
            assert_eq!(permit(text), expected, "{text:?}");
            let wish = Wish::Permission { tool: "Bash".into(), input: serde_json::Value::Null };
            assert_eq!(answer(&wish, text).is_ok(), expected.is_some(), "{text:?}");
        }
    }

    #[test]
    fn a_plain_question_takes_any_text_but_none() {
        let plain = Wish::Ask { question: "When?".into(), choices: None };
        assert_eq!(answer(&plain, " 1 \n").as_deref(), Ok(" 1 \n"));
        for wish in [plain, asked(&["Apple"], true)] {
            assert_eq!(answer(&wish, " \n"), Err(NoAnswer::Empty));
        }
    }
}
