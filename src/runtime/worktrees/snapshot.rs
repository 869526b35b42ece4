//! A commit with all files of a worktree, also uncommitted ones: made at one place, and unpacked at another.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::core::agent::child_worktree::Worktree;
use crate::runtime::worktrees::git::{Git, GitError, Place};
use crate::runtime::worktrees::inspection::own_git_dir;
use crate::runtime::worktrees::regular_file;
use crate::runtime::worktrees::worktree::{self, WorktreeError, io};

/// How long a person waits for git to read a worktree.
const PATIENCE: Duration = Duration::from_secs(120);

/// A commit with the files of a worktree as they are. Nothing refers to it yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) commit: String,
    /// The last commit of the agent's branch, unless the agent has removed the branch.
    pub(crate) branch: Option<String>,
}

/// Makes a snapshot. Neither the worktree nor its index changes. Returns `last` if it still is one. `interrupted` completes when a person
/// does not want to wait any longer.
pub(crate) fn make<F: Future<Output = ()> + Send>(
    worktree: &Worktree,
    last: Option<&str>,
    interrupted: &impl Fn() -> F,
) -> Result<Made, WorktreeError> {
    let path = &worktree.path;
    // Whatever git would find there instead could have any files.
    if own_git_dir(path, &worktree.repository)?.is_none() {
        return Err(WorktreeError::Replaced(path.clone()));
    }
    let text = |arguments: &[&str]| Git::new(path, arguments).text_within(PATIENCE, interrupted());
    let (head, branch) = (text(&["rev-parse", "--verify", "HEAD^{commit}"])?, branch_of(worktree));
    // The index knows which files have not changed since they were last read. It has to stay as it is, so git gets a copy.
    let temp = tempfile::tempdir().map_err(io("make a temporary folder"))?;
    let no_attributes = &empty_tree(worktree)?;
    let index = OwnIndex { path, no_attributes, index: temp.path().join("index") };
    index.copy(&path.join(text(&["rev-parse", "--git-path", "index"])?)).map_err(io("copy the index of a worktree"))?;
    index.notice_all_changes(&interrupted)?;
    let parents: Vec<&str> =
        [Some(head.as_str()), branch.as_deref().filter(|branch| *branch != head)].into_iter().flatten().collect();
    index.read_changed_again(start(worktree, &parents))?;
    let is_sparse = text(&["config", "--get", "core.sparseCheckout"]).is_ok_and(|value| value == "true");
    let sparse = if is_sparse { &["--sparse"][..] } else { &[] };
    let add = [&["add", "--all"], sparse, &["--", ":/"]].concat();
    index.git(&add).text_within(PATIENCE, interrupted())?;
    index.check_repositories(&head)?;
    let tree = index.git(&["write-tree"]).text()?;
    if let Some(last) = last
        && text(&["log", "-1", "--format=%T %P", last, "--"])
            .is_ok_and(|known| known == format!("{tree} {}", parents.join(" ")))
    {
        return Ok(Made { commit: last.to_owned(), branch });
    }
    Ok(Made { commit: text(&commit_arguments(&tree, &parents))?, branch })
}

/// The commit whose files git checks out where the snapshot is unpacked, with all filters; `tips` are the commits of the agent. Files
/// that differ from it are in the snapshot as they are. With a filter such as that of git-lfs, git has only the name of the content,
/// which the remote may not have.
fn start<'a>(worktree: &'a Worktree, tips: &[&'a str]) -> &'a str {
    let base = worktree.base.as_str();
    let is_ancestor = |tip: &&str| {
        Git::new(Place::Of(&worktree.repository), ["merge-base", "--is-ancestor", base, tip]).text().is_ok()
    };
    let is_known = worktree::has_base(worktree) && tips.iter().any(is_ancestor);
    if is_known { base } else { tips.first().copied().unwrap_or(base) }
}

/// The name of a tree without files, in which git looks for attributes and finds none.
fn empty_tree(worktree: &Worktree) -> Result<String, GitError> {
    Git::new(Place::Of(&worktree.repository), ["hash-object", "-t", "tree", "--stdin"]).input_bytes(Vec::new()).text()
}

/// A copy of the index of a worktree.
struct OwnIndex<'a> {
    path: &'a Path,
    no_attributes: &'a str,
    index: PathBuf,
}

/// A file or repository in an index.
struct Entry {
    /// How git treats it: `H`, in lower case if changes of the file are to be ignored, and `S` if it is not to be there.
    tag: u8,
    is_repository: bool,
    object: String,
    /// Relative to the top.
    path: PathBuf,
}

impl OwnIndex<'_> {
    fn git(&self, arguments: &[&str]) -> Git {
        Git::unconverted(self.path, self.no_attributes, arguments).env("GIT_INDEX_FILE", &self.index)
    }

    fn copy(&self, index: &Path) -> io::Result<()> {
        if index.exists() {
            regular_file::copy(index, &self.index)?;
            // Git reads files again that have changed in the same moment as the index.
            File::options().write(true).open(&self.index)?.set_modified(fs::metadata(index)?.modified()?)?;
        }
        Ok(())
    }

    fn entries<F: Future<Output = ()> + Send>(&self, interrupted: &impl Fn() -> F) -> Result<Vec<Entry>, GitError> {
        let listed = self.git(&["ls-files", "-v", "-s", "-z"]).bytes_within(PATIENCE, interrupted())?;
        let entry = |line: &[u8]| {
            let (stat, path) = line.split_at(line.iter().position(|byte| *byte == b'\t')?);
            let stat = String::from_utf8_lossy(stat);
            let mut words = stat.split(' ');
            let (tag, mode, object) = (words.next()?, words.next()?, words.next()?);
            let path = OsStr::from_bytes(path.get(1..)?).into();
            Some(Entry {
                tag: *tag.as_bytes().first()?,
                is_repository: mode == "160000",
                object: object.to_owned(),
                path,
            })
        };
        Ok(listed.split(|byte| *byte == 0).filter_map(entry).collect())
    }

    /// Removes the marks with which git ignores changes of files.
    fn notice_all_changes<F: Future<Output = ()> + Send>(&self, interrupted: &impl Fn() -> F) -> Result<(), GitError> {
        let entries = self.entries(interrupted)?;
        let is_there = |entry: &&Entry| self.path.join(&entry.path).symlink_metadata().is_ok();
        let paths = |entries: &mut dyn Iterator<Item = &Entry>| {
            entries.flat_map(|entry| entry.path.as_os_str().as_bytes().iter().chain(&[0])).copied().collect::<Vec<_>>()
        };
        let assumed = paths(&mut entries.iter().filter(|entry| entry.tag.is_ascii_lowercase()));
        let skipped = paths(&mut entries.iter().filter(|entry| entry.tag.eq_ignore_ascii_case(&b'S')).filter(is_there));
        for (option, paths) in [("--no-assume-unchanged", assumed), ("--no-skip-worktree", skipped)] {
            if !paths.is_empty() {
                self.git(&["update-index", option, "-z", "--stdin"]).input_bytes(paths).text()?;
            }
        }
        Ok(())
    }

    /// Has git read the files again that differ from those of a commit, because filters may have changed what it has of them.
    fn read_changed_again(&self, commit: &str) -> Result<(), GitError> {
        let differ = self.git(&["diff-index", "--cached", "--no-renames", "-z", commit, "--"]).bytes()?;
        let mut words = differ.split(|byte| *byte == 0);
        let mut entries = Vec::new();
        while let (Some(change), Some(path)) = (words.next(), words.next()) {
            let change = String::from_utf8_lossy(change);
            let mut change = change.split(' ').skip(1);
            let (Some(mode), Some(object)) = (change.next(), change.nth(1)) else { continue };
            if mode.starts_with("100") {
                entries.extend_from_slice(format!("{mode} {object}\t").as_bytes());
                entries.extend_from_slice(path);
                entries.push(0);
            }
        }
        if entries.is_empty() {
            return Ok(());
        }
        self.git(&["update-index", "-z", "--index-info"]).input_bytes(entries).text().map(drop)
    }

    /// An error if there is a repository with something that `head` does not name: a commit has only the name of its last commit.
    fn check_repositories(&self, head: &str) -> Result<(), WorktreeError> {
        for Entry { path, object, .. } in
            self.entries(&std::future::pending::<()>)?.into_iter().filter(|entry| entry.is_repository)
        {
            let top = self.path.join(&path);
            if !top.join(".git").exists() {
                continue;
            }
            let known = Git::new(self.path, [OsStr::new("rev-parse"), &named(head, &path)]).text();
            let changed = Git::new(&top, ["status", "--porcelain", "--untracked-files=all"]).text();
            if known.is_ok_and(|known| known == object) && changed.is_ok_and(|changed| changed.is_empty()) {
                continue;
            }
            return Err(WorktreeError::Nested(path));
        }
        Ok(())
    }
}

/// The name of what a commit has at a path.
fn named(commit: &str, path: &Path) -> OsString {
    let mut name = OsString::from(format!("{commit}:"));
    name.push(path);
    name
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
/// it is no worktree any more, under another name next to it. `begins` is called after that, and records that what is there from then on
/// is incomplete. `is_incomplete`: it was recorded before.
pub(crate) fn unpack(
    worktree: &Worktree,
    cwd: &Path,
    commit: &str,
    is_incomplete: bool,
    begins: impl FnOnce() -> io::Result<()>,
) -> Result<(), WorktreeError> {
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
    let directory = if worktree::is_made(worktree) { own_git_dir(path, repository)? } else { None };
    if let Some(directory) = &directory {
        // A killed git may have left them. Nothing else uses this worktree now.
        for lock in ["index.lock", "HEAD.lock"] {
            remove(|| fs::remove_file(directory.join(lock))).map_err(io("remove a lock of the worktree"))?;
        }
    }
    match &directory {
        _ if is_incomplete => {}
        Some(_) => drop(keep(&make(worktree, None, &std::future::pending::<()>)?.commit)?),
        None if path.exists() => {
            let aside = (1..).map(|number| path.with_extension(format!("kept-{number}"))).find(|aside| !aside.exists());
            fs::rename(path, aside.unwrap_or_default())
                .map_err(io("move away what is in the place of the worktree"))?;
        }
        None => {}
    }
    if let Some(own) = branch_of(worktree)
        && own != tip
    {
        keep(&own)?;
    }
    let no_attributes = &empty_tree(worktree)?;
    begins().map_err(io("note that the worktree is incomplete"))?;
    let name = format!("refs/heads/{branch}");
    // An agent may have made it another name of a branch that is not its own.
    of_repository(&["update-ref", "--no-deref", "-m", "fetched by agent-cli", &name, tip])?;
    if directory.is_some() {
        Git::new(path, ["symbolic-ref", "HEAD", &name]).text()?;
        // Otherwise, files that the snapshot does not have would remain.
        Git::unconverted(path, no_attributes, &["add", "--all", "--", ":/"]).text()?;
    } else {
        remove(|| fs::remove_dir_all(path)).map_err(io("remove an incomplete worktree"))?;
        worktree::add(worktree, &[path.as_os_str(), OsStr::new(branch)])?;
    }
    if head != tip {
        Git::new(path, ["update-ref", "--no-deref", "HEAD", head]).text()?;
    }
    let start = start(worktree, &[head, tip]);
    Git::new(path, ["read-tree", "--reset", "-u", start]).text()?;
    Git::unconverted(path, no_attributes, &["read-tree", "--reset", "-u", start, commit]).text()?;
    Git::new(path, ["reset", "--mixed", "--quiet", "--no-recurse-submodules"]).text()?;
    worktree::make_cwd(cwd)
}

fn remove(remove: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    match remove() {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
