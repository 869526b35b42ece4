//! Git worktrees for agents that work apart: planned with the frame, made before its first attempt, removed when nothing
//! is lost with them.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::RuntimeError;
use crate::core::id::FrameId;
use crate::core::worktree::{Condition, Held, Worktree};
use crate::crash::{self, Moment, Step};
use crate::store::Store;

/// Why there can be no worktree.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    /// The directory is in no repository with a commit.
    #[error("{} is in no git repository with a commit", .0.display())]
    NoRepository(PathBuf),
    /// Git refused.
    #[error("git {what} failed: {said}")]
    Git {
        /// The subcommand.
        what: String,
        /// What it said.
        said: String,
    },
    /// Git or a file could not be used.
    #[error("failed to {what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
}

/// A worktree to be made for an agent that would work in `cwd`, and where it works instead. `folder` is where worktrees lie,
/// canonical; `id` tells it from others of the same title. Nothing is made yet: git may take its time, and whoever asks
/// must not wait for it.
///
/// # Errors
///
/// [`WorktreeError`] when `cwd` is in no repository that has a commit.
pub fn plan(folder: &Path, cwd: &Path, title: &str, id: &str) -> Result<(Worktree, PathBuf), WorktreeError> {
    let none = |_| WorktreeError::NoRepository(cwd.to_owned());
    let top = PathBuf::from(git(cwd, ["rev-parse", "--show-toplevel"]).map_err(none)?);
    let base = git(cwd, ["rev-parse", "--verify", "HEAD^{commit}"]).map_err(none)?;
    // Another agent's worktree may be removed before this one: what all of them share stays.
    let shared = cwd.join(git(cwd, ["rev-parse", "--git-common-dir"]).map_err(none)?);
    let repository = shared.canonicalize().map_err(io("find the directory of the repository"))?;
    let within = cwd.strip_prefix(&top).unwrap_or(Path::new("")).to_owned();
    let branch = Worktree::branch_for(title, id);
    let path = folder.join(branch.rsplit('/').next().unwrap_or(id));
    let cwd = if within.as_os_str().is_empty() { path.clone() } else { path.join(within) };
    Ok((Worktree { repository, path, branch, base }, cwd))
}

/// Whether files in `cwd` and the rest of its repository are not as they were committed: a worktree will not have them.
#[must_use]
pub fn has_uncommitted_changes(cwd: &Path) -> bool {
    git(cwd, ["status", "--porcelain"]).is_ok_and(|changed| !changed.is_empty())
}

/// Makes the worktree, unless it is there. A process that was killed while it made it leaves one that is removed and made
/// anew: so this is for a worktree in which no agent has worked yet.
///
/// # Errors
///
/// [`WorktreeError`] when git refuses.
pub(super) fn ensure(worktree: &Worktree, cwd: &Path) -> Result<(), WorktreeError> {
    crash::around(Step::MakeWorktree, || made(worktree, cwd))
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
        // One that is half made is still known to git, and locked: twice forced, it is made all the same.
        let add = ["worktree", "add", "--quiet", "--force", "--force"].map(OsStr::new);
        let place = if tip(repository, branch).is_some() {
            vec![path.as_os_str(), branch.as_ref()]
        } else {
            vec!["-b".as_ref(), branch.as_ref(), path.as_os_str(), base.as_ref()]
        };
        git(repository, add.into_iter().chain(place))?;
    }
    // Git knows no empty folders.
    fs::create_dir_all(cwd).map_err(io("make the working directory in the worktree"))
}

/// What came of the wish to remove worktrees.
#[derive(Debug, Default)]
pub struct Cleared {
    /// Those that are gone, or would be.
    pub removed: Vec<PathBuf>,
    /// Those that stay.
    pub held: Vec<Held>,
}

/// Removes worktrees in which nothing would be lost and nobody works. With `pretend`, only says which.
///
/// # Errors
///
/// [`RuntimeError`] when the database cannot be read. What git refuses is a reason to keep a worktree.
pub fn clear(store: &Store, worktrees: Vec<(FrameId, Worktree)>, pretend: bool) -> Result<Cleared, RuntimeError> {
    let mut cleared = Cleared::default();
    for (frame, worktree) in worktrees {
        let why = if store.is_worked_in(&worktree)? {
            Some("another agent works in it".to_owned())
        } else {
            match condition(&worktree) {
                Ok(None) => continue,
                Ok(Some(condition)) => condition.would_lose().map(str::to_owned),
                Err(error) => Some(error.to_string()),
            }
        };
        let why = match why {
            None if !pretend => match remove(&worktree) {
                Ok(true) => None,
                Ok(false) => Some("it was changed just now".to_owned()),
                Err(error) => Some(error.to_string()),
            },
            why => why,
        };
        let Worktree { path, branch, .. } = worktree;
        match why {
            Some(why) => cleared.held.push(Held { frame, path, branch, why }),
            None => cleared.removed.push(path),
        }
    }
    Ok(cleared)
}

/// What git tells of a worktree and its branch. `None`: neither is there.
///
/// # Errors
///
/// [`WorktreeError`] when git refuses.
fn condition(worktree: &Worktree) -> Result<Option<Condition>, WorktreeError> {
    let Worktree { repository, path, branch, base } = worktree;
    let (is_there, tip) = (path.exists(), tip(repository, branch));
    if !is_there && tip.is_none() {
        return Ok(None);
    }
    let (mut dirty, mut ahead, mut head) = (false, false, None);
    if is_there {
        dirty = !git(path, ["status", "--porcelain"])?.is_empty();
        // Its agent may have left the branch.
        head = Some(git(path, ["rev-parse", "--verify", "HEAD^{commit}"])?);
    }
    for commit in [head, tip].into_iter().flatten().filter(|commit| commit != base) {
        let contains = format!("--contains={commit}");
        let holders = git(repository, ["for-each-ref", "--format=%(refname:short)", &contains, "refs/heads"])?;
        ahead |= holders.lines().all(|holder| holder == branch);
    }
    Ok(Some(Condition { dirty, ahead }))
}

/// Removes a worktree and its branch, when nothing is lost with them. Returns whether they are gone. Files that git is told
/// to ignore count for nothing.
///
/// # Errors
///
/// [`WorktreeError`] when git refuses.
fn remove(worktree: &Worktree) -> Result<bool, WorktreeError> {
    match condition(worktree)? {
        None => return Ok(true),
        Some(condition) if !condition.is_dispensable() => return Ok(false),
        Some(_) => {}
    }
    crash::around(Step::RemoveWorktree, || removed(worktree)).map(|()| true)
}

fn removed(worktree: &Worktree) -> Result<(), WorktreeError> {
    if worktree.path.exists() {
        git(&worktree.repository, ["worktree".as_ref(), "remove".as_ref(), worktree.path.as_os_str()])?;
    }
    crash::at(Step::RemoveWorktree, Moment::Within);
    if tip(&worktree.repository, &worktree.branch).is_some() {
        // Its commits are on another branch; git itself only compares it with the one that is checked out.
        git(&worktree.repository, ["branch", "-D", &worktree.branch])?;
    }
    Ok(())
}

/// The last commit of a branch, if there is such a branch.
fn tip(repository: &Path, branch: &str) -> Option<String> {
    git(repository, ["rev-parse", "--verify", "--quiet", &format!("refs/heads/{branch}^{{commit}}")]).ok()
}

/// Runs git and returns what it prints.
fn git<A: AsRef<OsStr>>(folder: &Path, arguments: impl IntoIterator<Item = A>) -> Result<String, WorktreeError> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(arguments).stdin(Stdio::null());
    // A git hook that runs this program would otherwise name its own repository.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX"] {
        command.env_remove(name);
    }
    let what = command.get_args().nth(2).unwrap_or_default().to_string_lossy().into_owned();
    let output = command.output().map_err(io("run git"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
    }
    Err(WorktreeError::Git { what, said: String::from_utf8_lossy(&output.stderr).trim().to_owned() })
}

fn is_made(worktree: &Worktree) -> bool {
    worktree.path.join(".git").exists() && git(&worktree.path, ["rev-parse", "--verify", "--quiet", "HEAD"]).is_ok()
}

fn io(what: &'static str) -> impl FnOnce(std::io::Error) -> WorktreeError {
    move |source| WorktreeError::Io { what, source }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn repository() -> (TempDir, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().canonicalize().unwrap().join("repository");
        fs::create_dir(&top).unwrap();
        git(&top, ["init", "-q", "-b", "main"]).unwrap();
        commit(&top, "one");
        (temp, top)
    }

    fn commit(folder: &Path, name: &str) {
        fs::write(folder.join(name), name).unwrap();
        git(folder, ["add", "."]).unwrap();
        git(folder, ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", name]).unwrap();
    }

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
        for left in ["everything but the folder", "the folder without .git"] {
            match left {
                "everything but the folder" => fs::remove_dir_all(&worktree.path).unwrap(),
                _ => fs::remove_file(worktree.path.join(".git")).unwrap(),
            }
            ensure(&worktree, &cwd).unwrap();
            assert!(folder.join("a-1a2b/two").is_file(), "{left}");
        }
    }

    #[test]
    fn what_would_be_lost_is_kept() {
        let (temp, top) = repository();
        let (worktree, cwd) = plan(&temp.path().canonicalize().unwrap().join("w"), &top, "a.md", "1").unwrap();
        assert_eq!(condition(&worktree).unwrap(), None);
        ensure(&worktree, &cwd).unwrap();
        fs::write(cwd.join("new"), "new").unwrap();
        assert_eq!(condition(&worktree).unwrap(), Some(Condition { dirty: true, ahead: false }));
        assert!(!remove(&worktree).unwrap());
        commit(&cwd, "new");
        assert_eq!(condition(&worktree).unwrap(), Some(Condition { dirty: false, ahead: true }));
        assert!(!remove(&worktree).unwrap());
        git(&cwd, ["checkout", "-q", "--detach", "main"]).unwrap();
        assert!(!remove(&worktree).unwrap(), "its branch has a commit all the same");
        git(&top, ["merge", "-q", &worktree.branch]).unwrap();
        assert!(remove(&worktree).unwrap());
        assert!(!worktree.path.exists() && git(&top, ["rev-parse", "--verify", "-q", &worktree.branch]).is_err());
        assert!(remove(&worktree).unwrap());
    }

    #[test]
    fn a_worktree_of_a_worktree_outlives_it() {
        let (temp, top) = repository();
        let folder = temp.path().canonicalize().unwrap().join("w");
        let (outer, outer_cwd) = plan(&folder, &top, "a.md", "1").unwrap();
        ensure(&outer, &outer_cwd).unwrap();
        commit(&outer_cwd, "two");
        let (inner, inner_cwd) = plan(&folder, &outer_cwd, "a.md", "2").unwrap();
        assert_eq!(inner.repository, top.join(".git"));
        git(&top, ["merge", "-q", &outer.branch]).unwrap();
        assert!(remove(&outer).unwrap());
        ensure(&inner, &inner_cwd).unwrap();
        assert!(inner_cwd.join("two").is_file(), "it begins with the commit of its parent");
        assert!(remove(&inner).unwrap());
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
        assert!(refused().ends_with("is in no git repository with a commit"));
        git(temp.path(), ["init", "-q"]).unwrap();
        assert!(refused().ends_with("is in no git repository with a commit"));
    }
}
