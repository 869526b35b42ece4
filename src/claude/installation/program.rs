//! Which program is `claude`.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use std::{env, fs};

use jiff::Timestamp;
use tokio::process::Command;

use crate::claude::environment::agent_variables;
use crate::claude::installation::start_refusal::StartRefusal;
use crate::claude::installation::version::Version;

/// Why there is no usable `claude`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    /// `PATH` has no such program.
    #[error("no program named {0:?} in PATH")]
    NotInPath(String),
    /// The recorded program cannot be used, and `PATH` has none.
    #[error("{unusable}, the program of this chain, and there is no program named {NAME:?} in PATH")]
    NoRecorded { unusable: Box<ProgramError> },
    /// There is no file at this path.
    #[error("there is no program at {}", .0.display())]
    NoSuchFile(PathBuf),
    /// The file is not executable.
    #[error("{} is not an executable file", .0.display())]
    NotExecutable(PathBuf),
    #[error("{} cannot be started: {source}", path.display())]
    NotStarted { path: PathBuf, source: std::io::Error },
    #[error("{} --version failed with {status}: {said}", path.display())]
    Failed { path: PathBuf, status: ExitStatus, said: String },
    #[error("{} --version did not answer within {} seconds", .0.display(), ANSWER_WITHIN.as_secs())]
    NoAnswer(PathBuf),
    #[error("{} is not Claude Code: it answers --version with: {said}", path.display())]
    NotClaude { path: PathBuf, said: String },
    /// It lacks what agent-cli needs.
    #[error("{} is Claude Code {found}, and agent-cli needs {oldest} or newer", path.display(), oldest = Version::OLDEST)]
    TooOld { path: PathBuf, found: Version },
}

const NAME: &str = "claude";
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// Finds the program: the one that the user names, otherwise the recorded one, otherwise the one in `PATH`.
///
/// A name without a slash is looked up in `path`, as a shell does. The result is absolute and keeps symbolic links, so
/// an upgrade behind a link is followed.
pub(crate) fn locate(
    named: Option<&Path>,
    recorded: Option<&Path>,
    path: Option<&OsStr>,
) -> Result<PathBuf, ProgramError> {
    if let Some(named) = named {
        return match named.to_str() {
            Some(name) if !name.contains('/') => in_path(name, path),
            _ => usable(named),
        };
    }
    match recorded.map(usable) {
        Some(Ok(program)) => Ok(program),
        Some(Err(unusable)) => {
            in_path(NAME, path).map_err(|_| ProgramError::NoRecorded { unusable: Box::new(unusable) })
        }
        None => in_path(NAME, path),
    }
}

/// The different programs named `claude` in `PATH`, in its order. Several names of one file count once.
pub(crate) fn all_in_path(path: Option<&OsStr>) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut files = Vec::new();
    for program in executables(NAME, path) {
        let file = fs::canonicalize(&program).unwrap_or_else(|_| program.clone());
        if !files.contains(&file) {
            files.push(file);
            found.push(program);
        }
    }
    found
}

/// The first program of this name in `path`, as a shell would find it.
pub(crate) fn in_path(name: &str, path: Option<&OsStr>) -> Result<PathBuf, ProgramError> {
    executables(name, path).next().ok_or_else(|| ProgramError::NotInPath(name.to_owned()))
}

/// When the program was last changed. A version is cached for a path and this time.
pub(crate) fn modified(program: &Path) -> Result<Timestamp, ProgramError> {
    let gone = || ProgramError::NoSuchFile(program.to_owned());
    let time = fs::metadata(program).and_then(|file| file.modified()).map_err(|_| gone())?;
    Timestamp::try_from(time).map_err(|_| gone())
}

/// What the program prints for `--version`.
pub(crate) async fn ask_version(program: &Path) -> Result<String, ProgramError> {
    let mut command = command(program);
    command.arg("--version");
    let not_started = |source| ProgramError::NotStarted { path: program.to_owned(), source };
    let answer = tokio::time::timeout(ANSWER_WITHIN, command.output()).await;
    let output = answer.map_err(|_| ProgramError::NoAnswer(program.to_owned()))?.map_err(not_started)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(ProgramError::Failed { path: program.to_owned(), status: output.status, said });
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Claude Code's name in its output of `--version`.
const CLAUDE_CODE: &str = "Claude Code";

/// Refuses output that cannot be Claude Code's.
pub(crate) fn identify(program: &Path, answer: &str) -> Result<(), ProgramError> {
    if answer.contains(CLAUDE_CODE) || answer.parse::<Version>().is_ok() {
        return Ok(());
    }
    let said = answer.lines().next().filter(|line| !line.trim().is_empty()).unwrap_or("nothing").trim().to_owned();
    Err(ProgramError::NotClaude { path: program.to_owned(), said })
}

/// The program's objection to these arguments, if any. It parses them before it looks up the session, whose id is not valid
/// here, so it ends before it has started anything. `cwd`: the base of relative paths in the arguments.
pub(crate) async fn objection(program: &Path, arguments: &[String], cwd: &Path) -> Option<String> {
    let mut command = command(program);
    command.args(["-p", "--output-format=stream-json", "--verbose"]).args(arguments).arg("--session-id=none");
    command.current_dir(cwd);
    let output = tokio::time::timeout(ANSWER_WITHIN, command.output()).await.ok()?.ok()?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    StartRefusal::from_message(&said).is_of_the_command_line().then_some(said)
}

/// Refuses versions that lack what is needed. If the output contains no version, the first run decides.
pub(crate) fn check(program: &Path, answer: &str) -> Result<Option<Version>, ProgramError> {
    match answer.parse::<Version>() {
        Ok(found) if found < Version::OLDEST => Err(ProgramError::TooOld { path: program.to_owned(), found }),
        Ok(found) => Ok(Some(found)),
        Err(_) => Ok(None),
    }
}

/// The program without standard input and with the environment of agents.
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).kill_on_drop(true);
    for name in agent_variables::not_inherited() {
        command.env_remove(name);
    }
    command
}

fn usable(path: &Path) -> Result<PathBuf, ProgramError> {
    let file = fs::metadata(path).map_err(|_| ProgramError::NoSuchFile(path.to_owned()))?;
    if !is_executable(&file) {
        return Err(ProgramError::NotExecutable(path.to_owned()));
    }
    std::path::absolute(path).map_err(|_| ProgramError::NoSuchFile(path.to_owned()))
}

fn executables(name: &str, path: Option<&OsStr>) -> impl Iterator<Item = PathBuf> {
    let folders = path.map(env::split_paths).into_iter().flatten().filter(|folder| folder.is_absolute());
    folders
        .map(move |folder| folder.join(name))
        .filter(|file| fs::metadata(file).is_ok_and(|file| is_executable(&file)))
}

fn is_executable(file: &fs::Metadata) -> bool {
    file.is_file() && file.permissions().mode() & 0o111 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(folder: &Path, name: &str, mode: u32) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, "#!/bin/sh\necho '2.1.330 (Claude Code)'\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn the_named_program_wins_then_the_recorded_then_path() {
        let folder = tempfile::tempdir().unwrap();
        let [named, recorded, found] = ["other", "recorded", "claude"].map(|name| program(folder.path(), name, 0o755));
        let path = Some(folder.path().as_os_str());
        assert_eq!(locate(Some(&named), Some(&recorded), path).unwrap(), named);
        assert_eq!(locate(Some(Path::new("other")), Some(&recorded), path).unwrap(), named);
        assert_eq!(locate(None, Some(&recorded), path).unwrap(), recorded);
        assert_eq!(locate(None, Some(Path::new("/gone/claude")), path).unwrap(), found);
        assert_eq!(locate(None, None, path).unwrap(), found);
    }

    #[test]
    fn different_programs_in_path_are_distinguished_from_links() {
        let [one, two, link] = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let found = [&one, &two].map(|folder| program(folder.path(), "claude", 0o755));
        std::os::unix::fs::symlink(&found[0], link.path().join("claude")).unwrap();
        let path = env::join_paths([one.path(), link.path(), two.path()]).unwrap();
        assert_eq!(all_in_path(Some(&path)), found);
        assert!(all_in_path(None).is_empty());
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let plain = program(folder.path(), "claude", 0o644);
        let path = Some(folder.path().as_os_str());
        assert!(matches!(locate(Some(&plain), None, path), Err(ProgramError::NotExecutable(_))));
        assert!(matches!(locate(Some(folder.path()), None, path), Err(ProgramError::NotExecutable(_))));
        assert!(matches!(locate(Some(Path::new("/gone/claude")), None, path), Err(ProgramError::NoSuchFile(_))));
        assert!(matches!(locate(None, None, path), Err(ProgramError::NotInPath(_))));
        assert!(matches!(locate(None, None, None), Err(ProgramError::NotInPath(_))));
    }

    #[test]
    fn an_old_version_is_refused_and_an_unknown_one_is_not() {
        let path = Path::new("/bin/claude");
        assert!(matches!(check(path, "2.0.72 (Claude Code)"), Err(ProgramError::TooOld { .. })));
        assert_eq!(check(path, "2.0.73").unwrap(), Some(Version::OLDEST));
        assert_eq!(check(path, "next generation").unwrap(), None);
    }

    #[tokio::test]
    async fn a_program_is_asked_for_its_version() {
        let folder = tempfile::tempdir().unwrap();
        let claude = program(folder.path(), "claude", 0o755);
        assert_eq!(ask_version(&claude).await.unwrap(), "2.1.330 (Claude Code)");
        fs::write(&claude, "#!/bin/sh\necho broken >&2; exit 3\n").unwrap();
        let error = ask_version(&claude).await.unwrap_err().to_string();
        assert!(error.contains("exit status: 3: broken"), "{error}");
    }
}
