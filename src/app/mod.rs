//! The front desk: what the program can do, without a command line, standard output, environment or current directory.
//!
//! A use case takes an [`App`] and an input, and returns what happened as a value. The fronts make inputs of arguments, and text,
//! JSON or exit statuses of what happened.

pub(crate) mod answer;
pub(crate) mod config;
pub(crate) mod error;
pub(crate) mod lookup;
pub(crate) mod stop;
pub(crate) mod view;

use std::path::PathBuf;

use jiff::Timestamp;

use crate::claude::processes::marks::Runner;
use crate::core::chain::origin::Origin;
use crate::core::id::SessionId;
use crate::store::{Caller, Store};

/// What a use case works with.
#[derive(Debug)]
pub(crate) struct App<'a> {
    pub(crate) store: &'a Store,
    pub(crate) asker: Asker,
    /// Where relative paths begin.
    pub(crate) directory: PathBuf,
    pub(crate) now: Timestamp,
}

/// Who asks for something, as far as the system knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asker {
    /// The agent that asks; `None`: a person.
    pub(crate) agent: Option<Caller>,
    pub(crate) origin: Origin,
    /// The Claude sessions in whose tool calls they may run.
    pub(crate) sessions: Vec<SessionId>,
    /// The process above them that runs agents, if there is one.
    pub(crate) runner: Option<Runner>,
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A person's surroundings.
    pub(crate) fn app(store: &Store) -> App<'_> {
        App { store, asker: Asker::default(), directory: PathBuf::from("/"), now: Timestamp::now() }
    }
}
