//! Determines where an agent works, and in which project. A path is text: the place that it leads to may change between a
//! check and an attempt.

use std::fs;
use std::path::{Path, PathBuf};

use crate::claude::environment::regular_file;

/// A recorded directory that now leads to another place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} leads to {} now, because {} is a link", recorded.display(), real.display(), link.display())]
pub(crate) struct Elsewhere {
    pub recorded: PathBuf,
    pub real: PathBuf,
    pub link: PathBuf,
}

/// Checks that a recorded directory has no links on its way now, as when it was recorded. A missing directory passes.
///
/// # Errors
///
/// [`Elsewhere`] names the link.
pub(crate) fn unmoved(recorded: &Path) -> Result<(), Elsewhere> {
    let Ok(real) = fs::canonicalize(recorded) else { return Ok(()) };
    if real == recorded {
        return Ok(());
    }
    let mut above: Vec<&Path> = recorded.ancestors().collect();
    above.reverse();
    let link = above.into_iter().find(|path| path.is_symlink()).unwrap_or(recorded).to_owned();
    Err(Elsewhere { recorded: recorded.to_owned(), real, link })
}

/// The project of a directory: the top of its git repository, which all worktrees share; outside a repository, the
/// directory itself. Only file names and `.git` files matter, so the directory itself may be missing.
pub(crate) fn project_of(dir: &Path) -> PathBuf {
    let Some(top) = dir.ancestors().find(|above| above.join(".git").exists()) else { return dir.to_owned() };
    // A worktree has a file that names a directory inside its repository's directory.
    let file = regular_file::read(&top.join(".git")).unwrap_or_default();
    let file = String::from_utf8(file).unwrap_or_default();
    let of_worktree = file.trim().strip_prefix("gitdir: ").map(Path::new).and_then(|gitdir| {
        let worktrees = gitdir.parent().filter(|worktrees| worktrees.ends_with(".git/worktrees"))?;
        Some(worktrees.parent()?.parent()?.to_owned())
    });
    of_worktree.unwrap_or_else(|| top.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_on_the_way_is_named() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("project/w/d")).unwrap();
        fs::create_dir_all(top.join("outside/d")).unwrap();
        let dir = top.join("project/w/d");
        assert_eq!(unmoved(&dir), Ok(()));
        fs::rename(top.join("project/w"), top.join("project/w2")).unwrap();
        assert_eq!(unmoved(&dir), Ok(()), "it is gone");
        symlink("../outside", top.join("project/w")).unwrap();
        let moved = unmoved(&dir).unwrap_err();
        assert_eq!((moved.link, moved.real), (top.join("project/w"), top.join("outside/d")));
    }

    #[test]
    fn a_project_is_a_repository_with_its_worktrees_or_a_directory() {
        let temp = tempfile::tempdir().unwrap();
        let at = |path: &str| temp.path().join(path);
        fs::create_dir_all(at("repository/.git/worktrees/w")).unwrap();
        fs::create_dir_all(at("repository/src")).unwrap();
        fs::create_dir_all(at("w/sub")).unwrap();
        fs::write(at("w/.git"), format!("gitdir: {}\n", at("repository/.git/worktrees/w").display())).unwrap();
        for dir in ["repository", "repository/src", "repository/gone/deep", "w/sub"] {
            assert_eq!(project_of(&at(dir)), at("repository"), "{dir}");
        }
        assert_eq!(project_of(&at("plain")), at("plain"));
        // A submodule is a separate project.
        fs::create_dir_all(at("repository/module")).unwrap();
        fs::write(at("repository/module/.git"), "gitdir: ../.git/modules/module\n").unwrap();
        assert_eq!(project_of(&at("repository/module")), at("repository/module"));
    }
}
