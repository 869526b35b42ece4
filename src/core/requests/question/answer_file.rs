//! The file in which an open question can be answered, as it was seen. It is never stored.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::Serialize;

use crate::core::text::age::time_until;

/// A file, and what is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AnswerFile {
    /// Absolute.
    pub path: PathBuf,
    #[serde(flatten)]
    pub content: AnswerFileContent,
}

/// What is in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum AnswerFileContent {
    /// It has no answer yet.
    Unanswered { why: String },
    /// Something that does not count as an answer.
    Refused { why: String },
    /// An answer that counts from then on, unless the file changes.
    Soon { counts_at: Timestamp },
    /// An answer that the next look records.
    Answered,
}

impl AnswerFile {
    /// What a person should know who has written something there.
    pub(crate) fn note(&self, now: Timestamp) -> Option<String> {
        (!matches!(self.content, AnswerFileContent::Unanswered { .. })).then(|| self.in_words(now))
    }

    /// Whether somebody has written something that does not count.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.content, AnswerFileContent::Refused { .. })
    }

    /// The same in any case. The path is an agent's.
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
