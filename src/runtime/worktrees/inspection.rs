//! Determines what would be lost with a worktree, by asking git and checking files, regardless of settings, ignore files and
//! marks in the index.
//!
//! A commit is safe if it is on a branch or remote-tracking branch that is not agent-cli's. A tag, a reflog, a detached head or
//! another agent's branch does not make it safe: they may be removed, too.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::claude::environment::regular_file;
use crate::core::agent::child_worktree::{IgnoredFiles, Loss, Worktree, WorktreeCondition};
use crate::runtime::worktrees::git::{Git, GitError, Place};

/// Where agents' branches are.
const OWN: &str = "refs/heads/agent-cli/";

/// A worktree and its branch, as found. Either may be missing.
#[derive(Debug, Default)]
pub(crate) struct Inspection {
    pub(crate) condition: WorktreeCondition,
    /// Git's own directory of the worktree, if it exists.
    pub(crate) git_dir: Option<PathBuf>,
    /// The branch's last commit, if the branch exists.
    pub(crate) tip: Option<String>,
}

/// Inspects a worktree and its branch. `None`: neither exists.
pub(crate) fn inspect(worktree: &Worktree) -> Result<Option<Inspection>, GitError> {
    let Worktree { repository, path, branch, .. } = worktree;
    let is_there = fs::symlink_metadata(path).is_ok();
    if !repository.exists() {
        let losses = vec![Loss::NoRepository(repository.clone())];
        let condition = WorktreeCondition { losses, ..WorktreeCondition::default() };
        return Ok(is_there.then(|| Inspection { condition, ..Inspection::default() }));
    }
    let mut seen = Inspection::default();
    let mut commits = Vec::new();
    if let Some((tip, checked_out)) = find_branch(repository, branch)? {
        let elsewhere = checked_out.filter(|place| place != path);
        seen.condition.losses.extend(elsewhere.map(Loss::CheckedOut));
        commits.extend(reflog(Place::Of(repository), &format!("refs/heads/{branch}")));
        commits.push(tip.clone());
        seen.tip = Some(tip);
    }
    if !is_there && seen.tip.is_none() {
        return Ok(None);
    }
    if is_there {
        let Some(git_dir) = own_git_dir(path, repository)? else {
            seen.condition.losses.push(Loss::NoWorktree);
            return Ok(Some(seen));
        };
        seen.condition.losses.extend(marks(&git_dir));
        files(path, &mut seen.condition)?;
        seen.condition.losses.extend(repositories(path)?);
        commits.extend(commits_of(path)?);
        seen.git_dir = Some(git_dir);
    }
    seen.condition.losses.extend(unsafe_commit(repository, commits)?.map(Loss::Commit));
    Ok(Some(seen))
}

/// A branch's last commit, and the worktree that has it checked out.
fn find_branch(repository: &Path, branch: &str) -> Result<Option<(String, Option<PathBuf>)>, GitError> {
    let name = format!("refs/heads/{branch}");
    let format = "--format=%(refname) %(objectname) %(worktreepath)";
    let found = Git::plain(Place::Of(repository), ["for-each-ref", format, &name]).text()?;
    // The pattern also matches names below it.
    Ok(found.lines().find_map(|line| {
        let mut words = line.splitn(3, ' ');
        let commit = words.next().filter(|found| *found == name).and(words.next())?;
        Some((commit.to_owned(), words.next().filter(|path| !path.is_empty()).map(PathBuf::from)))
    }))
}

/// Git's directory of the worktree at `path`. `None`: this is not a worktree of this repository, because an agent has put
/// another repository there or part of it is missing.
pub(super) fn own_git_dir(path: &Path, repository: &Path) -> Result<Option<PathBuf>, GitError> {
    let said = |what: &str| Git::plain(path, ["rev-parse", what]).text();
    let Ok(git_dir) = said("--absolute-git-dir") else { return Ok(None) };
    let (top, shared) = (said("--show-toplevel")?, path.join(said("--git-common-dir")?));
    let is = |one: &Path, other: &Path| matches!((one.canonicalize(), other.canonicalize()), (Ok(a), Ok(b)) if a == b);
    // An agent can write a file that names any directory, but not into the repository.
    let is_inside = repository.canonicalize().is_ok_and(|real| Path::new(&git_dir).starts_with(real.join("worktrees")));
    // A link, or a copy of another worktree's file, leads to a directory that does not name this worktree.
    let names = regular_file::read(&Path::new(&git_dir).join("gitdir")).unwrap_or_default();
    let names = Path::new(&git_dir).join(OsStr::from_bytes(names.trim_ascii_end()));
    let is_named = !path.is_symlink() && names.parent().is_some_and(|named| is(named, path));
    let is_own = is(Path::new(&top), path) && is(&shared, repository) && is_inside && is_named;
    Ok(is_own.then(|| PathBuf::from(git_dir)))
}

/// What the files in git's directory of a worktree say about it.
fn marks(git_dir: &Path) -> Vec<Loss> {
    const UNDER_WAY: [&str; 7] =
        ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply", "sequencer"];
    let locked = regular_file::read(&git_dir.join("locked")).ok();
    let locked = locked.map(|why| Loss::Locked(String::from_utf8_lossy(&why).trim().to_owned()));
    let under_way = UNDER_WAY.iter().any(|name| git_dir.join(name).exists()).then_some(Loss::UnderWay);
    locked.into_iter().chain(under_way).collect()
}

/// Uncommitted files, if any.
fn files(path: &Path, condition: &mut WorktreeCondition) -> Result<(), GitError> {
    let status = [
        "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignored=matching",
        "--ignore-submodules=dirty",
    ];
    let said = Git::plain(path, status).bytes()?;
    let mut is_changed = false;
    for line in said.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        match line.strip_prefix(b"!! ") {
            Some(name) => condition.ignored.push(ignored(path, name)),
            None => is_changed = true,
        }
    }
    condition.ignored.sort();
    condition.losses.extend(is_changed.then_some(Loss::Uncommitted));
    condition.losses.extend(unwatched(path)?.map(Loss::Unwatched));
    Ok(())
}

fn ignored(top: &Path, name: &[u8]) -> IgnoredFiles {
    let is_folder = name.ends_with(b"/");
    let path = PathBuf::from(OsStr::from_bytes(name.strip_suffix(b"/").unwrap_or(name)));
    let is_tagged =
        is_folder && regular_file::read(&top.join(&path).join("CACHEDIR.TAG")).is_ok_and(|tag| tag.starts_with(TAG));
    IgnoredFiles { path, is_folder, is_tagged }
}

/// The signature of the Cache Directory Tagging Specification.
const TAG: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";

/// An existing file that the index tells git not to check (`update-index --assume-unchanged`, `--skip-worktree`).
fn unwatched(path: &Path) -> Result<Option<PathBuf>, GitError> {
    let said = Git::plain(path, ["ls-files", "-v", "-z"]).bytes()?;
    let hidden = said.split(|byte| *byte == 0).filter_map(|line| match line.split_at_checked(2) {
        Some((tag, name)) if tag[0].is_ascii_lowercase() || tag[0] == b'S' => Some(Path::new(OsStr::from_bytes(name))),
        _ => None,
    });
    let mut there = hidden.filter(|name| fs::symlink_metadata(path.join(name)).is_ok());
    Ok(there.next().map(Path::to_owned))
}

/// Every commit that only the worktree refers to: the present and former commits of its head, and the commits of its own
/// refs.
fn commits_of(path: &Path) -> Result<Vec<String>, GitError> {
    let one = |name: &str| Git::plain(path, ["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")]).text();
    let mut commits: Vec<String> = ["HEAD", "ORIG_HEAD"].into_iter().filter_map(|name| one(name).ok()).collect();
    commits.extend(reflog(path.into(), "HEAD"));
    let own = ["for-each-ref", "--format=%(objectname)", "refs/worktree", "refs/bisect", "refs/rewritten"];
    commits.extend(Git::plain(path, own).text()?.lines().map(str::to_owned));
    Ok(commits)
}

/// The commits that a ref has pointed to. A head that was never on a commit has none.
fn reflog(place: Place<'_>, name: &str) -> Vec<String> {
    let said = Git::plain(place, ["reflog", "show", "--format=%H", name, "--"]).text().unwrap_or_default();
    said.lines().map(str::to_owned).collect()
}

/// One of the commits or their ancestors that is only on agent-cli's branches, if any.
fn unsafe_commit(repository: &Path, commits: Vec<String>) -> Result<Option<String>, GitError> {
    if commits.is_empty() {
        return Ok(None);
    }
    let format = "--format=%(refname) %(objecttype) %(objectname) %(symref)";
    let refs = Git::plain(Place::Of(repository), ["for-each-ref", format, "refs/heads", "refs/remotes"]).text()?;
    // If the target of a symbolic ref is safe, it is listed itself.
    let safe = refs.lines().filter_map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
        [name, "commit", commit, ""] if !name.starts_with(OWN) => Some(format!("^{commit}")),
        _ => None,
    });
    // Git may have deleted commits that a reflog still names.
    let list = ["rev-list", "--max-count=1", "--ignore-missing", "--stdin"];
    let found = Git::plain(Place::Of(repository), list).input(commits.into_iter().chain(safe)).text()?;
    Ok(Some(found).filter(|commit| !commit.is_empty()))
}

/// Repositories below the top folder with anything that their remotes lack, and worktrees and submodules, for which this is not
/// checked.
fn repositories(top: &Path) -> Result<Vec<Loss>, GitError> {
    let mut found = Vec::new();
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        let is_bare = folder != top && ["HEAD", "objects", "refs"].iter().all(|name| folder.join(name).exists());
        if is_bare && has_own_work(&folder, true) {
            found.push(Loss::Repository(below(top, &folder)));
        }
        if is_bare {
            continue;
        }
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let is_folder = entry.file_type()?.is_dir();
            if entry.file_name() != ".git" {
                folders.extend(is_folder.then(|| entry.path()));
            } else if folder != top && (!is_folder || has_own_work(&folder, false)) {
                found.push(Loss::Repository(below(top, &folder)));
            }
        }
    }
    found.sort_by_key(ToString::to_string);
    Ok(found)
}

fn below(top: &Path, path: &Path) -> PathBuf {
    path.strip_prefix(top).unwrap_or(path).to_owned()
}

/// Whether a repository has files or commits that are not on its remotes. If this cannot be determined, assume that it has.
pub(super) fn has_own_work(folder: &Path, is_bare: bool) -> bool {
    let clean = || {
        let mut condition = WorktreeCondition::default();
        if !is_bare {
            files(folder, &mut condition)?;
        }
        let list = ["rev-list", "--max-count=1", "--ignore-missing", "--all", "--reflog", "HEAD", "--not", "--remotes"];
        let place = if is_bare { Place::Of(folder) } else { Place::In(folder) };
        let commits = Git::plain(place, list).text()?;
        Ok::<_, GitError>(condition.held(false).is_none() && commits.is_empty())
    };
    !clean().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::worktrees::testing::{Work, commit, git, held};

    #[test]
    fn commits_that_are_on_no_branch_outside_stay() {
        let works: [Work; 10] = [
            |path, _| commit(path, "two"),
            |path, _| {
                commit(path, "two");
                git(path, "checkout -q --detach main");
            },
            |path, _| {
                git(path, "checkout -q --detach");
                commit(path, "two");
            },
            |path, _| {
                commit(path, "two");
                git(path, "reset -q --hard main");
            },
            |path, _| {
                commit(path, "two");
                git(path, "tag kept");
            },
            |path, _| {
                commit(path, "two");
                git(path, "branch agent-cli/other");
            },
            |path, _| {
                commit(path, "two");
                git(path, "symbolic-ref refs/heads/other refs/heads/agent-cli/agent-1");
            },
            |path, _| {
                commit(path, "two");
                git(path, "branch -q -m agent-cli/renamed");
            },
            |path, top| {
                commit(path, "two");
                // As if the branch belonged to the user.
                let (two, one) = (git(path, "rev-parse HEAD"), git(top, "rev-parse main"));
                git(top, &format!("replace {one} {two}"));
            },
            |path, _| {
                git(path, "checkout -q --detach");
                commit(path, "two");
                git(path, "update-ref refs/worktree/mine HEAD");
                git(path, "checkout -q agent-cli/agent-1");
                git(path, "reflog expire --expire=now --all");
            },
        ];
        for (number, work) in works.into_iter().enumerate() {
            let why = held(work).unwrap_or_else(|| panic!("{number}"));
            assert!(
                why.starts_with("it has commits that are on no branch outside agent-cli/, such as "),
                "{number}: {why}"
            );
        }
    }

    #[test]
    fn uncommitted_files_stay_even_if_git_is_configured_to_hide_them() {
        let works: [Work; 12] = [
            |path, _| fs::write(path.join("new"), "new").unwrap(),
            |path, _| fs::write(path.join("one"), "changed").unwrap(),
            |path, _| {
                fs::write(path.join("one"), "staged").unwrap();
                git(path, "add one");
                fs::write(path.join("one"), "one").unwrap();
            },
            |path, _| {
                git(path, "config status.showUntrackedFiles no");
                fs::write(path.join("new"), "new").unwrap();
            },
            |path, _| {
                git(path, "update-index --assume-unchanged one");
                fs::write(path.join("one"), "changed").unwrap();
            },
            |path, _| {
                git(path, "update-index --skip-worktree one");
                fs::write(path.join("one"), "changed").unwrap();
            },
            |path, _| {
                git(path, "config core.ignoreStat true");
                git(path, "checkout -q main~0 -- one");
                fs::write(path.join("one"), "changed").unwrap();
            },
            |path, _| {
                let status = path.join("../fsmonitor");
                fs::write(&status, "#!/bin/sh\nprintf 'token\\0'\n").unwrap();
                fs::set_permissions(&status, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
                git(path, &format!("config core.fsmonitor {}", status.canonicalize().unwrap().display()));
                git(path, "config core.untrackedCache true");
                git(path, "status --porcelain");
                fs::write(path.join("one"), "changed").unwrap();
                fs::write(path.join("new"), "new").unwrap();
            },
            |path, top| {
                fs::write(top.join(".git/info/exclude"), "*\n").unwrap();
                fs::write(path.join("new"), "new").unwrap();
            },
            |path, _| {
                git(path, "config core.fileMode false");
                fs::set_permissions(path.join("one"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
            },
            |path, _| {
                git(path, "config core.ignoreCase true");
                fs::write(path.join("ONE"), "another").unwrap();
            },
            |path, _| {
                git(path, "config core.excludesFile .myignore");
                fs::write(path.join(".myignore"), "*\n").unwrap();
            },
        ];
        for (number, work) in works.into_iter().enumerate() {
            assert!(held(work).is_some(), "{number}");
        }
    }

    #[test]
    fn repositories_within_stay_unless_all_of_them_is_on_their_remotes() {
        fn ignored(path: &Path, top: &Path) -> PathBuf {
            fs::write(top.join(".git/info/exclude"), "target/\n").unwrap();
            fs::create_dir(path.join("target")).unwrap();
            path.join("target")
        }
        fn cloned(path: &Path, top: &Path) -> PathBuf {
            let folder = ignored(path, top);
            git(&folder, &format!("clone -q {} inner", top.display()));
            folder.join("inner")
        }
        assert_eq!(held(|path, top| drop(cloned(path, top))), None);
        assert_eq!(held(|path, top| drop(git(&ignored(path, top), "init -q inner"))), None);
        let works: [Work; 8] = [
            |path, top| commit(&cloned(path, top), "two"),
            |path, top| fs::write(cloned(path, top).join("new"), "new").unwrap(),
            |path, top| {
                let inner = cloned(path, top);
                fs::write(inner.join("one"), "stashed").unwrap();
                git(&inner, "stash -q");
            },
            |path, top| {
                let inner = ignored(path, top).join("inner");
                git(top, &format!("init -q {}", inner.display()));
                fs::write(inner.join("new"), "new").unwrap();
            },
            |path, top| {
                let folder = ignored(path, top);
                git(&folder, &format!("clone -q --bare {} inner", top.display()));
            },
            |path, top| {
                let folder = ignored(path, top);
                git(path, &format!("worktree add -q --detach {}/inner", folder.display()));
            },
            |path, top| {
                let inner = cloned(path, top);
                git(&inner, "init -q deeper");
                commit(&inner.join("deeper"), "two");
            },
            |path, top| {
                git(path, &format!("submodule --quiet add {} sub", top.display()));
                git(path, "commit -q -m sub");
                git(top, "merge -q agent-cli/agent-1");
            },
        ];
        for (number, work) in works.into_iter().enumerate() {
            let why = held(work).unwrap_or_else(|| panic!("{number}"));
            assert!(why.contains("it contains another repository"), "{number}: {why}");
            assert!(["inner", "deeper", "sub"].iter().any(|name| why.ends_with(name)), "{number}: {why}");
        }
    }
}
