//! Runs git so that no repository's configuration can run a program. Git reads a repository in any folder that looks like
//! one, and an agent, or the origin of a clone, can make any folder look like one. The person's configuration for all
//! repositories still applies.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt;

/// How long git may take where nobody can interrupt it. A file system that hangs, or a named pipe in the place of a file such as
/// `.gitignore`, would hold it up for ever.
const LIMIT: Duration = Duration::from_secs(600);

/// The same for the settings, which are read before each command.
const LIST_LIMIT: Duration = Duration::from_secs(30);

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
    /// It was ended because it took too long.
    #[error("git {what} had not ended after {} s", after.as_secs())]
    TimedOut { what: String, after: Duration },
    /// A person did not want to wait for it.
    #[error("git {0} was interrupted")]
    Interrupted(String),
}

/// Settings that neither a user nor an agent in the repository may change: which files git checks, and which programs it starts
/// to do so. On the command line they take precedence over every file.
const PLAIN: [&str; 9] = [
    "core.fileMode=true", "core.trustctime=true", "core.checkStat=default", "core.ignoreStat=false",
    "core.untrackedCache=false", "core.hooksPath=/dev/null", "sparse.expectFilesOutsideOfPatterns=false",
    "status.showUntrackedFiles=all", "diff.ignoreSubmodules=dirty",
];

/// Settings for every command. A folder is not taken for a repository because of the files in it; a submodule has its own
/// configuration, with which git would run.
const ALWAYS: [&str; 8] = [
    "safe.bareRepository=explicit", "core.fsmonitor=false", "submodule.recurse=false", "fetch.recurseSubmodules=false",
    "push.recurseSubmodules=no", "log.showSignature=false", "gc.auto=0", "maintenance.auto=false",
];

/// Settings with which the index and the worktree have the same files.
const EXACT: [&str; 2] = ["core.symlinks=true", "core.sparseCheckout=false"];

/// On a case-sensitive file system, git must not treat two names that differ in case as one file.
const CASE: Option<&str> = if cfg!(target_os = "linux") { Some("core.ignoreCase=false") } else { None };

/// Where git finds its repository.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'a> {
    /// In a folder or above it.
    In(&'a Path),
    /// It is this directory of git, which was recorded.
    Of(&'a Path),
}

impl<'a, P: AsRef<Path> + ?Sized> From<&'a P> for Place<'a> {
    fn from(folder: &'a P) -> Self {
        Self::In(folder.as_ref())
    }
}

impl Place<'_> {
    fn words(self) -> Vec<OsString> {
        match self {
            Self::In(folder) => vec!["-C".into(), folder.into()],
            Self::Of(directory) => vec!["-C".into(), directory.into(), "--git-dir".into(), directory.into()],
        }
    }
}

#[derive(Debug)]
pub(crate) struct Git {
    command: Command,
    what: String,
    input: Option<Vec<u8>>,
    /// Why its settings cannot be determined, in which case git is not run.
    unknown: Option<GitError>,
}

impl Git {
    /// A git command with the user's settings, and with those settings of the repository that run nothing.
    pub(crate) fn new<'a, A: AsRef<OsStr>>(
        place: impl Into<Place<'a>>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        Self::with(&[place.into()], &[], arguments)
    }

    /// A git command with settings that hide nothing and run nothing. It does not change what it examines.
    pub(crate) fn plain<'a, A: AsRef<OsStr>>(
        place: impl Into<Place<'a>>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        Self::plain_for(&[place.into()], arguments)
    }

    /// Like [`Self::plain`], for a command that also starts git in other places. It runs in the first of them.
    pub(crate) fn plain_for<A: AsRef<OsStr>>(places: &[Place<'_>], arguments: impl IntoIterator<Item = A>) -> Self {
        let settings: Vec<&str> = PLAIN.into_iter().chain(CASE).collect();
        let mut git = Self::with(places, &settings, arguments);
        // A replacement object (`git replace`) does not keep the replaced commit from being deleted.
        git.command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_NO_REPLACE_OBJECTS", "1");
        git.command.env("GIT_GRAFT_FILE", "/dev/null").env("GIT_NO_LAZY_FETCH", "1");
        git
    }

    /// A git command for all files of a worktree, with their names, modes and links, whatever the settings say.
    pub(super) fn exact<A: AsRef<OsStr>>(folder: &Path, arguments: impl IntoIterator<Item = A>) -> Self {
        Self::exact_with(folder, &[], arguments)
    }

    /// The same, and no file is converted: neither by filters nor by changes of line endings or encodings. Versions of git before 2.41
    /// convert nevertheless. `no_attributes`: the empty tree.
    pub(super) fn unconverted(folder: &Path, no_attributes: &str, arguments: &[&str]) -> Self {
        let git = Self::exact_with(folder, &["core.attributesFile=/dev/null", "core.autocrlf=false"], arguments);
        git.env("GIT_ATTR_SOURCE", no_attributes).env("GIT_ATTR_NOSYSTEM", "1")
    }

    fn exact_with<A: AsRef<OsStr>>(folder: &Path, more: &[&str], arguments: impl IntoIterator<Item = A>) -> Self {
        let settings: Vec<&str> = PLAIN.into_iter().chain(CASE).chain(EXACT).chain(more.iter().copied()).collect();
        Self::with(&[folder.into()], &settings, arguments)
    }

    fn with<A: AsRef<OsStr>>(places: &[Place<'_>], settings: &[&str], arguments: impl IntoIterator<Item = A>) -> Self {
        let mut arguments = arguments.into_iter().peekable();
        let what = arguments.peek().map(|first| first.as_ref().to_string_lossy().into_owned()).unwrap_or_default();
        let mut command = git();
        command.args(places.first().map(|place| place.words()).unwrap_or_default());
        let mut unknown = None;
        let mut overriding = Vec::new();
        for place in places {
            match listed(*place, &what) {
                Ok(list) => overriding.extend(program_settings::overriding(&list)),
                Err(error) => unknown = Some(error),
            }
        }
        // The first of these settings counts, not the last: they cannot be overridden.
        if overriding.iter().any(|(name, _)| name.ends_with(".uploadpack") || name == "core.gitproxy") {
            command.env(PROTOCOLS, "none");
        }
        set(&mut command, &overriding);
        for setting in ALWAYS.iter().chain(settings) {
            command.args(["-c", setting]);
        }
        command.args(arguments);
        Self { command, what, input: None, unknown }
    }

    /// A git command in the repository `folder` with these settings, and with none of any file of the person.
    pub(super) fn alone(folder: &Path, settings: &[(String, String)], arguments: &[&str]) -> Self {
        let mut command = git();
        command.args(Place::Of(folder).words()).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        set(&mut command, settings);
        for setting in ALWAYS {
            command.args(["-c", setting]);
        }
        command.args(arguments);
        let what = arguments.first().map(|first| (*first).to_owned()).unwrap_or_default();
        Self { command, what, input: None, unknown: None }
    }

    /// Lines for its standard input.
    pub(crate) fn input(self, lines: impl IntoIterator<Item = String>) -> Self {
        self.input_bytes(lines.into_iter().fold(Vec::new(), |mut text, line| {
            text.extend_from_slice(line.as_bytes());
            text.push(b'\n');
            text
        }))
    }

    /// Its standard input.
    pub(crate) fn input_bytes(mut self, input: Vec<u8>) -> Self {
        self.input = Some(input);
        self
    }

    /// Its output without the final line break.
    pub(crate) fn text(self) -> Result<String, GitError> {
        self.text_within(LIMIT, std::future::pending())
    }

    /// The same, if it ends before `limit`, and before `interrupted` has completed.
    pub(crate) fn text_within(
        self,
        limit: Duration,
        interrupted: impl Future<Output = ()> + Send,
    ) -> Result<String, GitError> {
        Ok(String::from_utf8_lossy(&self.bytes_within(limit, interrupted)?).trim_end_matches('\n').to_owned())
    }

    /// Its output, unchanged.
    pub(crate) fn bytes(self) -> Result<Vec<u8>, GitError> {
        self.bytes_within(LIMIT, std::future::pending())
    }

    pub(crate) fn bytes_within(
        self,
        limit: Duration,
        interrupted: impl Future<Output = ()> + Send,
    ) -> Result<Vec<u8>, GitError> {
        let what = self.what.clone();
        let output = self.within(limit, interrupted)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(GitError::Refused { what, said: String::from_utf8_lossy(&output.stderr).trim().to_owned() })
    }

    /// Adds a variable to its environment.
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Its exit status and its output. It is ended, with everything that it has started, after `limit`, or when `interrupted` has
    /// completed.
    pub(crate) fn within(
        self,
        limit: Duration,
        interrupted: impl Future<Output = ()> + Send,
    ) -> Result<Output, GitError> {
        if let Some(error) = self.unknown {
            return Err(error);
        }
        let Self { mut command, what, input, .. } = self;
        let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let waits = async {
            let mut child = tokio::process::Command::from(command).spawn()?;
            let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
            let end = || group.map(|group| kill_process_group(group, Signal::KILL));
            let stdin = child.stdin.take();
            let writes = async {
                if let (Some(input), Some(mut stdin)) = (input, stdin) {
                    // If it fails before it has read everything, it reports why.
                    let _ = stdin.write_all(&input).await;
                }
            };
            tokio::select! {
                (output, ()) = async { tokio::join!(child.wait_with_output(), writes) } => Ok(output?),
                () = tokio::time::sleep(limit) => {
                    end();
                    Err(GitError::TimedOut { what, after: limit })
                }
                () = interrupted => {
                    end();
                    Err(GitError::Interrupted(what))
                }
            }
        };
        // The caller may be part of a runtime, in which nothing may block.
        std::thread::scope(|scope| {
            let run = scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(waits)
            });
            run.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// Git, with only the location of the user's settings from the environment.
pub(super) fn git() -> Command {
    let mut command = Command::new("git");
    // If agent-cli runs in a git hook, the environment names that hook's repository, index and objects.
    for (name, _) in env::vars_os().filter(|(name, _)| is_dropped(name)) {
        command.env_remove(name);
    }
    command.env_remove(crate::claude::invocation::STORE);
    // Nobody answers on a terminal. Objects are fetched over these protocols only: `ext` runs a command.
    command
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("SSH_ASKPASS_REQUIRE", "force")
        .env(PROTOCOLS, "file:git:http:https:ssh");
    command
}

/// The variable with the protocols that git may use.
const PROTOCOLS: &str = "GIT_ALLOW_PROTOCOL";

/// Adds settings to those of the files. Not as arguments: the name of a setting may contain an equals sign.
fn set(command: &mut Command, settings: &[(String, String)]) {
    command.env("GIT_CONFIG_COUNT", settings.len().to_string());
    for (number, (name, value)) in settings.iter().enumerate() {
        command.env(format!("GIT_CONFIG_KEY_{number}"), name).env(format!("GIT_CONFIG_VALUE_{number}"), value);
    }
}

/// The person's own settings, as they apply in a repository.
pub(super) fn persons_settings(repository: &Path) -> Result<Vec<(String, String)>, GitError> {
    let list = listed(Place::Of(repository), "config")?;
    // What is included is listed, too.
    let is_include = |name: &str| name.starts_with("include.") || name.starts_with("includeif.");
    let own = settings(&list).filter(|(scope, name, _)| is_of_person(scope) && !is_include(name));
    Ok(own.map(|(_, name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// The settings that apply at a place, with their scopes.
fn listed(place: Place<'_>, what: &str) -> Result<String, GitError> {
    let list = ["-c", ALWAYS[0], "config", "--list", "--null", "--show-scope"];
    let mut command = git();
    command.args(place.words()).args(list);
    let git = Git { command, what: what.to_owned(), input: None, unknown: None };
    Ok(String::from_utf8_lossy(&git.bytes_within(LIST_LIMIT, std::future::pending())?).into_owned())
}

/// The scope, the name and the value of each setting in a list.
fn settings(list: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    let mut words = list.split('\0');
    std::iter::from_fn(move || {
        let (scope, entry) = (words.next()?, words.next()?);
        let (name, value) = entry.split_once('\n').unwrap_or((entry, "true"));
        Some((scope, name, value))
    })
}

fn is_of_person(scope: &str) -> bool {
    matches!(scope, "system" | "global")
}

/// Variables that locate the user's settings are kept: the user has them for a reason.
fn is_dropped(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("GIT_") && !["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"].contains(&&*name)
}

mod program_settings;
#[cfg(test)]
mod tests;
