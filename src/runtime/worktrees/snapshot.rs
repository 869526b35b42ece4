//! A commit with all files of a worktree, also uncommitted ones, which [`unpack`](super::unpack) unpacks at another place.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::claude::environment::regular_file;
use crate::core::agent::child_worktree::Worktree;
use crate::runtime::worktrees::directory;
use crate::runtime::worktrees::git::{Git, GitError, Place};
use crate::runtime::worktrees::inspection::{has_own_work, own_git_dir};
use crate::runtime::worktrees::worktree::{self, WorktreeError, io};

/// How long a person waits for git to read a worktree.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

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
    make_with(worktree, last, None, interrupted)
}

/// The same, with ignored files that `other` would replace.
pub(super) fn make_with<F: Future<Output = ()> + Send>(
    worktree: &Worktree,
    last: Option<&str>,
    other: Option<&str>,
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
    let index = OwnIndex { path, index: temp.path().join("index") };
    index.copy(&path.join(text(&["rev-parse", "--git-path", "index"])?)).map_err(io("copy the index of a worktree"))?;
    index.notice_all_changes(&interrupted)?;
    let parents: Vec<&str> =
        [Some(head.as_str()), branch.as_deref().filter(|branch| *branch != head)].into_iter().flatten().collect();
    index.git(&["add", "--all", "--", ":/"]).text_within(PATIENCE, interrupted())?;
    if let Some(other) = other {
        index.add_in_the_way(other)?;
    }
    let start = start(worktree, &parents);
    index.check_repositories(start)?;
    index.add_as_they_are(start, interrupted)?;
    let tree = index.git(&["write-tree"]).text()?;
    if let Some(last) = last
        && text(&["log", "-1", "--format=%T %P", last, "--"])
            .is_ok_and(|known| known == format!("{tree} {}", parents.join(" ")))
    {
        return Ok(Made { commit: last.to_owned(), branch });
    }
    Ok(Made { commit: text(&commit_arguments(&tree, &parents))?, branch })
}

/// The commit whose files git checks out where the snapshot is unpacked, with all filters; `tips` are the agent's commits. Files that
/// differ from it are in the snapshot as they are: with a filter such as that of git-lfs, git has only the name of the content,
/// which the remote may not have.
pub(super) fn start<'a>(worktree: &'a Worktree, tips: &[&'a str]) -> &'a str {
    let base = worktree.base.as_str();
    let is_ancestor = |tip: &&str| {
        Git::new(Place::Of(&worktree.repository), ["merge-base", "--is-ancestor", base, tip]).text().is_ok()
    };
    let is_known = worktree::has_base(worktree) && tips.iter().any(is_ancestor);
    if is_known { base } else { tips.first().copied().unwrap_or(base) }
}

/// A copy of the index of a worktree.
struct OwnIndex<'a> {
    path: &'a Path,
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
        Git::exact(self.path, arguments).env("GIT_INDEX_FILE", &self.index)
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

    /// Replaces what git's filters have made of the files that differ from a commit by their content.
    fn add_as_they_are<F: Future<Output = ()> + Send>(
        &self,
        commit: &str,
        interrupted: &impl Fn() -> F,
    ) -> Result<(), GitError> {
        let differ = self.git(&["diff-index", "--cached", "--no-renames", "-z", commit, "--"]).bytes()?;
        let changes: Vec<Change> = changes(&differ).filter(Change::is_file).collect();
        // A file that is not to be there keeps what git has of it.
        let changes: Vec<&Change> = changes.iter().filter(|change| is_file_in(self.path, &change.path)).collect();
        if changes.is_empty() {
            return Ok(());
        }
        let objects = hash(self.path, &["-w"], changes.iter().map(|change| &*change.path))
            .text_within(PATIENCE, interrupted())?;
        let mut entries = Vec::new();
        for (change, object) in changes.iter().zip(objects.lines()) {
            entries.extend_from_slice(format!("{} {object}\t", change.mode).as_bytes());
            entries.extend_from_slice(change.path.as_os_str().as_bytes());
            entries.push(0);
        }
        self.git(&["update-index", "-z", "--index-info"]).input_bytes(entries).text().map(drop)
    }

    /// Adds what is in the place of the files of a commit, even if git ignores it.
    fn add_in_the_way(&self, commit: &str) -> Result<(), GitError> {
        let listed = self.git(&["ls-tree", "-r", "-z", "--name-only", "--full-tree", commit]).bytes()?;
        let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(OsStr::from_bytes);
        let in_the_way = |name| {
            let mut places = Path::new(name).ancestors().take_while(|place| !place.as_os_str().is_empty());
            let found = |place: &&Path| self.path.join(place).symlink_metadata().is_ok();
            places.find(found).filter(|place| *place == Path::new(name) || !self.path.join(place).is_dir())
        };
        let places: BTreeSet<&Path> = names.filter_map(in_the_way).collect();
        add_by_name(self.git(&["add", "--force", FROM_INPUT, "--pathspec-file-nul"]), places)
    }

    /// An error if there is a repository with something that `commit` does not name and its remotes do not have: a commit has only the
    /// name of its last commit.
    fn check_repositories(&self, commit: &str) -> Result<(), WorktreeError> {
        for Entry { path, object, .. } in
            self.entries(&std::future::pending::<()>)?.into_iter().filter(|entry| entry.is_repository)
        {
            let top = self.path.join(&path);
            let known = Git::new(self.path, [OsStr::new("rev-parse"), &named(commit, &path)]).text();
            let is_complete = if top.join(".git").exists() {
                let status = || Git::new(&top, ["status", "--porcelain", "--untracked-files=all"]).text();
                let is_unchanged = || status().is_ok_and(|changed| changed.is_empty());
                let is_as_it_was = known.as_ref().is_ok_and(|known| *known == object) && is_unchanged();
                is_as_it_was || known.is_ok() && !has_own_work(&top, false)
            } else {
                fs::read_dir(&top).map_or(true, |mut files| files.next().is_none())
            };
            if !is_complete {
                return Err(WorktreeError::Nested(path));
            }
        }
        Ok(())
    }
}

/// A file that two trees do not have in common.
pub(super) struct Change {
    /// In the second tree; `000000`: it is not there.
    pub(super) mode: String,
    pub(super) object: String,
    /// Relative to the top.
    pub(super) path: PathBuf,
}

impl Change {
    pub(super) fn is_file(&self) -> bool {
        self.mode.starts_with("100")
    }
}

/// The changes that git has listed with `-z`, without renames.
pub(super) fn changes(listed: &[u8]) -> impl Iterator<Item = Change> {
    let mut words = listed.split(|byte| *byte == 0);
    std::iter::from_fn(move || {
        let (change, path) = (words.next()?, words.next()?);
        let change = String::from_utf8_lossy(change);
        let mut change = change.split(' ').skip(1);
        let (mode, object) = (change.next()?.to_owned(), change.nth(1)?.to_owned());
        Some(Change { mode, object, path: OsStr::from_bytes(path).into() })
    })
}

/// Whether there is a file at a path of a worktree. A link on the way to it would lead to a file that is not in the worktree.
pub(super) fn is_file_in(top: &Path, path: &Path) -> bool {
    let path = top.join(path);
    let is_inside = path.parent().is_some_and(|folder| directory::unmoved(folder).is_ok());
    is_inside && path.symlink_metadata().is_ok_and(|it| it.is_file())
}

/// The command that prints the names of the objects with the content of files, without git's filters.
pub(super) fn hash<'a>(top: &Path, options: &[&str], paths: impl Iterator<Item = &'a Path>) -> Git {
    let arguments = [&["hash-object"], options, &["--no-filters", "--stdin-paths"]].concat();
    let mut lines = Vec::new();
    for path in paths {
        lines.push(b'"');
        for byte in path.as_os_str().as_bytes() {
            match byte {
                b'"' | b'\\' | b'\n' => lines.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
                _ => lines.push(*byte),
            }
        }
        lines.extend_from_slice(b"\"\n");
    }
    Git::exact(top, arguments).input_bytes(lines)
}

/// The option with which `git add` reads names of files.
pub(super) const FROM_INPUT: &str = "--pathspec-from-file=-";

/// Runs a `git add` that reads names of files. Without any, it would fail, and is not run.
pub(super) fn add_by_name<'a>(add: Git, names: impl IntoIterator<Item = &'a Path>) -> Result<(), GitError> {
    let names: Vec<u8> =
        names.into_iter().flat_map(|name| name.as_os_str().as_bytes().iter().chain(&[0])).copied().collect();
    if names.is_empty() {
        return Ok(());
    }
    add.env("GIT_LITERAL_PATHSPECS", "1").input_bytes(names).text().map(drop)
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
pub(crate) fn branch_of(worktree: &Worktree) -> Option<String> {
    let name = format!("refs/heads/{}^{{commit}}", worktree.branch);
    Git::new(Place::Of(&worktree.repository), ["rev-parse", "--verify", "--quiet", &name]).text().ok()
}
