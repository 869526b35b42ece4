//! Determines which `claude` runs a frame, and whether it accepts its arguments: checked once per path and modification time.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Once;

use jiff::Timestamp;

use crate::claude::installation::program;
use crate::claude::installation::version::{ResultInput, Version};
use crate::claude::options;
use crate::core::agent::launch::Launch;
use crate::runtime::{RunSettings, RuntimeError};
use crate::store::{KnownProgram, Store};

/// A `claude` that can be used.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    modified: Timestamp,
    /// Whether it is known not to run suspended calls of forks.
    pub(crate) refuses_forks: bool,
    /// Its version, as it reports it.
    answer: String,
    /// Whether its hooks can suspend tool calls. A program that does not report its version is assumed not to support this.
    pub(crate) suspends: bool,
    /// Whether it runs a hook after all calls of a message.
    pub(crate) hooks_after_all_calls: bool,
    /// Whether it can print what hooks return.
    pub(crate) prints_hooks: bool,
    /// Whether it can ignore mentions of files in a prompt, and nothing else.
    pub(crate) leaves_mentions: bool,
    /// Whether it informs its agent itself when its shell's directory changes.
    pub(crate) tells_directory: bool,
    /// How it accepts the result of a suspended call on its standard input; `None`: not at all.
    pub(crate) result_input: Option<ResultInput>,
    /// Whether it returns an agent to the worktree that it had entered if its session is resumed in place.
    pub(crate) returns_to_worktrees: bool,
}

/// Checks how a chain will be started before anything is recorded: the program must be Claude Code and not too old and, if that
/// is not certain, accept these arguments.
pub(crate) async fn check(
    store: &Store,
    settings: &RunSettings,
    launch: &Launch,
    cwd: &Path,
) -> Result<(), RuntimeError> {
    let Program { path, answer, .. } = usable(store, settings, launch).await?;
    program::identify(&path, &answer)?;
    if options::are_known(launch) {
        return Ok(());
    }
    let mode = launch.permission_mode.iter().map(|mode| format!("--permission-mode={mode}"));
    let arguments: Vec<String> = mode.chain(launch.args.words()).collect();
    match program::objection(&path, &arguments, cwd).await {
        None => Ok(()),
        Some(said) => Err(RuntimeError::Refused(said)),
    }
}

impl Program {
    /// Remembers that it does not run suspended calls of forks.
    pub(crate) fn remember_refusal_of_forks(&self, store: &Store) -> Result<(), RuntimeError> {
        let known = KnownProgram { version: self.answer.clone(), refuses_forks: true };
        Ok(store.remember_program(&self.path, self.modified, &known)?)
    }
}

/// The version of the program for these launch options; `None`: it reports none, or it is not known and may not be run.
pub(crate) async fn version(
    store: &Store,
    named: Option<&Path>,
    launch: &Launch,
    may_ask: bool,
) -> Result<Option<Version>, RuntimeError> {
    let recorded = Some(launch.claude.as_path()).filter(|path| !path.as_os_str().is_empty());
    let Ok(path) = program::locate(named, recorded, env::var_os("PATH").as_deref()) else { return Ok(None) };
    let Ok(modified) = program::modified(&path) else { return Ok(None) };
    let answer = match store.known_program(&path, modified)? {
        Some(known) => Some(known.version),
        None if may_ask => program::ask_version(&path).await.ok(),
        None => None,
    };
    Ok(answer.and_then(|answer| answer.parse().ok()))
}

/// Finds the program for a frame with these launch options, and checks that it is not too old.
pub(crate) async fn usable(store: &Store, settings: &RunSettings, launch: &Launch) -> Result<Program, RuntimeError> {
    let recorded = Some(launch.claude.as_path()).filter(|path| !path.as_os_str().is_empty());
    let path = program::locate(settings.claude.as_deref(), recorded, env::var_os("PATH").as_deref())?;
    if let Some(recorded) = recorded.filter(|recorded| settings.claude.is_none() && *recorded != path) {
        static SAID: Once = Once::new();
        let said =
            || tracing::warn!("{} cannot be used any more: {} is started instead", recorded.display(), path.display());
        SAID.call_once(said);
    }
    let modified = program::modified(&path)?;
    let KnownProgram { version: answer, refuses_forks } = match store.known_program(&path, modified)? {
        Some(known) => known,
        None => {
            let known = KnownProgram { version: program::ask_version(&path).await?, refuses_forks: false };
            store.remember_program(&path, modified, &known)?;
            known
        }
    };
    let version = program::check(&path, &answer)?;
    let since = |first| version.is_some_and(|version| version >= first);
    Ok(Program {
        path,
        modified,
        refuses_forks,
        answer,
        suspends: since(Version::SUSPENDS),
        hooks_after_all_calls: since(Version::HOOKS_AFTER_ALL_CALLS),
        prints_hooks: since(Version::PRINTS_HOOKS),
        leaves_mentions: since(Version::LEAVES_MENTIONS),
        tells_directory: since(Version::TELLS_DIRECTORY),
        result_input: version.and_then(ResultInput::of_version),
        returns_to_worktrees: since(Version::RETURNS_TO_WORKTREES),
    })
}

#[cfg(test)]
impl Program {
    /// A program without any of the features of newer versions.
    pub(crate) fn old() -> Self {
        Self {
            path: "/usr/bin/claude".into(),
            modified: Timestamp::UNIX_EPOCH,
            refuses_forks: false,
            answer: "2.1.197 (Claude Code)".to_owned(),
            suspends: false,
            hooks_after_all_calls: false,
            prints_hooks: false,
            leaves_mentions: false,
            tells_directory: false,
            result_input: None,
            returns_to_worktrees: false,
        }
    }
}
