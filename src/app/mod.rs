//! The program's use cases. They do not depend on a command line, standard output, the environment or a current directory.
//!
//! A use case takes an [`App`] and an input, and returns its outcome as a value. The fronts turn arguments into inputs, and
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

/// The context of a use case.
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

/// A text that the asker gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GivenText {
    Text(String),
    File(PathBuf),
    /// The front provides the text. It is read only after all other checks have passed.
    StandardInput,
}

impl App<'_> {
    /// Makes a path that the asker named absolute.
    pub(crate) fn path(&self, named: &Path) -> PathBuf {
        self.directory.join(named)
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::store::Caller;

    /// The context of a call by the agent that runs this attempt.
    pub(crate) fn app_of(store: &Store, agent: Caller) -> App<'_> {
        App { asker: Asker { agent: Some(agent), ..Asker::default() }, ..app(store) }
    }

    /// The context of a person.
    pub(crate) fn app(store: &Store) -> App<'_> {
        let (directory, variables) = (PathBuf::from("/"), Variables::default());
        App { store, asker: Asker::default(), directory, variables, now: Timestamp::now() }
    }
}
