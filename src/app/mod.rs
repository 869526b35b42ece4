//! What the program can do, independent of a command line, standard output, environment or current directory.
//!
//! A use case takes an [`App`] and an input, and returns the outcome as a value. The fronts turn arguments into inputs, and
//! outcomes into text, JSON or exit statuses.

pub(crate) mod answer;
pub(crate) mod asker;
pub(crate) mod chains;
pub(crate) mod config;
pub(crate) mod error;
pub(crate) mod fronts;
pub(crate) mod housekeeping;
pub(crate) mod lists;
pub(crate) mod lookup;
pub(crate) mod request;
pub(crate) mod spawn;
pub(crate) mod view;

use std::path::{Path, PathBuf};

use jiff::Timestamp;

pub(crate) use asker::Asker;

use crate::claude::environment::variables::Variables;
use crate::store::Store;

/// What a use case works with.
#[derive(Debug)]
pub(crate) struct App<'a> {
    pub(crate) store: &'a Store,
    pub(crate) asker: Asker,
    /// The base of relative paths, with links resolved.
    pub(crate) directory: PathBuf,
    /// The environment in which new chains start.
    pub(crate) variables: Variables,
    pub(crate) now: Timestamp,
}

/// A text from the asker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GivenText {
    Text(String),
    File(PathBuf),
    /// Provided by the front. It is read only if nothing before it is refused.
    StandardInput,
}

impl App<'_> {
    /// The path that the asker named, made absolute.
    pub(crate) fn path(&self, named: &Path) -> PathBuf {
        self.directory.join(named)
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::store::Caller;

    /// The surroundings of a call of the agent that runs this attempt.
    pub(crate) fn app_of(store: &Store, agent: Caller) -> App<'_> {
        App { asker: Asker { agent: Some(agent), ..Asker::default() }, ..app(store) }
    }

    /// A person's surroundings.
    pub(crate) fn app(store: &Store) -> App<'_> {
        let (directory, variables) = (PathBuf::from("/"), Variables::default());
        App { store, asker: Asker::default(), directory, variables, now: Timestamp::now() }
    }
}
