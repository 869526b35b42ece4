//! Where a posted question and its answer are.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

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
    /// As the agent gave it.
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
