//! The names of the requests to this program.

/// This program's file name.
pub(crate) const NAME: &str = "agent-cli";

/// The requests that an agent may make by command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// `agent-cli spawn`.
    Spawn,
    /// `agent-cli ask`.
    Ask,
    /// `agent-cli wait`.
    Wait,
    /// `agent-cli resume`.
    Resume,
    /// `agent-cli answer`: not a request for agents. It is recognised so that it can be refused.
    Answer,
}

impl Verb {
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Spawn, Self::Ask, Self::Wait, Self::Resume, Self::Answer].into_iter().find(|verb| verb.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Spawn => "spawn",
            Self::Ask => "ask",
            Self::Wait => "wait",
            Self::Resume => "resume",
            Self::Answer => "answer",
        }
    }
}

/// The number of option words before the name of a command.
pub(crate) fn global_options(arguments: &[String]) -> usize {
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        at += match word.as_str() {
            "-v" | "--verbose" | "-q" | "--quiet" => 1,
            word if WITH_VALUE.contains(&word) => 2,
            word if word.split_once('=').is_some_and(|(name, _)| WITH_VALUE.contains(&name)) => 1,
            _ => break,
        };
    }
    at
}

/// The global options that take a value.
const WITH_VALUE: [&str; 2] = ["--color", "--store"];
