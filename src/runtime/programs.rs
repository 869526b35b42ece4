//! Which `claude` runs a frame, checked once for every path and modification time.

use std::env;
use std::path::PathBuf;

use super::{RuntimeError, Settings};
use crate::claude::program;
use crate::claude::version::Version;
use crate::core::launch::Launch;
use crate::store::Store;

/// A `claude` that can be used.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    /// Whether its hooks can suspend tool calls. One that does not tell its version is not trusted to.
    pub(super) suspends: bool,
    /// Whether it can be told to leave mentions of files in a prompt alone, and nothing else.
    pub(super) leaves_mentions: bool,
}

/// Finds the program for a frame with these launch options, and makes sure that it is not too old.
pub(super) async fn usable(store: &Store, settings: &Settings, launch: &Launch) -> Result<Program, RuntimeError> {
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
    Ok(Program { path, suspends: since(Version::SUSPENDS), leaves_mentions: since(Version::LEAVES_MENTIONS) })
}
