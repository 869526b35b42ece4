//! Lists and changes what users of a shared database may do.

use std::path::{Path, PathBuf};

use crate::app::App;
use crate::app::asker::PersonsTask;
use crate::app::error::{AppError, Refusal};
use crate::app::housekeeping::hosts::shared;
use crate::app::lookup::{Projects, here};
use crate::app::view::outcome::access::AccessView;
use crate::core::housekeeping::rights::{Grant, Right};

/// The project of all directories.
const EVERYWHERE: &str = "/";

/// The chains that a right is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// Those of the asker's project.
    Here,
    /// Those that were started in this directory or below it.
    Project(PathBuf),
    Everywhere,
}

/// The rights of all users, or, for a user who is not the owner of the database, only of this user.
pub(crate) fn list(app: &App<'_>) -> Result<Vec<AccessView>, AppError> {
    app.asker.may(PersonsTask::ManageAccess)?;
    Ok(AccessView::several(shared(app.store)?.rights()?))
}

/// Gives a user rights. Returns the rights that this user has now.
pub(crate) fn grant(app: &App<'_>, user: &str, rights: &[Right], at: &Where) -> Result<Vec<AccessView>, AppError> {
    app.asker.may(PersonsTask::ManageAccess)?;
    let hosts = shared(app.store)?;
    let project = project(app, at)?;
    let grant = |right: &Right| Grant { user: user.to_owned(), project: project.clone(), right: *right };
    hosts.change_rights(&rights.iter().map(grant).collect::<Vec<_>>(), true)?;
    of_user(app, user)
}

/// Takes rights away from a user, all of them if `rights` is empty. Returns the rights that this user still has.
pub(crate) fn revoke(app: &App<'_>, user: &str, rights: &[Right], at: &Where) -> Result<Vec<AccessView>, AppError> {
    app.asker.may(PersonsTask::ManageAccess)?;
    let hosts = shared(app.store)?;
    let only = if *at == Where::Everywhere { None } else { Some(project(app, at)?) };
    let mut gone = hosts.rights()?;
    gone.retain(|grant| {
        grant.user == user
            && only.as_ref().is_none_or(|only| grant.project == *only)
            && (rights.is_empty() || rights.contains(&grant.right))
    });
    if !hosts.change_rights(&gone, false)? {
        let place = only.map_or_else(String::new, |only| format!(" in {}", only.display()));
        return Err(Refusal::new(format!("{user} has no such rights{place}"))
            .hint("agent-cli access lists all rights")
            .into());
    }
    of_user(app, user)
}

fn of_user(app: &App<'_>, user: &str) -> Result<Vec<AccessView>, AppError> {
    let mut rights = shared(app.store)?.rights()?;
    rights.retain(|grant| grant.user == user);
    Ok(AccessView::several(rights))
}

/// The directory of a project. It may be on other hosts only.
fn project(app: &App<'_>, at: &Where) -> Result<PathBuf, AppError> {
    match at {
        Where::Here => here(app, &mut Projects::default()),
        Where::Everywhere => Ok(EVERYWHERE.into()),
        Where::Project(path) => {
            let path = app.directory.join(path);
            Ok(path.canonicalize().unwrap_or_else(|_| normal(&path)))
        }
    }
}

/// A path without `.`, `..` and a final slash.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                normal.pop();
            }
            std::path::Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}
