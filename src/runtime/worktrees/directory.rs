//! Determines where an agent works, and in which project. A path is text: the place that it leads to may change between a
//! check and an attempt.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
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

/// What identifies the project of a directory: its git repository, which all worktrees share, as in [`of_repository`]; outside
/// a repository, the directory itself. Only file names and the files that link a worktree to its repository matter, so the
/// directory itself may be missing.
pub(crate) fn project_of(dir: &Path) -> PathBuf {
    let Some(top) = dir.ancestors().find(|above| above.join(".git").exists()) else { return dir.to_owned() };
    match named_in(top, ".git", "gitdir: ") {
        Some(git_dir) => {
            let shared = named_in(&git_dir, "commondir", "").unwrap_or(git_dir);
            of_repository(&shared.canonicalize().unwrap_or(shared))
        }
        None => top.to_owned(),
    }
}

/// What identifies the project of a repository, given the directory that its worktrees share: the directory with its `.git`.
/// That of a submodule, of a bare repository or of one with `--separate-git-dir` does not name a directory with files.
pub(crate) fn of_repository(shared: &Path) -> PathBuf {
    let top = shared.parent().filter(|_| shared.file_name().is_some_and(|name| name == ".git"));
    top.unwrap_or(shared).to_owned()
}

/// Whether `path` is linked to `repository` as one of its worktrees, and the repository to it. Reads three files, where git
/// would need a process.
pub(crate) fn is_worktree_of(path: &Path, repository: &Path) -> bool {
    let Some(git_dir) = named_in(path, ".git", "gitdir: ").and_then(|git_dir| git_dir.canonicalize().ok()) else {
        return false;
    };
    let is_inside = repository.canonicalize().is_ok_and(|real| git_dir.starts_with(real.join("worktrees")));
    let named = named_in(&git_dir, "gitdir", "").and_then(|file| file.parent()?.canonicalize().ok());
    is_inside && named.is_some() && named == path.canonicalize().ok()
}

/// The path in a file of `folder`, relative to that folder.
fn named_in(folder: &Path, file: &str, before: &str) -> Option<PathBuf> {
    let text = regular_file::read(&folder.join(file)).ok()?;
    let path = text.strip_prefix(before.as_bytes())?.trim_ascii_end();
    Some(folder.join(OsStr::from_bytes(path)))
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
        fs::write(at("repository/.git/worktrees/w/commondir"), "../..\n").unwrap();
        for dir in ["repository", "repository/src", "repository/gone/deep", "w/sub"] {
            assert_eq!(project_of(&at(dir)), at("repository"), "{dir}");
        }
        assert_eq!(project_of(&at("plain")), at("plain"));
    }

    fn git(folder: &Path, words: &str) {
        let done = std::process::Command::new("git").arg("-C").arg(folder).args(words.split(' ')).output().unwrap();
        assert!(done.status.success(), "git {words}: {}", String::from_utf8_lossy(&done.stderr));
    }

    #[test]
    fn every_layout_of_a_repository_has_one_project_for_all_its_worktrees() {
        let temp = tempfile::tempdir().unwrap();
        let real = temp.path().canonicalize().unwrap();
        let at = |path: &str| real.join(path);
        let commit = "-c user.name=a -c user.email=a@a commit -q --allow-empty -m x";
        git(&real, "init -q plain");
        git(&real, "init -q --separate-git-dir apart separate");
        for repository in ["plain", "separate"] {
            git(&at(repository), commit);
        }
        git(&real, "clone -q --bare plain bare.git");
        git(&real, "init -q super");
        git(&at("super"), "-c protocol.file.allow=always submodule --quiet add ../plain lib");
        for (own, shared) in [
            ("plain", "plain/.git"),
            ("separate", "apart"),
            ("bare.git", "bare.git"),
            ("super/lib", "super/.git/modules/lib"),
        ] {
            let worktree = real.join(format!("worktree-{}", own.replace('/', "-")));
            git(&at(own), &format!("worktree add -q --detach {}", worktree.display()));
            let project = project_of(&at(own));
            assert_eq!([project_of(&worktree), of_repository(&at(shared))], [project.clone(), project], "{own}");
            assert!(is_worktree_of(&worktree, &at(shared)), "{own}");
            assert!(!is_worktree_of(&worktree, &at("super/.git")) && !is_worktree_of(&at(own), &at(shared)), "{own}");
        }
        assert_ne!(project_of(&at("super/lib")), project_of(&at("super")), "a submodule is a separate project");
    }

    #[test]
    fn what_is_in_the_place_of_a_worktree_is_none() {
        let temp = tempfile::tempdir().unwrap();
        let real = temp.path().canonicalize().unwrap();
        let (repository, worktree, other) = (real.join("repository"), real.join("worktree"), real.join("other"));
        git(&real, "init -q repository");
        git(&repository, "-c user.name=a -c user.email=a@a commit -q --allow-empty -m x");
        git(&repository, "worktree add -q --detach ../worktree");
        git(&repository, "worktree add -q --detach ../other");
        let shared = repository.join(".git");
        assert!(is_worktree_of(&worktree, &shared));
        fs::copy(other.join(".git"), worktree.join(".git")).unwrap();
        assert!(!is_worktree_of(&worktree, &shared), "a copy of another one's file");
        fs::remove_file(worktree.join(".git")).unwrap();
        assert!(!is_worktree_of(&worktree, &shared), "a plain folder");
        git(&real, "clone -q repository worktree/clone");
        assert!(!is_worktree_of(&worktree.join("clone"), &shared), "a clone");
        fs::rename(&repository, real.join("moved")).unwrap();
        assert!(!is_worktree_of(&other, &shared), "its repository is missing");
        git(&real, "clone -q moved repository");
        assert!(!is_worktree_of(&other, &shared), "another repository is in its place");
    }
}
