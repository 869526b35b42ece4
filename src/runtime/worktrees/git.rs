//! Runs git: never on the repository that the environment names, and, where its answer decides what is deleted, with settings
//! that neither hide a file nor run a program.

use std::env;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::claude::processes::children::Own;

/// Why git failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GitError {
    /// It exited with an error.
    #[error("git {what} failed: {said}")]
    Refused {
        /// The subcommand.
        what: String,
        /// Its error output.
        said: String,
    },
    /// It could not be started.
    #[error("failed to run git: {0}")]
    Run(#[from] std::io::Error),
}

/// Settings that neither a user nor an agent in the repository may change: which files git examines, and which programs it starts
/// to do so. On the command line they take precedence over every file.
const PLAIN: [&str; 11] = [
    "core.fileMode=true",
    "core.trustctime=true",
    "core.checkStat=default",
    "core.ignoreStat=false",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.hooksPath=/dev/null",
    "sparse.expectFilesOutsideOfPatterns=false",
    "status.showUntrackedFiles=all",
    "diff.ignoreSubmodules=none",
    "safe.bareRepository=all",
];

/// On a case-sensitive file system, git must not treat two names that differ in case as one file.
const CASE: Option<&str> = if cfg!(target_os = "linux") { Some("core.ignoreCase=false") } else { None };

#[derive(Debug)]
pub(crate) struct Git {
    command: Command,
    what: String,
    input: Option<String>,
}

impl Git {
    /// With the settings of the user and of the repository.
    pub(crate) fn new<A: AsRef<OsStr>>(folder: &Path, arguments: impl IntoIterator<Item = A>) -> Self {
        Self::with(folder, &[], arguments)
    }

    /// With settings that hide nothing and run nothing. It changes nothing in what it examines.
    pub(crate) fn plain<A: AsRef<OsStr>>(folder: &Path, arguments: impl IntoIterator<Item = A>) -> Self {
        let settings: Vec<&str> = PLAIN.into_iter().chain(CASE).collect();
        let mut git = Self::with(folder, &settings, arguments);
        // A replacement object (`git replace`) does not keep the replaced commit from being deleted.
        git.command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_NO_REPLACE_OBJECTS", "1");
        git.command.env("GIT_GRAFT_FILE", "/dev/null");
        git
    }

    fn with<A: AsRef<OsStr>>(folder: &Path, settings: &[&str], arguments: impl IntoIterator<Item = A>) -> Self {
        let mut command = Command::new("git");
        // If agent-cli runs in a git hook, the environment names that hook's repository, index and objects.
        for (name, _) in env::vars_os().filter(|(name, _)| names_a_repository(name)) {
            command.env_remove(name);
        }
        command.env("GIT_TERMINAL_PROMPT", "0");
        command.arg("-C").arg(folder);
        for setting in settings {
            command.args(["-c", setting]);
        }
        let mut arguments = arguments.into_iter().peekable();
        let what = arguments.peek().map(|first| first.as_ref().to_string_lossy().into_owned()).unwrap_or_default();
        command.args(arguments);
        Self { command, what, input: None }
    }

    /// Lines for its standard input.
    pub(crate) fn input(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.input = Some(lines.into_iter().fold(String::new(), |mut text, line| {
            let _ = writeln!(text, "{line}");
            text
        }));
        self
    }

    /// Its output without the final line break.
    pub(crate) fn text(self) -> Result<String, GitError> {
        Ok(String::from_utf8_lossy(&self.bytes()?).trim_end_matches('\n').to_owned())
    }

    /// Its output, unchanged.
    pub(crate) fn bytes(mut self) -> Result<Vec<u8>, GitError> {
        let stdin = if self.input.is_some() { Stdio::piped() } else { Stdio::null() };
        let mut child = self.command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let _own = Own::new(child.id());
        if let (Some(input), Some(mut stdin)) = (self.input, child.stdin.take()) {
            // If it fails before it has read everything, it reports why.
            let _ = stdin.write_all(input.as_bytes());
        }
        let output = child.wait_with_output()?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(GitError::Refused { what: self.what, said: String::from_utf8_lossy(&output.stderr).trim().to_owned() })
    }
}

/// Variables that say where git's settings are may stay: a user has them for a reason, and [`PLAIN`] takes precedence.
fn names_a_repository(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("GIT_")
        && !["GIT_CONFIG", "GIT_EXEC_PATH", "GIT_SSH", "GIT_AUTHOR", "GIT_COMMITTER"]
            .iter()
            .any(|kept| name.starts_with(kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_that_the_environment_names_is_not_looked_at() {
        for name in [
            "GIT_DIR",
            "GIT_WORK_TREE",
            "GIT_INDEX_FILE",
            "GIT_OBJECT_DIRECTORY",
            "GIT_NAMESPACE",
            "GIT_LITERAL_PATHSPECS",
        ] {
            assert!(names_a_repository(OsStr::new(name)), "{name}");
        }
        for name in ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_KEY_0", "PATH", "GITHUB_TOKEN"] {
            assert!(!names_a_repository(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn what_git_says_against_it_is_passed_on() {
        let temp = tempfile::tempdir().unwrap();
        let error = Git::plain(temp.path(), ["rev-parse", "HEAD"]).text().unwrap_err().to_string();
        assert!(error.starts_with("git rev-parse failed: fatal: not a git repository"), "{error}");
    }
}
