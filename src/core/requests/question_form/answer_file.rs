//! The files in which a question can be answered: the paths for a posted question, and the content that was seen, which is
//! never stored.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::core::text::time::time_until;

/// The folder of questions without an answer.
pub(crate) const PENDING: &str = "pending";
/// The folder of answers.
pub(crate) const ANSWERED: &str = "answered";

/// A question that its agent has posted as a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Posted {
    /// The folder that a person has named. Absolute.
    pub dir: PathBuf,
    /// The id that its agent gave.
    pub id: String,
    /// Why the file cannot be read as a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

impl Posted {
    /// The name of its files. `None`: no file can have that name, or it would lead elsewhere.
    pub(crate) fn file_name(&self) -> Option<String> {
        const LONGEST: usize = 100;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let is_good = (1..=LONGEST).contains(&self.id.len()) && self.id.chars().all(is_plain);
        (is_good && !self.id.starts_with(['.', '-'])).then(|| format!("{}.json", self.id))
    }

    /// Its own file.
    pub(crate) fn pending(&self) -> Option<PathBuf> {
        Some(self.dir.join(PENDING).join(self.file_name()?))
    }

    /// The file of its answer.
    pub(crate) fn answered(&self) -> Option<PathBuf> {
        Some(self.dir.join(ANSWERED).join(self.file_name()?))
    }
}

/// A file, and what is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AnswerFile {
    /// Absolute.
    pub path: PathBuf,
    #[serde(flatten)]
    pub content: AnswerFileContent,
}

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum AnswerFileContent {
    /// It has no answer yet.
    Unanswered { why: String },
    /// Its content does not count as an answer.
    Refused { why: String },
    /// An answer that counts from this time on, unless the file changes.
    Soon { counts_at: Timestamp },
    /// An answer that the next check records.
    Answered,
}

impl AnswerFile {
    /// A note for a person who has written something there.
    pub(crate) fn note(&self, now: Timestamp) -> Option<String> {
        (!matches!(self.content, AnswerFileContent::Unanswered { .. })).then(|| self.in_words(now))
    }

    /// Whether a person has written something that does not count.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.content, AnswerFileContent::Refused { .. })
    }

    /// The same in any state. The path was chosen by an agent.
    pub(crate) fn in_words(&self, now: Timestamp) -> String {
        let path = self.path.display();
        match &self.content {
            AnswerFileContent::Unanswered { why } | AnswerFileContent::Refused { why } => format!("{path} {why}"),
            AnswerFileContent::Soon { counts_at } => {
                let left = time_until(*counts_at, now);
                format!("{path} has an answer, which counts in {left} unless the file changes")
            }
            AnswerFileContent::Answered => format!("{path} has an answer, which the next resume records"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_leads_nowhere_else() {
        let name = |id: &str| Posted { dir: "/q".into(), id: id.into(), trouble: None }.file_name();
        assert_eq!(name("q-2026.11_7").as_deref(), Some("q-2026.11_7.json"));
        for bad in ["", ".", "..", "../x", "a/b", ".hidden", "-x", "a b", "a\nb", "é", "a\0b", &"x".repeat(101)] {
            assert_eq!(name(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_question_and_its_answer_have_the_same_name_in_two_folders() {
        let posted = |id: &str| Posted { dir: "/q".into(), id: id.into(), trouble: None };
        assert_eq!(posted("x").pending(), Some("/q/pending/x.json".into()));
        assert_eq!(posted("x").answered(), Some("/q/answered/x.json".into()));
        assert_eq!((posted("../x").pending(), posted("../x").answered()), (None, None));
    }
}
