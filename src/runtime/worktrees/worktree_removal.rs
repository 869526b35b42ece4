//! Removes agents' worktrees and branches if nothing is lost with them.
//!
//! While a worktree is removed, a lock on the repository excludes other removals, and git's own lock on the worktree's index
//! excludes git commands; then it is inspected again. The branch is only deleted while it still ends with the inspected commit.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::core::agent::child_worktree::{Obstacle, Worktree};
use crate::failpoint::{self, Moment, Step};
use crate::runtime::worktrees::git::{Git, GitError, Place};
use crate::runtime::worktrees::inspection::{Inspection, inspect};

/// A worktree's state before it is removed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outlook {
    /// Neither it nor its branch exists.
    Gone,
    /// It can be removed, along with these ignored files.
    Removable(Vec<PathBuf>),
    /// It is kept.
    Held(Obstacle),
}

/// Decides about the removal of a worktree. `with_ignored`: along with all files that git ignores.
pub(crate) fn outlook(worktree: &Worktree, with_ignored: bool) -> Outlook {
    match inspect(worktree) {
        Ok(None) => Outlook::Gone,
        Ok(Some(Inspection { condition, .. })) => match condition.held(with_ignored) {
            Some(why) => Outlook::Held(why),
            None => Outlook::Removable(condition.ignored.into_iter().map(|ignored| ignored.path).collect()),
        },
        Err(error) => Outlook::Held(Obstacle::in_use(error.to_string())),
    }
}

/// Removes a worktree and its branch if nothing is lost with them now. Otherwise returns why they are kept.
pub(crate) fn remove(worktree: &Worktree, with_ignored: bool) -> Option<Obstacle> {
    let removed = || -> Result<Option<Obstacle>, GitError> {
        let _guard = match File::open(&worktree.repository) {
            Ok(folder) => Some(folder.lock().map(|()| folder)?),
            // Without a repository there is nothing to lock.
            Err(_) => None,
        };
        let Some(before) = inspect(worktree)? else { return Ok(None) };
        let lock = before.git_dir.as_deref().map(IndexLock::take).transpose()?;
        if matches!(lock, Some(None)) {
            return Ok(Some(Obstacle::in_use("a git command is at work in it")));
        }
        let Some(Inspection { condition, tip, git_dir }) = inspect(worktree)? else { return Ok(None) };
        if let Some(why) = condition.held(with_ignored) {
            return Ok(Some(why));
        }
        failpoint::around(Step::RemoveWorktree, || take_away(worktree, git_dir.is_some(), tip))?;
        Ok(None)
    };
    removed().unwrap_or_else(|error| Some(Obstacle::in_use(error.to_string())))
}

fn take_away(worktree: &Worktree, is_there: bool, tip: Option<String>) -> Result<(), GitError> {
    let Worktree { repository, path, branch, .. } = worktree;
    if is_there {
        // Git checks the files in the worktree once more.
        let places = [Place::Of(repository), Place::In(path)];
        Git::plain_for(&places, ["worktree".as_ref(), "remove".as_ref(), path.as_os_str()]).text()?;
    }
    failpoint::at(Step::RemoveWorktree, Moment::Within);
    if let Some(tip) = tip {
        // Git refuses if the branch has changed since.
        Git::plain(Place::Of(repository), ["update-ref", "-d", &format!("refs/heads/{branch}"), &tip]).text()?;
    }
    Ok(())
}

/// Git's lock on a worktree's index: while it is held, nothing can be committed there. It is deleted with the worktree.
struct IndexLock {
    path: PathBuf,
}

impl IndexLock {
    /// Distinguishes a lock of agent-cli that a killed process left behind from git's own.
    const MARK: &str = "agent-cli removes this worktree\n";

    /// Takes the lock; `None` if git holds it. The caller must hold the lock on the repository.
    fn take(git_dir: &Path) -> io::Result<Option<Self>> {
        let (path, fresh) = (git_dir.join("index.lock"), git_dir.join("index.lock.agent-cli"));
        fs::write(&fresh, Self::MARK)?;
        let linked = fs::hard_link(&fresh, &path);
        fs::remove_file(&fresh)?;
        match linked {
            Ok(()) => Ok(Some(Self { path })),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let is_left = fs::read(&path).is_ok_and(|text| text == Self::MARK.as_bytes());
                // A value of this type must hold the lock, because dropping it deletes the lock.
                Ok(if is_left { Some(Self { path }) } else { None })
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        // It may have been deleted with the worktree.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::worktrees::testing::{Work, agent, commit, git, held, repository, succeeds};

    #[test]
    fn what_is_committed_elsewhere_goes() {
        let works: [Work; 7] = [
            |_, _| (),
            |path, top| {
                commit(path, "two");
                git(top, "merge -q agent-cli/agent-1");
            },
            |path, _| {
                git(path, "switch -q -c mine");
                commit(path, "two");
            },
            |path, _| drop(git(path, "branch -q -m mine")),
            |path, top| {
                commit(path, "two");
                git(top, "clone -q --bare . ../remote");
                git(top, "remote add origin ../remote");
                git(top, "fetch -q origin");
            },
            |path, _| drop(git(path, "checkout -q --detach main")),
            |path, top| {
                fs::write(top.join(".git/info/exclude"), "target/\n*.pyc\n").unwrap();
                fs::create_dir(path.join("target")).unwrap();
                fs::write(path.join("target/x"), "").unwrap();
                fs::write(path.join("x.pyc"), "").unwrap();
            },
        ];
        for (number, work) in works.into_iter().enumerate() {
            assert_eq!(held(work), None, "{number}");
        }
    }

    #[test]
    fn what_is_in_use_stays() {
        let works: [(Work, &str); 6] = [
            (|path, top| drop(git(top, &format!("worktree lock {}", path.display()))), "it is locked"),
            (
                |path, top| drop(git(top, &format!("worktree lock --reason mine {}", path.display()))),
                "it is locked: mine",
            ),
            (
                |path, top| {
                    git(path, "switch -q -c mine");
                    git(top, "switch -q agent-cli/agent-1");
                },
                "its branch is checked out in ",
            ),
            (|path, _| drop(git(path, "bisect start")), "a merge, rebase or bisection is in progress in it"),
            (
                |path, _| {
                    fs::remove_file(path.join(".git")).unwrap();
                    git(path, "init -q");
                },
                "it is no longer a worktree of its repository",
            ),
            (|path, _| fs::remove_file(path.join(".git")).unwrap(), "it is no longer a worktree of its repository"),
        ];
        for (number, (work, expected)) in works.into_iter().enumerate() {
            let (temp, top) = repository();
            let worktree = agent(&temp, &top, "1");
            work(&worktree.path, &top);
            let why = remove(&worktree, true).unwrap_or_else(|| panic!("{number}"));
            assert!(why.words.starts_with(expected), "{number}: {why:?}");
            assert_eq!(outlook(&worktree, true), Outlook::Held(why), "{number}");
            assert!(worktree.path.exists());
        }
    }

    #[test]
    fn nothing_is_done_while_git_works_there_and_a_lock_of_a_killed_removal_does_not_count() {
        let (temp, top) = repository();
        let worktree = agent(&temp, &top, "1");
        let lock = PathBuf::from(git(&worktree.path, "rev-parse --absolute-git-dir")).join("index.lock");
        fs::write(&lock, "").unwrap();
        assert_eq!(remove(&worktree, false).unwrap().words, "a git command is at work in it");
        assert!(lock.exists() && worktree.path.exists());
        fs::write(&lock, IndexLock::MARK).unwrap();
        assert_eq!(remove(&worktree, false), None);
        assert_eq!(outlook(&worktree, false), Outlook::Gone);
        assert_eq!(remove(&worktree, false), None);
    }

    #[test]
    fn a_branch_that_has_moved_since_is_not_deleted() {
        let (temp, top) = repository();
        let worktree = agent(&temp, &top, "1");
        let seen = git(&top, "rev-parse main");
        commit(&worktree.path, "two");
        let place = temp.path().join("aside");
        fs::rename(&worktree.path, &place).unwrap();
        let error = take_away(&worktree, false, Some(seen)).unwrap_err().to_string();
        assert!(error.starts_with("git update-ref failed: "), "{error}");
        assert!(succeeds(&top, "rev-parse --verify -q refs/heads/agent-cli/agent-1"));
    }

    #[test]
    fn two_agents_on_one_commit_do_not_vouch_for_each_other() {
        let (temp, top) = repository();
        let outer = agent(&temp, &top, "1");
        commit(&outer.path, "two");
        let inner = agent(&temp, &outer.path, "2");
        assert_eq!(inner.base, git(&outer.path, "rev-parse HEAD"));
        for worktree in [&outer, &inner, &outer] {
            assert!(remove(worktree, false).unwrap().words.contains("on no branch outside agent-cli/"));
        }
        git(&top, "merge -q agent-cli/agent-1");
        assert_eq!((remove(&outer, false), remove(&inner, false)), (None, None));
    }

    #[test]
    fn where_the_repository_is_gone_the_files_stay() {
        let (temp, top) = repository();
        let worktree = agent(&temp, &top, "1");
        fs::rename(&top, temp.path().join("aside")).unwrap();
        let why = remove(&worktree, true).unwrap();
        assert_eq!(why.words, format!("its repository {} is gone", worktree.repository.display()));
        fs::remove_dir_all(&worktree.path).unwrap();
        assert_eq!(remove(&worktree, true), None);
    }

    #[test]
    fn worktrees_of_bare_and_shallow_repositories_are_judged_like_others() {
        let (temp, top) = repository();
        commit(&top, "two");
        git(temp.path(), &format!("clone -q --bare {} bare", top.display()));
        git(temp.path(), &format!("clone -q --depth=1 file://{} shallow", top.display()));
        let bare = temp.path().canonicalize().unwrap().join("bare");
        git(&bare, "worktree add -q ../of-bare -b work");
        for from in ["of-bare", "shallow"] {
            let from = temp.path().canonicalize().unwrap().join(from);
            let worktree = agent(&temp, &from, "1");
            commit(&worktree.path, "three");
            assert!(remove(&worktree, false).unwrap().words.contains("on no branch outside agent-cli/"));
            git(&from, &format!("merge -q {}", worktree.branch));
            assert_eq!(remove(&worktree, false), None);
        }
    }
}
