//! Makes a worktree as it was when a snapshot was made.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use crate::core::agent::child_worktree::Worktree;
use crate::runtime::worktrees::git::{Git, GitError, Place};
use crate::runtime::worktrees::inspection::own_git_dir;
use crate::runtime::worktrees::snapshot::{self, FROM_INPUT, add_by_name, branch_of, changes};
use crate::runtime::worktrees::worktree::{self, WorktreeError, io};

/// Unpacks a snapshot. What is in the place of the worktree is kept: as commits below `refs/agent-cli/kept/`, or, if that is not possible,
/// under another name next to it. `begins` is called before any file changes, and records that what is there from then on is incomplete.
/// `is_incomplete`: it was recorded before.
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
        tracing::info!("what was in {} is kept as {name}", path.display());
        of_repository(&["update-ref", "-m", "kept by agent-cli", &name, kept])
    };
    let is_there = !path.is_symlink() && worktree::is_made(worktree);
    let mut directory = if is_there { own_git_dir(path, repository)? } else { None };
    if let Some(directory) = &directory {
        // A killed git may have left them. Nothing else uses this worktree now.
        for lock in ["index.lock", "HEAD.lock"] {
            remove(|| fs::remove_file(directory.join(lock))).map_err(io("remove a lock of the worktree"))?;
        }
    }
    if directory.is_some() && !is_incomplete {
        match snapshot::make_with(worktree, None, Some(commit), &std::future::pending::<()>) {
            Ok(made) => drop(keep(&made.commit)?),
            // Git cannot read it, or it contains other repositories. Its commits stay in the repository.
            Err(_) => {
                if let Ok(own) = Git::new(path, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).text() {
                    keep(&own)?;
                }
                directory = None;
            }
        }
    }
    if directory.is_none() && !is_incomplete {
        set_aside(path)?;
    }
    if let Some(own) = branch_of(worktree)
        && own != tip
    {
        keep(&own)?;
    }
    let name = format!("refs/heads/{branch}");
    // An agent may have made it another name of a branch that is not its own.
    of_repository(&["update-ref", "--no-deref", "-m", "fetched by agent-cli", &name, tip])?;
    begins().map_err(io("note that the worktree is incomplete"))?;
    let no_attributes = of_repository(&["hash-object", "-t", "tree", "/dev/null"])?;
    if directory.is_some() {
        Git::new(path, ["symbolic-ref", "HEAD", &name]).text()?;
        // Otherwise, files that the snapshot does not have would remain, and those with marks of the old index as they are.
        Git::exact(path, ["read-tree", "--empty"]).text()?;
        Git::unconverted(path, &no_attributes, &["add", "--all", "--", ":/"]).text()?;
    } else {
        remove(|| fs::remove_dir_all(path)).map_err(io("remove an incomplete worktree"))?;
        worktree::add(worktree, &[path.as_os_str(), OsStr::new(branch)])?;
    }
    if head != tip {
        Git::new(path, ["update-ref", "--no-deref", "HEAD", head]).text()?;
    }
    let start = snapshot::start(worktree, &[head, tip]);
    Git::exact(path, ["read-tree", "--reset", "-u", start]).text()?;
    Git::unconverted(path, &no_attributes, &["read-tree", "--reset", "-u", start, commit]).text()?;
    write_as_they_were(path, start, commit)?;
    Git::exact(path, ["reset", "--mixed", "--quiet", "--no-recurse-submodules"]).text()?;
    keep_in_sight(path, head, commit)?;
    worktree::make_cwd(cwd)
}

/// Moves away what is in the place of a worktree.
fn set_aside(path: &Path) -> Result<(), WorktreeError> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let asides = (1..).map(|number| path.with_extension(format!("kept-{number}")));
    let aside = asides.into_iter().find(|aside| aside.symlink_metadata().is_err()).unwrap_or_default();
    fs::rename(path, &aside).map_err(io("move away what is in the place of the worktree"))?;
    // Otherwise, git would work there on the worktree that comes next.
    let link = aside.join(".git");
    if !aside.is_symlink() && link.symlink_metadata().is_ok_and(|it| it.is_file()) {
        fs::remove_file(link).map_err(io("remove the link to the repository"))?;
    }
    tracing::warn!("what was in {} is in {} now", path.display(), aside.display());
    Ok(())
}

/// Writes the files that differ between two commits again if git has converted them nevertheless.
fn write_as_they_were(top: &Path, start: &str, commit: &str) -> Result<(), WorktreeError> {
    let differ = Git::exact(top, ["diff-tree", "-r", "-z", "--raw", "--no-renames", start, commit]).bytes()?;
    let files: Vec<_> = changes(&differ).filter(snapshot::Change::is_file).collect();
    if files.is_empty() {
        return Ok(());
    }
    if let Some(missing) = files.iter().find(|file| !snapshot::is_file_in(top, &file.path)) {
        let why = io::Error::other(format!("git did not write {}", missing.path.display()));
        return Err(io("write the files of the worktree")(why));
    }
    let objects = snapshot::hash(top, &[], files.iter().map(|file| &*file.path)).text()?;
    for (file, _) in files.iter().zip(objects.lines()).filter(|(file, object)| file.object != **object) {
        let content = Git::exact(top, ["cat-file", "blob", &file.object]).bytes()?;
        let write = || {
            let flags = i32::try_from(OFlags::NOFOLLOW.bits()).map_err(io::Error::other)?;
            let path = top.join(&file.path);
            File::options().write(true).truncate(true).custom_flags(flags).open(path)?.write_all(&content)
        };
        write().map_err(io("write a file of the worktree"))?;
    }
    Ok(())
}

/// Has git show new files that it would ignore, so that they are in the next snapshot, too.
fn keep_in_sight(top: &Path, head: &str, commit: &str) -> Result<(), GitError> {
    let new = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A", head, commit];
    let new = Git::exact(top, new).bytes()?;
    if new.is_empty() {
        return Ok(());
    }
    let ignored = Git::exact(top, ["check-ignore", "-z", "--stdin"]).input_bytes(new);
    // If it finds none, it exits with 1.
    let ignored = ignored.within(snapshot::PATIENCE, std::future::pending())?.stdout;
    let names: BTreeSet<&Path> = ignored
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| Path::new(OsStr::from_bytes(name)))
        .collect();
    add_by_name(Git::exact(top, ["add", "--force", "--intent-to-add", FROM_INPUT, "--pathspec-file-nul"]), names)
}

fn remove(remove: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    match remove() {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
