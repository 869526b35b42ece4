//! The conditions of a wait, and the regular expressions in them.

use std::path::{Path, PathBuf};
use std::slice;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use regex::bytes::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

use crate::core::id::FrameId;
use crate::core::waits::scheduled::Scheduled;

/// Something outside the chain that an agent can wait for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum External {
    /// A file that exists. Absolute.
    File(PathBuf),
    /// A file with a matching content.
    Matching(Matching),
    /// A scheduled time.
    Time(Timestamp),
    /// A shell command that exits with 0, run in the agent's working directory.
    Command(String),
    /// The same, with an interval or a time limit.
    Polled(Polled),
    /// The end of another agent.
    Agent(AwaitedAgent),
    /// A time at which the agent wants to receive a prompt.
    Scheduled(Scheduled),
    /// One of these. They must not be combinations themselves.
    Any(Vec<External>),
    /// All of these, each at some time. They must not be combinations themselves.
    All(Vec<External>),
}

/// The most conditions of one wait.
pub(crate) const MOST_CONDITIONS: usize = 20;

/// How long a command may take by default.
pub(crate) const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// How often a process that keeps running tries a command without an interval.
pub(crate) const USUAL_INTERVAL: SignedDuration = SignedDuration::from_secs(60);

/// The longest timeout of a command: the process that continues the chain waits for it.
pub(crate) const LONGEST_COMMAND: Duration = Duration::from_secs(600);

/// A file in which a regular expression must match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Matching {
    /// Absolute.
    pub file: PathBuf,
    pub pattern: String,
    /// The only directory whose files the agent may read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<PathBuf>,
}

/// A command with an interval or a timeout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Polled {
    pub command: String,
    /// The time between two tries, in seconds; `None`: whenever the chain is checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
    /// How long one try may take, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
}

/// An agent whose end is waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AwaitedAgent {
    pub id: FrameId,
    /// Its task, as a list shows it.
    pub task: String,
}

/// A command to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Try<'a> {
    pub(crate) command: &'a str,
    /// The time between two tries; `None`: whenever the chain is checked.
    pub(crate) every: Option<SignedDuration>,
    pub(crate) timeout: Duration,
}

impl External {
    /// Its conditions: itself, unless it combines several.
    pub(crate) fn conditions(&self) -> &[Self] {
        match self {
            Self::Any(conditions) | Self::All(conditions) => conditions,
            one => slice::from_ref(one),
        }
    }

    /// Its files, which `watch` watches.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.conditions().iter().filter_map(|condition| match condition {
            Self::File(path) | Self::Matching(Matching { file: path, .. }) => Some(path.as_path()),
            _ => None,
        })
    }

    /// Replaces every path in it, for moving it with the chain.
    pub(crate) fn with_paths(self, moved: &impl Fn(&Path) -> PathBuf) -> Self {
        let several = |conditions: Vec<Self>| conditions.into_iter().map(|one| one.with_paths(moved)).collect();
        match self {
            Self::File(path) => Self::File(moved(&path)),
            Self::Matching(Matching { file, pattern, within }) => {
                Self::Matching(Matching { file: moved(&file), pattern, within: within.map(|within| moved(&within)) })
            }
            Self::Any(conditions) => Self::Any(several(conditions)),
            Self::All(conditions) => Self::All(several(conditions)),
            other => other,
        }
    }

    /// The command of a single condition, if it is one.
    pub(crate) fn command_to_try(&self) -> Option<Try<'_>> {
        match self {
            Self::Command(command) => Some(Try { command, every: None, timeout: COMMAND_TIMEOUT }),
            Self::Polled(Polled { command, every, timeout }) => Some(Try {
                command,
                every: every.map(|seconds| SignedDuration::from_secs(seconds.try_into().unwrap_or(i64::MAX))),
                timeout: timeout.map_or(COMMAND_TIMEOUT, Duration::from_secs).min(LONGEST_COMMAND),
            }),
            _ => None,
        }
    }

    pub(crate) fn commands(&self) -> impl Iterator<Item = Try<'_>> {
        self.conditions().iter().filter_map(Self::command_to_try)
    }

    /// How often a process that keeps running checks it, if it has a command.
    pub(crate) fn polled_every(&self) -> Option<SignedDuration> {
        self.commands().map(|of| of.every.unwrap_or(USUAL_INTERVAL)).min()
    }

    /// Whether two commands of an agent ask for the same thing. A duration results in a different time each time.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        let several = |some: &[Self], others: &[Self]| {
            some.len() == others.len() && some.iter().zip(others).all(|(one, other)| one.is_same_as(other))
        };
        match (self, other) {
            (Self::Time(_), Self::Time(_)) => true,
            (Self::Any(some), Self::Any(others)) | (Self::All(some), Self::All(others)) => several(some, others),
            (one, other) => one == other,
        }
    }
}

/// The longest pattern, in bytes.
const MOST_PATTERN: usize = 4_096;
/// The largest compiled pattern, in bytes: `(a{1000}){1000}` is refused.
const MOST_COMPILED: usize = 1024 * 1024;

/// Why a regular expression is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadPattern {
    #[error("{what}, at character {character}{line}")]
    Syntax { what: String, character: usize, line: String },
    #[error("it has more than {MOST_PATTERN} bytes")]
    TooLong,
    #[error("it is too large")]
    TooLarge,
}

/// Compiles a pattern. It matches anywhere in a text, and `^` and `$` are the beginning and the end of the whole text, unless it
/// says `(?m)`.
pub(crate) fn compiled(pattern: &str) -> Result<Regex, BadPattern> {
    if pattern.len() > MOST_PATTERN {
        return Err(BadPattern::TooLong);
    }
    if let Err(error) = regex_syntax::ParserBuilder::new().utf8(false).build().parse(pattern) {
        let (what, at) = match &error {
            regex_syntax::Error::Parse(error) => (error.kind().to_string(), error.span().start),
            regex_syntax::Error::Translate(error) => (error.kind().to_string(), error.span().start),
            _ => return Err(BadPattern::TooLarge),
        };
        let line = if pattern.contains('\n') { format!(" of line {}", at.line) } else { String::new() };
        return Err(BadPattern::Syntax { what, character: at.column, line });
    }
    RegexBuilder::new(pattern).size_limit(MOST_COMPILED).build().map_err(|_| BadPattern::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_is_made_again_is_recognised_whatever_its_time() {
        let at = |second| External::Time(Timestamp::from_second(second).unwrap());
        let any = |second| External::Any(vec![External::File("/p/a".into()), at(second)]);
        assert!(any(1).is_same_as(&any(2)));
        assert!(!any(1).is_same_as(&External::All(any(1).conditions().to_vec())));
        assert!(!any(1).is_same_as(&External::Any(vec![External::File("/p/b".into()), at(1)])));
    }

    #[test]
    fn a_command_is_polled_as_often_as_the_most_frequent_one() {
        let polled =
            |every| External::Polled(Polled { command: "true".into(), every: Some(every), timeout: Some(9_999) });
        assert_eq!(External::Any(vec![polled(30), polled(5)]).polled_every(), Some(SignedDuration::from_secs(5)));
        assert_eq!(External::Command("true".into()).polled_every(), Some(USUAL_INTERVAL));
        assert_eq!(External::File("/p".into()).polled_every(), None);
        assert_eq!(polled(1).command_to_try().unwrap().timeout, LONGEST_COMMAND);
    }

    #[test]
    fn paths_are_moved_in_every_condition() {
        let file = |file: &str, within: &str| {
            External::Matching(Matching { file: file.into(), pattern: "x".into(), within: Some(within.into()) })
        };
        let wait = |root: &str| {
            let paths = [format!("{root}/a"), format!("{root}/b")];
            External::All(vec![External::File(paths[0].clone().into()), file(&paths[1], root)])
        };
        let moved = |path: &Path| Path::new("/new").join(path.strip_prefix("/old").unwrap());
        let there = wait("/old").with_paths(&moved);
        assert_eq!(there.files().collect::<Vec<_>>(), [Path::new("/new/a"), Path::new("/new/b")]);
    }

    fn refused(pattern: &str) -> String {
        compiled(pattern).unwrap_err().to_string()
    }

    #[test]
    fn the_place_of_a_mistake_is_named() {
        assert_eq!(refused("done(ok"), "unclosed group, at character 5");
        assert_eq!(refused("ä["), "unclosed character class, at character 2");
        assert_eq!(refused("a\n*b\n("), "unclosed group, at character 1 of line 3");
        assert_eq!(refused(r"(a)\1"), "backreferences are not supported, at character 4");
    }

    #[test]
    fn a_pattern_that_would_take_too_much_memory_is_refused() {
        assert_eq!(refused("(?:a{1000}){1000}"), "it is too large");
        assert_eq!(refused(&"a".repeat(5_000)), "it has more than 4096 bytes");
    }

    #[test]
    fn texts_that_are_not_utf_8_are_searched() {
        assert!(compiled("done").unwrap().is_match(b"\xff\xfe done"));
        assert!(compiled(r"(?-u)\xff").unwrap().is_match(b"\xff"));
        assert!(!compiled("^done$").unwrap().is_match(b"not\ndone\n"));
        assert!(compiled("(?m)^done$").unwrap().is_match(b"not\ndone\n"));
    }
}
