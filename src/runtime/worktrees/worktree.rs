//! Git worktrees for agents that work separately: planned with the frame, created before its first attempt.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::core::agent::worktree::Worktree;
use crate::failpoint::{self, Step};
use crate::runtime::worktrees::git::{Git, GitError};

/// Why a worktree cannot be created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorktreeError {
    /// The directory is in no repository with a commit.
    #[error("{} is not in a git repository that has a commit", .0.display())]
    NoRepository(PathBuf),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A file could not be used.
    #[error("failed to {what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
}

/// Plans a worktree for an agent that would work in `cwd`, and the directory in it where the agent works instead. `folder`: the
/// canonical directory for worktrees; `id` distinguishes it from others with the same title. Nothing is created yet, because git
/// may take its time and the caller must not wait for it.
///
/// # Errors
///
/// [`WorktreeError`] when `cwd` is in no repository that has a commit.
pub(crate) fn plan(folder: &Path, cwd: &Path, title: &str, id: &str) -> Result<(Worktree, PathBuf), WorktreeError> {
    let none = |_| WorktreeError::NoRepository(cwd.to_owned());
    let top = PathBuf::from(git(cwd, ["rev-parse", "--show-toplevel"]).map_err(none)?);
    let base = git(cwd, ["rev-parse", "--verify", "HEAD^{commit}"]).map_err(none)?;
    // Another agent's worktree may be removed before this one: what they share must stay.
    let shared = cwd.join(git(cwd, ["rev-parse", "--git-common-dir"]).map_err(none)?);
    let repository = shared.canonicalize().map_err(io("find the directory of the repository"))?;
    let within = cwd.strip_prefix(&top).unwrap_or(Path::new("")).to_owned();
    let branch = Worktree::branch_for(title, id);
    let path = folder.join(branch.rsplit('/').next().unwrap_or(id));
    let cwd = if within.as_os_str().is_empty() { path.clone() } else { path.join(within) };
    Ok((Worktree { repository, path, branch, base }, cwd))
}

/// Whether files in `cwd` or elsewhere in its repository have uncommitted changes, which a worktree will not have.
#[must_use]
pub(crate) fn has_uncommitted_changes(cwd: &Path) -> bool {
    let status = ["-c", "status.showUntrackedFiles=normal", "status", "--porcelain", "--untracked-files=normal"];
    git(cwd, status).is_ok_and(|changed| !changed.is_empty())
}

/// Creates the worktree unless it exists. A process that was killed meanwhile leaves a partial worktree, which is removed and
/// created again. So this must only be called before an agent has worked in it.
pub(crate) fn ensure(worktree: &Worktree, cwd: &Path) -> Result<(), WorktreeError> {
    failpoint::around(Step::MakeWorktree, || made(worktree, cwd))
}

fn made(worktree: &Worktree, cwd: &Path) -> Result<(), WorktreeError> {
    let Worktree { repository, path, branch, base } = worktree;
    if !is_made(worktree) {
        if path.exists() {
            fs::remove_dir_all(path).map_err(io("remove a worktree that is half made"))?;
        }
        if let Some(folder) = path.parent() {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(io("make the folder of worktrees"))?;
        }
        // Git still knows a partial worktree and keeps it locked: `--force` twice creates it anyway.
        let add = ["worktree", "add", "--quiet", "--force", "--force"].map(OsStr::new);
        let place = if has_branch(repository, branch) {
            vec![path.as_os_str(), branch.as_ref()]
        } else {
            vec!["-b".as_ref(), branch.as_ref(), path.as_os_str(), base.as_ref()]
        };
        git(repository, add.into_iter().chain(place))?;
    }
    // Git does not store empty folders.
    fs::create_dir_all(cwd).map_err(io("make the working directory in the worktree"))
}

/// Whether there is a branch of this name.
fn has_branch(repository: &Path, branch: &str) -> bool {
    git(repository, ["rev-parse", "--verify", "--quiet", &format!("refs/heads/{branch}^{{commit}}")]).is_ok()
}

fn git<A: AsRef<OsStr>>(folder: &Path, arguments: impl IntoIterator<Item = A>) -> Result<String, GitError> {
    Git::new(folder, arguments).text()
}

fn is_made(worktree: &Worktree) -> bool {
    worktree.path.join(".git").exists() && git(&worktree.path, ["rev-parse", "--verify", "--quiet", "HEAD"]).is_ok()
}

fn io(what: &'static str) -> impl FnOnce(std::io::Error) -> WorktreeError {
    move |source| WorktreeError::Io { what, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::worktrees::testing::{commit, repository};

    #[test]
    fn a_worktree_is_made_once_and_again_after_a_kill() {
        let (temp, top) = repository();
        fs::create_dir(top.join("sub")).unwrap();
        let folder = temp.path().canonicalize().unwrap().join("worktrees");
        let (worktree, cwd) = plan(&folder, &top.join("sub"), "a.md", "1a2b").unwrap();
        assert!(!folder.exists());
        assert_eq!(cwd, folder.join("a-1a2b/sub"));
        for _ in 0..2 {
            ensure(&worktree, &cwd).unwrap();
            assert!(cwd.is_dir() && folder.join("a-1a2b/one").is_file());
        }
        commit(&worktree.path, "two");
        for left in ["everything but the folder", "the folder without .git", "a .git that leads nowhere"] {
            match left {
                "everything but the folder" => fs::remove_dir_all(&worktree.path).unwrap(),
                "the folder without .git" => fs::remove_file(worktree.path.join(".git")).unwrap(),
                _ => fs::write(worktree.path.join(".git"), "gitdir: /nowhere\n").unwrap(),
            }
            ensure(&worktree, &cwd).unwrap();
            assert!(folder.join("a-1a2b/two").is_file(), "{left}");
            git(&worktree.path, ["rev-parse", "HEAD"]).unwrap_or_else(|error| panic!("{left}: {error}"));
        }
    }

    #[test]
    fn the_worktrees_of_others_are_left_as_they_are() {
        let (temp, top) = repository();
        let theirs = temp.path().join("theirs");
        git(&top, ["worktree".as_ref(), "add".as_ref(), "-q".as_ref(), theirs.as_os_str()]).unwrap();
        fs::rename(&theirs, temp.path().join("on a disk that is not there")).unwrap();
        let (worktree, cwd) = plan(&temp.path().canonicalize().unwrap().join("w"), &top, "a.md", "1").unwrap();
        ensure(&worktree, &cwd).unwrap();
        fs::rename(temp.path().join("on a disk that is not there"), &theirs).unwrap();
        git(&theirs, ["status"]).unwrap();
    }

    #[test]
    fn a_folder_without_a_repository_or_a_commit_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let refused = || plan(Path::new("/w"), temp.path(), "a", "1").unwrap_err().to_string();
        assert!(refused().ends_with("is not in a git repository that has a commit"));
        git(temp.path(), ["init", "-q"]).unwrap();
        assert!(refused().ends_with("is not in a git repository that has a commit"));
    }
}
