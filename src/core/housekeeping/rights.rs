//! What users of a shared database may do, apart from its owner, who may do everything.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// What a user may do with the chains of a project. Each right includes [`Right::Read`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Right {
    /// See chains and questions.
    Read,
    /// Answer questions, and allow or deny calls.
    Answer,
    /// Stop, pause and rename chains, and send messages to agents.
    Steer,
    /// Start, continue and remove chains, and everything else.
    Start,
}

impl Right {
    pub(crate) const ALL: [Self; 4] = [Self::Read, Self::Answer, Self::Steer, Self::Start];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Answer => "answer",
            Self::Steer => "steer",
            Self::Start => "start",
        }
    }

    /// What is not allowed without it.
    pub(crate) fn action(self) -> &'static str {
        match self {
            Self::Read => "see chains",
            Self::Answer => "answer questions",
            Self::Steer => "steer chains",
            Self::Start => "start, continue or remove chains",
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text is not the name of a right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a right: the rights are read, answer, steer and start")]
pub struct NotARight(String);

impl FromStr for Right {
    type Err = NotARight;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|right| right.name() == text).ok_or_else(|| NotARight(text.to_owned()))
    }
}

/// A right of a user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Grant {
    /// A role of the database: a user, or a group of users.
    pub(crate) user: String,
    /// The directory in which the chains were started, or one above it.
    pub(crate) project: PathBuf,
    pub(crate) right: Right,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_read_as_they_are_written() {
        for right in Right::ALL {
            assert_eq!(right.to_string().parse(), Ok(right));
        }
        let error = "Read".parse::<Right>().unwrap_err().to_string();
        assert_eq!(error, "\"Read\" is not a right: the rights are read, answer, steer and start");
    }
}
