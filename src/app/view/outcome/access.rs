//! The view of what users of a shared database may do.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::core::housekeeping::rights::{Grant, Right};

/// The rights of a user in a project.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct AccessView {
    /// A user of the database, or a group of its users.
    pub(crate) user: String,
    /// The directory in which the chains were started, or one above it; null: all chains.
    pub(crate) project: Option<PathBuf>,
    pub(crate) rights: Vec<Right>,
}

impl AccessView {
    /// One view for each user and project. `grants` are sorted.
    pub(crate) fn several(grants: Vec<Grant>) -> Vec<Self> {
        let mut views: Vec<Self> = Vec::new();
        for Grant { user, project, right } in grants {
            let project = Some(project).filter(|project| project != Path::new("/"));
            match views.last_mut() {
                Some(last) if last.user == user && last.project == project => last.rights.push(right),
                _ => views.push(Self { user, project, rights: vec![right] }),
            }
        }
        views
    }
}
