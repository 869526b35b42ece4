//! Claude Code's version numbers.

use std::fmt;
use std::str::FromStr;

/// A version, which `claude --version` prints first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(pub u32, pub u32, pub u32);

impl Version {
    /// The first version that accepts `--session-id` together with `--resume --fork-session`.
    pub(crate) const OLDEST: Self = Self(2, 0, 73);
    /// The first version whose hooks can suspend a tool call.
    pub(crate) const SUSPENDS: Self = Self(2, 1, 89);
    /// The first version in which the events of hooks can be printed.
    pub(crate) const PRINTS_HOOKS: Self = Self(2, 1, 197);
    /// The first version known to use the reason of the hook that ended first if two hooks ask for an approval. Earlier ones use
    /// the last.
    pub(crate) const FIRST_HOOK_PREVAILS: Self = Self(2, 1, 300);
    /// The first version known to be able to ignore mentions of files.
    pub(crate) const LEAVES_MENTIONS: Self = Self(2, 1, 330);
    /// The first version known to have a hook that runs after all calls of a message.
    pub(crate) const HOOKS_AFTER_ALL_CALLS: Self = Self(2, 1, 197);
    /// From this version on, the cost of a resumed run includes what the session cost before.
    pub(crate) const TOTAL_COST_ACCUMULATES: Self = Self(2, 1, 277);
    /// The first version known to make no further request if it is asked to end while something runs in its background.
    pub(crate) const ENDS_WHEN_ASKED: Self = Self(2, 1, 250);
    /// From this version on, a session is found from any directory, not only from its own.
    pub(crate) const FINDS_SESSIONS_ANYWHERE: Self = Self(2, 1, 223);
    /// The first version known to tell its agent itself when its shell's directory changes.
    pub(crate) const TELLS_DIRECTORY: Self = Self(2, 1, 300);
    /// The first version known to allow what a skill allows. 2.1.197 and 2.1.265 print the rules, but deny the calls.
    pub(crate) const HONOURS_SKILLS: Self = Self(2, 1, 300);
    /// The first version known to return an agent to the worktree that it had entered if its session is resumed in place.
    pub(crate) const RETURNS_TO_WORKTREES: Self = Self(2, 1, 250);
    /// The first version known to accept the result of a suspended call on standard input, if that stays open and the message
    /// had no other call.
    pub(crate) const READS_RESULTS: Self = Self(2, 1, 197);
    /// The first version that accepts the result of any suspended call, from a file as well.
    pub(crate) const READS_ALL_RESULTS: Self = Self(2, 1, 271);
    /// The newest version that this program was tested with.
    pub(crate) const NEWEST_TESTED: Self = Self(2, 1, 332);
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// How `claude` accepts the result of a suspended call on its standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultInput {
    /// The input must be open until the turn begins, and the message must have no other call.
    Pipe,
    File,
}

impl ResultInput {
    /// How this version accepts it; `None`: not at all.
    pub(crate) fn of_version(version: Version) -> Option<Self> {
        if version >= Version::READS_ALL_RESULTS {
            Some(Self::File)
        } else {
            (version >= Version::READS_RESULTS).then_some(Self::Pipe)
        }
    }
}

/// A text that does not begin with a version.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoVersion;

impl FromStr for Version {
    type Err = NoVersion;

    fn from_str(text: &str) -> Result<Self, NoVersion> {
        let word = text.split_whitespace().next().ok_or(NoVersion)?;
        let mut numbers = word.splitn(3, '.').map(|part| {
            let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            part[..digits].parse().map_err(|_| NoVersion)
        });
        let mut next = || numbers.next().unwrap_or(Err(NoVersion));
        Ok(Self(next()?, next()?, next()?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn how_a_version_takes_results() {
        let input = |patch| ResultInput::of_version(Version(2, 1, patch));
        assert_eq!(input(196), None);
        assert_eq!((input(197), input(270)), (Some(ResultInput::Pipe), Some(ResultInput::Pipe)));
        assert_eq!((input(271), input(400)), (Some(ResultInput::File), Some(ResultInput::File)));
    }

    #[test]
    fn what_claude_prints_is_a_version() {
        assert_eq!("2.1.330 (Claude Code)\n".parse(), Ok(Version(2, 1, 330)));
        assert_eq!("2.2.0-beta.1".parse(), Ok(Version(2, 2, 0)));
        for text in ["", "garbage", "2.1", "v2.1.3", "{\"type\":\"system\"}"] {
            assert_eq!(text.parse::<Version>(), Err(NoVersion), "{text}");
        }
    }

    #[test]
    fn versions_are_ordered_by_number() {
        assert!(Version(2, 1, 89) < Version(2, 1, 197));
        assert!(Version(2, 0, 77) < Version(2, 1, 0));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String) {
            let _ = text.parse::<Version>();
        }
    }
}
