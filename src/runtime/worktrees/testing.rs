//! Git repositories for tests.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::core::agent::child_worktree::Worktree;
use crate::runtime::worktrees::git::git as command;
use crate::runtime::worktrees::worktree::{ensure, plan};
use crate::runtime::worktrees::worktree_removal::{Outlook, outlook, remove};

/// A repository with one commit, on `main`.
pub(crate) fn repository() -> (TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let top = temp.path().canonicalize().unwrap().join("repository");
    fs::create_dir(&top).unwrap();
    git(&top, "init -q -b main");
    commit(&top, "one");
    (temp, top)
}

/// A worktree created for an agent of this name.
pub(crate) fn agent(temp: &TempDir, from: &Path, name: &str) -> Worktree {
    let folder = temp.path().canonicalize().unwrap().join("worktrees");
    let (worktree, cwd) = plan(&folder, from, None, None, "agent", name).unwrap();
    ensure(&worktree, &cwd).unwrap();
    worktree
}

/// Commits a file of this name.
pub(crate) fn commit(folder: &Path, name: &str) {
    fs::write(folder.join(name), name).unwrap();
    git(folder, &format!("add -f {name}"));
    git(folder, &format!("commit -q -m {name}"));
}

/// The output of a git command. Its arguments are separated by spaces.
#[track_caller]
pub(crate) fn git(folder: &Path, arguments: &str) -> String {
    let who = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.com", "-c", "protocol.file.allow=always"];
    let output = command().arg("-C").arg(folder).args(who).args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "git {arguments}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim_end_matches('\n').to_owned()
}

/// Whether a git command succeeds.
pub(crate) fn succeeds(folder: &Path, arguments: &str) -> bool {
    command().arg("-C").arg(folder).args(arguments.split(' ')).output().unwrap().status.success()
}

/// What an agent and others do in a worktree at `path` of the repository at `top`.
pub(crate) type Work = fn(&Path, &Path);

/// Does the work, and returns why the worktree is kept. Checks that inspection and removal agree.
pub(crate) fn held(work: Work) -> Option<String> {
    let (temp, top) = repository();
    let worktree = agent(&temp, &top, "1");
    work(&worktree.path, &top);
    let all = git(&top, "rev-list --all --reflog");
    let outlook = outlook(&worktree, false);
    let obstacle = remove(&worktree, false);
    let why = obstacle.as_ref().map(|obstacle| obstacle.words.clone());
    match (&why, &outlook) {
        (None, Outlook::Removable(_)) => {
            assert!(!worktree.path.exists());
            assert!(!succeeds(&top, &format!("rev-parse --verify -q refs/heads/{}", worktree.branch)));
            assert_eq!(git(&top, "rev-list --branches --remotes --stdin").len(), git(&top, "rev-list --all").len());
            let kept = git(&top, "rev-list --all --reflog");
            assert!(all.lines().all(|commit| kept.contains(commit)), "a commit was lost: {all}, {kept}");
        }
        (Some(why), Outlook::Held(said)) => {
            assert_eq!(why, &said.words);
            assert!(worktree.path.exists());
            let locks = git(&worktree.path, "rev-parse --absolute-git-dir") + "/index.lock";
            assert!(!Path::new(&locks).exists() || why.contains("at work"), "it can be worked in");
        }
        (why, outlook) => panic!("{why:?}, and {outlook:?} was said"),
    }
    why
}
