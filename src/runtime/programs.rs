//! Which `claude` runs a frame, checked once for every path and modification time, and whether it takes its arguments.

use std::env;
use std::path::PathBuf;

use jiff::Timestamp;

use crate::claude::installation::program;
use crate::claude::installation::version::Version;
use crate::claude::options;
use crate::core::agent::launch::Launch;
use crate::runtime::{RunSettings, RuntimeError};
use crate::store::Store;

/// A `claude` that can be used.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) modified: Timestamp,
    /// Whether it was seen to run no suspended calls of forks.
    pub(crate) refuses_forks: bool,
    /// What it says that it is.
    answer: String,
    /// Whether its hooks can suspend tool calls. One that does not tell its version is not trusted to.
    pub(crate) suspends: bool,
    /// Whether it starts a hook when all calls of a message are done.
    pub(crate) hooks_after_all_calls: bool,
    /// Whether it can be told to print what hooks say.
    pub(crate) prints_hooks: bool,
    /// Whether it can be told to leave mentions of files in a prompt alone, and nothing else.
    pub(crate) leaves_mentions: bool,
    /// Whether it tells its agent by itself where its shell is, when that changes.
    pub(crate) tells_directory: bool,
    /// Whether it brings an agent back into the worktree that it had entered, if its session goes on in place.
    pub(crate) returns_to_worktrees: bool,
}

/// Checks how a chain is to be started, before anything is recorded: that the program is Claude Code and not too old, and, where it
/// is not certain, that it takes these arguments.
///
/// # Errors
///
/// [`RuntimeError`] when the program cannot be used or refuses its arguments.
pub(crate) async fn check(store: &Store, settings: &RunSettings, launch: &Launch) -> Result<(), RuntimeError> {
    let Program { path, answer, .. } = usable(store, settings, launch).await?;
    program::identify(&path, &answer)?;
    if options::are_known(launch) {
        return Ok(());
    }
    let mode = launch.permission_mode.iter().map(|mode| format!("--permission-mode={mode}"));
    let arguments: Vec<String> = mode.chain(launch.args.words()).collect();
    match program::objection(&path, &arguments).await {
        None => Ok(()),
        Some(said) => Err(RuntimeError::Refused(said)),
    }
}

/// Finds the program for a frame with these launch options, and makes sure that it is not too old.
pub(crate) async fn usable(store: &Store, settings: &RunSettings, launch: &Launch) -> Result<Program, RuntimeError> {
    let recorded = Some(launch.claude.as_path()).filter(|path| !path.as_os_str().is_empty());
    let path = program::locate(settings.claude.as_deref(), recorded, env::var_os("PATH").as_deref())?;
    let modified = program::modified(&path)?;
    let answer = match store.known_version(&path, modified)? {
        Some(known) => known,
        None => {
            let answer = program::ask_version(&path).await?;
            store.remember_version(&path, modified, &answer)?;
            answer
        }
    };
    let version = program::check(&path, &answer)?;
    let since = |first| version.is_some_and(|version| version >= first);
    let refuses_forks = store.refuses_forks(&path, modified)?;
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
        returns_to_worktrees: since(Version::RETURNS_TO_WORKTREES),
    })
}
