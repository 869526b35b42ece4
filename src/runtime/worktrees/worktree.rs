//! Git worktrees for agents that work separately: planned with the frame, created before its first attempt.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::core::agent::child_worktree::{Remote, Worktree};
use crate::failpoint::{self, Step};
use crate::runtime::worktrees::directory::{self, Elsewhere};
use crate::runtime::worktrees::git::{Git, GitError, Place};

/// Why a worktree cannot be created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorktreeError {
    /// The directory is not in a repository that has a commit.
    #[error("{} is not in a git repository that has a commit", .0.display())]
    NoRepository(PathBuf),
    /// An agent named a directory in a repository other than its chain's: git reads the configuration of a repository, and any
    /// process can make a folder look like one.
    #[error("{} is not in the git repository of {}", named.display(), own.display())]
    OtherRepository { named: PathBuf, own: PathBuf },
    /// The directory in the worktree leads to another place.
    #[error("{0}")]
    Elsewhere(#[from] Elsewhere),
    /// Its repository is not on this host.
    #[error("{} is missing, the repository of the agent's worktree", repository.display())]
    NotCloned { repository: PathBuf, url: String },
    /// It is not, or no longer, a worktree of its repository.
    #[error("{} is no longer a worktree of its repository", .0.display())]
    Replaced(PathBuf),
    /// A commit of the worktree would not have the files of this repository.
    #[error("the repository {} in it is not part of the push", .0.display())]
    Nested(PathBuf),
    /// The repository has no remote of this name.
    #[error("the repository has no remote {0}")]
    NoRemote(String),
    /// Everybody who can see the chain would see it.
    #[error("the address of the remote {0} contains a password or a token, which would be recorded")]
    PasswordInAddress(String),
    /// The files with which an agent would begin are not on the remote.
    #[error("failed to push the new worktree's commit to {remote}: {why}")]
    NotPushed { remote: String, why: String },
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A file could not be used.
    #[error("failed to {what}: {source}")]
    Io {
        /// The failed operation.
        what: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
}

/// Plans a worktree for an agent that would work in `cwd`, and the directory in it where the agent works instead. `folder`: the
/// canonical directory for worktrees; `id` distinguishes it from others with the same title. Nothing is created yet, because
/// git may be slow and the caller must not wait for it. `own`: where the chain of the agent that asks was started, whose
/// repository it must be; `None`: a person asks. `remote`: where it will be pushed.
///
/// # Errors
///
/// [`WorktreeError`] if `cwd` is not in a repository that has a commit, or is in another one.
pub(crate) fn plan(
    folder: &Path,
    cwd: &Path,
    own: Option<&Path>,
    remote: Option<Remote>,
    title: &str,
    id: &str,
) -> Result<(Worktree, PathBuf), WorktreeError> {
    let none = |_| WorktreeError::NoRepository(cwd.to_owned());
    // Another agent's worktree may be removed before this one: shared objects must remain.
    let shared = |cwd: &Path| {
        let shared =
            git(cwd, ["rev-parse", "--git-common-dir"]).map_err(|_| WorktreeError::NoRepository(cwd.to_owned()))?;
        cwd.join(shared).canonicalize().map_err(io("find the directory of the repository"))
    };
    let own_repository = own.map(shared).transpose()?;
    let repository = shared(cwd)?;
    if let (Some(own), Some(own_repository)) = (own, own_repository)
        && own_repository != repository
    {
        return Err(WorktreeError::OtherRepository { named: cwd.to_owned(), own: own.to_owned() });
    }
    let top = PathBuf::from(git(cwd, ["rev-parse", "--show-toplevel"]).map_err(none)?);
    let base = git(cwd, ["rev-parse", "--verify", "HEAD^{commit}"]).map_err(none)?;
    let within = cwd.strip_prefix(&top).unwrap_or(Path::new("")).to_owned();
    let branch = Worktree::branch_for(title, id);
    let path = folder.join(branch.rsplit('/').next().unwrap_or(id));
    let cwd = if within.as_os_str().is_empty() { path.clone() } else { path.join(within) };
    Ok((Worktree { repository, path, branch, base, remote }, cwd))
}

/// Whether `cwd` or another folder of its repository has uncommitted changes, which will be missing from a worktree.
#[must_use]
pub(crate) fn has_uncommitted_changes(cwd: &Path) -> bool {
    let status = ["-c", "status.showUntrackedFiles=normal", "status", "--porcelain", "--untracked-files=normal"];
    Git::new(cwd, status).text().is_ok_and(|changed| !changed.is_empty())
}

/// Creates the worktree unless it exists. If the process is killed, a partial worktree remains, which is removed and created
/// again. So this must only be called before an agent has worked in it.
pub(crate) fn ensure(worktree: &Worktree, cwd: &Path) -> Result<(), WorktreeError> {
    failpoint::around(Step::MakeWorktree, || made(worktree, cwd))
}

fn made(worktree: &Worktree, cwd: &Path) -> Result<(), WorktreeError> {
    let Worktree { repository, path, branch, base, .. } = worktree;
    if !is_made(worktree) {
        if path.exists() {
            fs::remove_dir_all(path).map_err(io("remove a worktree that is half made"))?;
        }
        if has_branch(repository, branch) {
            add(worktree, &[path.as_os_str(), branch.as_ref()])?;
        } else {
            add(worktree, &["-b".as_ref(), branch.as_ref(), path.as_os_str(), base.as_ref()])?;
        }
        git(path, ["reset", "--hard", "--quiet", "--no-recurse-submodules"])?;
    }
    make_cwd(cwd)
}

/// Adds the worktree without its files, which come in a second step, because a condition of the configuration may apply to the new
/// worktree alone. `place`: its path and its branch.
pub(super) fn add(worktree: &Worktree, place: &[&OsStr]) -> Result<(), WorktreeError> {
    if let Some(folder) = worktree.path.parent() {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(io("make the folder of worktrees"))?;
    }
    // Git still knows a partial worktree and keeps it locked: `--force` twice creates it anyway.
    let add = ["worktree", "add", "--no-checkout", "--quiet", "--force", "--force"].map(OsStr::new);
    Git::new(Place::Of(&worktree.repository), add.iter().chain(place)).text()?;
    Ok(())
}

/// Whether the repository has the commit from which the worktree is created.
pub(crate) fn has_base(worktree: &Worktree) -> bool {
    let commit = format!("{}^{{commit}}", worktree.base);
    // Git would take a commit that begins with `-` for an option.
    worktree.base.bytes().all(|byte| byte.is_ascii_hexdigit())
        && Git::new(Place::Of(&worktree.repository), ["cat-file", "-e", &commit]).text().is_ok()
}

/// Creates the directory in a worktree where its agent works.
pub(super) fn make_cwd(cwd: &Path) -> Result<(), WorktreeError> {
    // Git does not store empty folders. A link that it does store may lead anywhere.
    let deepest = cwd.ancestors().find(|folder| folder.symlink_metadata().is_ok()).unwrap_or(cwd);
    directory::unmoved(deepest)?;
    fs::create_dir_all(cwd).map_err(io("make the working directory in the worktree"))?;
    Ok(directory::unmoved(cwd)?)
}

fn has_branch(repository: &Path, branch: &str) -> bool {
    let name = format!("refs/heads/{branch}^{{commit}}");
    Git::new(Place::Of(repository), ["rev-parse", "--verify", "--quiet", &name]).text().is_ok()
}

fn git<A: AsRef<OsStr>>(folder: &Path, arguments: impl IntoIterator<Item = A>) -> Result<String, GitError> {
    Git::new(folder, arguments).text()
}

pub(crate) fn is_made(worktree: &Worktree) -> bool {
    // The index is written when all files are there.
    let index = || {
        git(&worktree.path, ["rev-parse", "--verify", "--quiet", "HEAD"])
            .and_then(|_| git(&worktree.path, ["rev-parse", "--git-path", "index"]))
    };
    worktree.path.join(".git").exists() && index().is_ok_and(|index| worktree.path.join(index).exists())
}

pub(super) fn io(what: &'static str) -> impl FnOnce(std::io::Error) -> WorktreeError {
    move |source| WorktreeError::Io { what, source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::Command;

    use super::*;
    use crate::runtime::worktrees::inspection::inspect;
    use crate::runtime::worktrees::testing::{self, commit, repository};
    use crate::runtime::worktrees::worktree_removal::remove;

    /// Hostile content of a repository, with a command that leaves a trace in place of `RUN`. Below its top: the configuration,
    /// which another file contains.
    const HOSTILE: [(&str, &str); 12] = [
        ("smudge", "[filter \"x\"]\nsmudge = RUN; cat"),
        ("process", "[filter \"x\"]\nprocess = RUN\nrequired"),
        ("clean", "[filter \"x\"]\nclean = RUN; cat"),
        ("a name with an equals sign", "[filter \"x\"]\nclean = RUN\n[filter \"a=b\"]\nsmudge = RUN"),
        ("hooks", "[core]\nhooksPath = HOOKS"),
        ("the repository's own hooks", ""),
        ("fsmonitor", "[core]\nfsmonitor = RUN"),
        ("an alias", "[alias]\nreset = !RUN\nstatus = !RUN\nworktree = !RUN"),
        ("signatures", "[log]\nshowSignature = true\n[gpg]\nprogram = RUN"),
        ("textconv", "[diff]\nexternal = RUN\n[diff \"x\"]\ntextconv = RUN"),
        ("other programs", "[core]\nsshCommand = RUN\neditor = RUN\npager = RUN\n[credential]\nhelper = RUN"),
        ("submodules", "[submodule]\nrecurse = true\n[filter \"x\"]\nsmudge = RUN; cat"),
    ];

    #[test]
    fn the_configuration_of_a_repository_runs_nothing() {
        for (number, (name, config)) in HOSTILE.into_iter().enumerate() {
            let (temp, top) = repository();
            let (trace, hooks) = (temp.path().join("trace"), temp.path().join("hooks"));
            let program = temp.path().join("program");
            for folder in [&hooks, &top.join(".git/hooks")] {
                fs::create_dir_all(folder).unwrap();
                for file in [folder.join("post-checkout"), folder.join("post-index-change"), program.clone()] {
                    fs::write(&file, format!("#!/bin/sh\ntouch {}\n", trace.display())).unwrap();
                    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
                }
            }
            let text = config.replace("RUN", &program.display().to_string());
            let text = text.replace("HOOKS", &hooks.display().to_string());
            fs::write(top.join(".git/info/attributes"), "* filter=x diff=x\n").unwrap();
            let config = top.join(".git/config");
            let before = fs::read_to_string(&config).unwrap();
            // It may be in another file, which may apply to the new worktree alone.
            let included = temp.path().join("included");
            fs::write(&included, &text).unwrap();
            let leading = format!("path = {}", included.display());
            fs::write(
                &config,
                match number % 3 {
                    0 => format!("{before}\n{text}\n"),
                    1 => format!("{before}\n[include]\n{leading}\n"),
                    _ => format!("{before}\n[includeIf \"onbranch:agent-cli/**\"]\n{leading}\n"),
                },
            )
            .unwrap();
            let folder = temp.path().canonicalize().unwrap().join("worktrees");
            let (worktree, cwd) = plan(&folder, &top, Some(&top), None, "a", "1").unwrap();
            ensure(&worktree, &cwd).unwrap();
            assert_eq!(fs::read_to_string(cwd.join("one")).unwrap(), "one", "{name}");
            fs::write(cwd.join("one"), "another").unwrap();
            assert!(has_uncommitted_changes(&cwd), "{name}");
            assert!(inspect(&worktree).unwrap().is_some(), "{name}");
            assert!(remove(&worktree, false).is_some(), "{name}");
            fs::write(cwd.join("one"), "one").unwrap();
            assert_eq!(remove(&worktree, false), None, "{name}");
            assert!(!trace.exists(), "{name}");
        }
    }

    /// A repository with missing objects fetches them when files are checked out.
    #[test]
    fn a_program_to_fetch_with_does_not_run_either() {
        for (name, value) in [("remote.origin.uploadpack", "RUN git-upload-pack"), ("core.gitProxy", "RUN")] {
            let (temp, top) = repository();
            let (trace, program) = (temp.path().join("trace"), temp.path().join("program"));
            fs::write(&program, format!("#!/bin/sh\ntouch {}\nexec \"$@\"\n", trace.display())).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            let whole = temp.path().join("whole");
            testing::git(temp.path(), &format!("clone -q --bare {} {}", top.display(), whole.display()));
            let blob = testing::git(&top, "rev-parse HEAD:one");
            fs::remove_file(top.join(".git/objects").join(&blob[..2]).join(&blob[2..])).unwrap();
            let url = if name.starts_with("core") { "git://127.0.0.1:1/x".into() } else { whole.display().to_string() };
            let config = top.join(".git/config");
            let before = fs::read_to_string(&config).unwrap().replace("repositoryformatversion = 0", "");
            let partial = "[core]\nrepositoryformatversion = 1\n[extensions]\npartialClone = origin\n";
            fs::write(&config, format!("{before}\n{partial}[remote \"origin\"]\nurl = {url}\npromisor = true\n"))
                .unwrap();
            let run = value.replace("RUN", &program.display().to_string());
            assert!(Command::new("git").arg("-C").arg(&top).args(["config", name, &run]).status().unwrap().success());
            let folder = temp.path().canonicalize().unwrap().join("worktrees");
            let (worktree, cwd) = plan(&folder, &top, Some(&top), None, "a", "1").unwrap();
            ensure(&worktree, &cwd).unwrap_err();
            assert!(!trace.exists(), "{name}");
            // What plain git does.
            let _ = Command::new("git").arg("-C").arg(&top).args(["cat-file", "-p", &blob]).output().unwrap();
            assert!(trace.exists(), "{name}");
        }
    }

    #[test]
    fn an_agent_names_no_other_repository() {
        let (temp, top) = repository();
        let folder = temp.path().canonicalize().unwrap().join("worktrees");
        let refused = |cwd: &Path| plan(&folder, cwd, Some(&top), None, "a", "1").map(drop).unwrap_err().to_string();
        // Files that make git take a folder for a repository, among ordinary ones.
        let fake = top.join("vendor/x");
        fs::create_dir_all(fake.join("refs/heads")).unwrap();
        symlink(top.join(".git/objects"), fake.join("objects")).unwrap();
        fs::write(fake.join("refs/heads/main"), testing::git(&top, "rev-parse HEAD")).unwrap();
        fs::write(fake.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(fake.join("config"), "[core]\nbare = false\nworktree = .\n").unwrap();
        assert!(refused(&fake).contains("is not in a git repository"), "{}", refused(&fake));
        let pointing = top.join("pointing");
        fs::create_dir(&pointing).unwrap();
        fs::write(pointing.join(".git"), format!("gitdir: {}\n", fake.display())).unwrap();
        let own = top.join("nested");
        fs::create_dir(&own).unwrap();
        testing::git(&own, "init -q -b main");
        commit(&own, "one");
        for other in [&pointing, &own] {
            assert!(refused(other).contains("is not in the git repository of"), "{}", refused(other));
        }
        fs::create_dir(top.join("sub")).unwrap();
        plan(&folder, &top.join("sub"), Some(&top), None, "a", "1").unwrap();
    }

    #[test]
    fn a_link_in_a_commit_leads_no_agent_out_of_its_worktree() {
        let (temp, top) = repository();
        let outside = temp.path().join("outside");
        fs::create_dir_all(outside.join("deeper")).unwrap();
        fs::create_dir(top.join("p")).unwrap();
        symlink(&outside, top.join("p/sub")).unwrap();
        testing::git(&top, "add p");
        testing::git(&top, "commit -q -m link");
        fs::remove_file(top.join("p/sub")).unwrap();
        let folder = temp.path().canonicalize().unwrap().join("worktrees");
        for (id, below) in [("1", "p/sub"), ("2", "p/sub/deeper"), ("3", "p/sub/new")] {
            fs::create_dir_all(top.join(below)).unwrap();
            let (worktree, cwd) = plan(&folder, &top.join(below), Some(&top), None, "a", id).unwrap();
            let said = ensure(&worktree, &cwd).unwrap_err().to_string();
            assert!(said.contains("p/sub is a link"), "{said}");
            assert!(!outside.join("new").exists());
        }
    }

    #[test]
    fn a_worktree_is_made_once_and_again_after_a_kill() {
        let (temp, top) = repository();
        fs::create_dir(top.join("sub")).unwrap();
        let folder = temp.path().canonicalize().unwrap().join("worktrees");
        let (worktree, cwd) = plan(&folder, &top.join("sub"), None, None, "a.md", "1a2b").unwrap();
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
        let (worktree, cwd) =
            plan(&temp.path().canonicalize().unwrap().join("w"), &top, None, None, "a.md", "1").unwrap();
        ensure(&worktree, &cwd).unwrap();
        fs::rename(temp.path().join("on a disk that is not there"), &theirs).unwrap();
        git(&theirs, ["status"]).unwrap();
    }

    #[test]
    fn a_folder_without_a_repository_or_a_commit_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let refused = || plan(Path::new("/w"), temp.path(), None, None, "a", "1").unwrap_err().to_string();
        assert!(refused().ends_with("is not in a git repository that has a commit"));
        git(temp.path(), ["init", "-q"]).unwrap();
        assert!(refused().ends_with("is not in a git repository that has a commit"));
    }
}
