//! What a person is shown where an id may mean several things.

use std::fmt;

/// One of several things that an id may mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its id: as much of it as tells it from the others.
    pub id: String,
    /// What it is.
    pub kind: &'static str,
    /// What it is about.
    pub title: String,
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} {})", self.id, self.kind, self.title)
    }
}
