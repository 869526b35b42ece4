//! Identifiers, and how a person may shorten them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::core::text::escape::shortened;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        #[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
        pub struct $name(pub Uuid);

        impl $name {
            /// A new random id.
            pub fn random() -> Self {
                Self(Uuid::new_v4())
            }

            /// The first eight characters: what lists show to people.
            pub fn short(self) -> String {
                self.0.simple().to_string()[..8].to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }
    };
}

id! {
    /// An agent, for its whole life. Also the id of its Claude session, unless the session was adopted.
    FrameId
}
id! {
    /// A Claude Code session.
    SessionId
}
id! {
    /// One `claude` process for an agent.
    AttemptId
}
id! {
    /// A request that an agent made. The id of a question is the id of the request that asked it.
    RequestId
}
id! {
    /// A message to an agent.
    MessageId
}
id! {
    /// A notification for a person.
    NotificationId
}

impl From<FrameId> for SessionId {
    fn from(frame: FrameId) -> Self {
        Self(frame.0)
    }
}

impl From<FrameId> for AttemptId {
    fn from(frame: FrameId) -> Self {
        Self(frame.0)
    }
}

/// The beginning of an id, in the form the database stores: lower case, with hyphens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdPrefix(String);

/// Why a text cannot be the beginning of an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadId {
    /// Fewer than [`IdPrefix::SHORTEST`] characters.
    #[error("\"{}\" is too short for an id: give at least {min} characters", shortened(.0), min = IdPrefix::SHORTEST)]
    TooShort(String),
    /// No id begins like this.
    #[error("\"{}\" is not an id, a name or `last`", shortened(.0))]
    NotAnId(String),
}

impl IdPrefix {
    /// Shorter prefixes are refused: they would soon become ambiguous.
    pub const SHORTEST: usize = 4;
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];
    const FULL: usize = 36;

    /// The prefix as the database stores it.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for IdPrefix {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let digits: String = text.chars().filter(|c| *c != '-').collect();
        if text.is_empty() || !digits.chars().all(|c| c.is_ascii_hexdigit()) || digits.len() > 32 {
            return Err(BadId::NotAnId(text.to_owned()));
        }
        if digits.len() < Self::SHORTEST {
            return Err(BadId::TooShort(text.to_owned()));
        }
        let mut prefix = String::with_capacity(Self::FULL);
        for digit in digits.chars() {
            if Self::HYPHENS.contains(&prefix.len()) {
                prefix.push('-');
            }
            prefix.push(digit.to_ascii_lowercase());
        }
        Ok(Self(prefix))
    }
}

/// A person's name for a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ChainName(String);

/// Why a text cannot be the name of a chain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// It is empty, or does not fit into a list.
    #[error("a name has 1 to {most} characters", most = ChainName::LONGEST)]
    Length,
    /// A character with another meaning in a shell, a terminal or a file name.
    #[error("a name begins with a letter and has letters, digits, `-`, `_` and `.`")]
    Character,
    /// It could be the beginning of an id.
    #[error("it could be the beginning of an id: add a letter from g to z")]
    LooksLikeAnId,
    /// A reserved word.
    #[error("`{LAST}` means the newest chain")]
    Reserved,
}

/// The name of the newest chain of a project.
pub(crate) const LAST: &str = "last";

impl ChainName {
    const LONGEST: usize = 40;

    /// The name.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ChainName {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fits = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        match text.chars().count() {
            0 => Err(BadName::Length),
            count if count > Self::LONGEST => Err(BadName::Length),
            _ if text == LAST => Err(BadName::Reserved),
            _ if !text.starts_with(char::is_alphabetic) || !text.chars().all(fits) => Err(BadName::Character),
            _ if text.chars().all(|c| c.is_ascii_hexdigit() || c == '-') => Err(BadName::LooksLikeAnId),
            _ => Ok(Self(text.to_owned())),
        }
    }
}

impl TryFrom<String> for ChainName {
    type Error = BadName;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ChainName> for String {
    fn from(name: ChainName) -> Self {
        name.0
    }
}

/// What a person may write in place of an id. No text matches two of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    /// The beginning of an id.
    Id(IdPrefix),
    /// The name of a chain.
    Name(ChainName),
    /// The newest chain of the project.
    Last,
}

impl FromStr for Reference {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match (text.parse(), text.parse()) {
            (Ok(id), _) => Ok(Self::Id(id)),
            (_, Ok(name)) => Ok(Self::Name(name)),
            (_, Err(BadName::Reserved)) => Ok(Self::Last),
            (Err(error), Err(_)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_prefix_is_brought_into_stored_form() {
        let prefix: IdPrefix = " 4F2C1A90BEEF ".parse().unwrap();
        assert_eq!(prefix.as_str(), "4f2c1a90-beef");
        assert_eq!("4f2c".parse::<IdPrefix>().unwrap().as_str(), "4f2c");
    }

    #[test]
    fn what_is_no_id_is_refused() {
        assert_eq!("4f2".parse::<IdPrefix>(), Err(BadId::TooShort("4f2".into())));
        for text in ["", "birthday", "4f2c/../..", "4f2c'--", &"a".repeat(33)] {
            assert!(matches!(text.parse::<IdPrefix>(), Err(BadId::NotAnId(_))), "{text}");
        }
    }

    #[test]
    fn a_name_is_no_id_and_no_command() {
        for name in ["nightly", "fix-712", "a.b_c", "größe", "deadline", "x"] {
            assert_eq!(name.parse::<ChainName>().as_ref().map(ChainName::as_str), Ok(name));
            assert_eq!(name.parse(), Ok(Reference::Name(name.parse().unwrap())));
        }
        for (bad, why) in [
            ("", BadName::Length),
            (&"x".repeat(41), BadName::Length),
            ("cafe", BadName::LooksLikeAnId),
            ("be-ef", BadName::LooksLikeAnId),
            ("7th", BadName::Character),
            ("a b", BadName::Character),
            ("-x", BadName::Character),
            ("a\u{202e}b", BadName::Character),
            ("last", BadName::Reserved),
        ] {
            assert_eq!(bad.parse::<ChainName>(), Err(why), "{bad}");
        }
        assert_eq!("last".parse(), Ok(Reference::Last));
        assert_eq!("cafe".parse::<Reference>(), Ok(Reference::Id("cafe".parse().unwrap())));
        assert_eq!("caf".parse::<Reference>(), Err(BadId::TooShort("caf".into())));
        assert_eq!("4f2c'--".parse::<Reference>(), Err(BadId::NotAnId("4f2c'--".into())));
    }

    proptest! {
        #[test]
        fn any_start_of_an_id_finds_it(bytes: [u8; 16], length in 4usize..=32) {
            let id = FrameId(Uuid::from_bytes(bytes));
            let typed: String = id.0.simple().to_string().chars().take(length).collect();
            prop_assert!(id.to_string().starts_with(typed.parse::<IdPrefix>().unwrap().as_str()));
        }

        #[test]
        fn any_text_is_parsed_or_refused(text: String) {
            let _ = text.parse::<IdPrefix>();
        }
    }
}
