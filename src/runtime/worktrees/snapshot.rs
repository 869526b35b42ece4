//! A commit with all files of a worktree, also uncommitted ones: made at one place, and unpacked at another.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use crate::core::agent::child_worktree::Worktree;
use crate::runtime::worktrees::git::{Git, Place};
use crate::runtime::worktrees::inspection::own_git_dir;
use crate::runtime::worktrees::worktree::{self, WorktreeError, io};

/// A commit with the files of a worktree as they are. Nothing refers to it yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) commit: String,
    /// The last commit of the agent's branch, unless the agent has removed the branch.
    pub(crate) branch: Option<String>,
}

/// Makes a snapshot. Neither the worktree nor its index changes. Returns `last` if it still is one.
pub(crate) fn make(worktree: &Worktree, last: Option<&str>) -> Result<Made, WorktreeError> {
    let path = &worktree.path;
    // Whatever git would find there instead could have any files.
    if own_git_dir(path, &worktree.repository)?.is_none() {
        return Err(WorktreeError::Replaced(path.clone()));
    }
    let text = |arguments: &[&str]| Git::new(path, arguments).text();
    let (head, branch) = (text(&["rev-parse", "--verify", "HEAD^{commit}"])?, branch_of(worktree));
    // The index knows which files have not changed since they were last read. It has to stay as it is, so git gets a copy.
    let temp = tempfile::tempdir().map_err(io("make a temporary folder"))?;
    let (index, own) = (path.join(text(&["rev-parse", "--git-path", "index"])?), temp.path().join("index"));
    if index.exists() {
        fs::copy(&index, &own).map_err(io("copy the index of a worktree"))?;
    }
    let with_own = |arguments: &[&str]| Git::new(path, arguments).env("GIT_INDEX_FILE", &own).text();
    with_own(&["add", "--all", "--", ":/"])?;
    let tree = with_own(&["write-tree"])?;
    let parents: Vec<&str> =
        [Some(head.as_str()), branch.as_deref().filter(|branch| *branch != head)].into_iter().flatten().collect();
    if let Some(last) = last
        && text(&["log", "-1", "--format=%T %P", last, "--"])
            .is_ok_and(|known| known == format!("{tree} {}", parents.join(" ")))
    {
        return Ok(Made { commit: last.to_owned(), branch });
    }
    Ok(Made { commit: text(&commit_arguments(&tree, &parents))?, branch })
}

/// The snapshot of a worktree that has just been made.
pub(crate) fn of_base(worktree: &Worktree) -> Result<String, WorktreeError> {
    let Worktree { repository, base, .. } = worktree;
    let tree = format!("{base}^{{tree}}");
    Ok(Git::new(Place::Of(repository), commit_arguments(&tree, &[base])).text()?)
}

fn commit_arguments<'a>(tree: &'a str, parents: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["-c", "user.name=agent-cli", "-c", "user.email=agent-cli@localhost", "commit-tree", tree];
    arguments.extend(["-m", "The files of an agent's worktree"]);
    arguments.extend(parents.iter().flat_map(|parent| ["-p", parent]));
    arguments
}

/// The last commit of the agent's branch.
fn branch_of(worktree: &Worktree) -> Option<String> {
    let name = format!("refs/heads/{}^{{commit}}", worktree.branch);
    Git::new(Place::Of(&worktree.repository), ["rev-parse", "--verify", "--quiet", &name]).text().ok()
}

/// Makes the worktree as it was when the snapshot was made. What is in its place is kept: as commits below `refs/agent-cli/kept/`, or, if
/// it is no worktree any more, under another name next to it.
pub(crate) fn unpack(worktree: &Worktree, cwd: &Path, commit: &str) -> Result<(), WorktreeError> {
    let Worktree { repository, path, branch, .. } = worktree;
    let of_repository = |arguments: &[&str]| Git::new(Place::Of(repository), arguments).text();
    let parents = of_repository(&["log", "-1", "--format=%P", commit, "--"])?;
    let mut parents = parents.split(' ');
    let head = parents.next().unwrap_or_default();
    let tip = parents.next().unwrap_or(head);
    let keep = |kept: &str| {
        let name = format!("refs/agent-cli/kept/{kept}");
        of_repository(&["update-ref", "-m", "kept by agent-cli", &name, kept])
    };
    let is_made = worktree::is_made(worktree) && own_git_dir(path, repository)?.is_some();
    if is_made {
        keep(&make(worktree, None)?.commit)?;
    } else if path.exists() {
        let aside = (1..).map(|number| path.with_extension(format!("kept-{number}"))).find(|aside| !aside.exists());
        fs::rename(path, aside.unwrap_or_default()).map_err(io("move away what is in the place of the worktree"))?;
    }
    if let Some(own) = branch_of(worktree)
        && own != tip
    {
        keep(&own)?;
    }
    let name = format!("refs/heads/{branch}");
    of_repository(&["update-ref", "-m", "fetched by agent-cli", &name, tip])?;
    if is_made {
        Git::new(path, ["symbolic-ref", "HEAD", &name]).text()?;
        // Otherwise, files that the snapshot does not have would remain.
        Git::new(path, ["add", "--all", "--", ":/"]).text()?;
    } else {
        worktree::add(worktree, &[path.as_os_str(), OsStr::new(branch)])?;
    }
    if head != tip {
        Git::new(path, ["update-ref", "--no-deref", "HEAD", head]).text()?;
    }
    Git::new(path, ["read-tree", "--reset", "-u", commit]).text()?;
    Git::new(path, ["reset", "--mixed", "--quiet", "--no-recurse-submodules"]).text()?;
    worktree::make_cwd(cwd)
}
