//! Reads the environment of a command.

use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::app::config::value::with_home;
use crate::app::error::{AppError, Refusal};
use crate::claude::invocation::{ATTEMPT, FRAME, STATE_DIR};
use crate::cli::error::CliError;
use crate::store::Caller;

/// The variable that names the `claude` to use.
pub(crate) const CLAUDE: &str = "AGENT_CLI_CLAUDE";
/// The variable that names the config file.
pub(crate) const CONFIG: &str = "AGENT_CLI_CONFIG";

/// The path of this program, or of the one that has replaced it.
pub(super) fn own_program() -> Result<PathBuf, AppError> {
    let own = env::current_exe();
    let own = own.map_err(|error| Refusal::failure(format!("failed to find this program's own path: {error}")))?;
    Ok(replacement(&own).unwrap_or(own))
}

/// An upgrade replaces the file of a program that runs: Linux reports its path with a note then.
fn replacement(own: &Path) -> Option<PathBuf> {
    let path = own.as_os_str().as_bytes().strip_suffix(b" (deleted)")?;
    let path = Path::new(OsStr::from_bytes(path));
    (!own.exists() && path.is_file()).then(|| path.to_owned())
}

/// A path in a variable. An empty one counts as unset.
fn named_path(variable: &str) -> Option<PathBuf> {
    let path = env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from)?;
    Some(with_home(&path, home().as_deref()).into_owned())
}

/// The state directory that the environment names.
pub(crate) fn named_state_dir() -> Option<PathBuf> {
    named_path(STATE_DIR)
}

/// The path of the config file, whether or not it exists. `None` if there is no home directory.
pub(crate) fn config_path() -> Option<PathBuf> {
    let named = named_path(CONFIG);
    let usual = || dirs::config_dir().map(|dir| dir.join("agent-cli").join("config.toml"));
    std::path::absolute(named.or_else(usual)?).ok()
}

/// The path of the config file, if only this shell's environment names it. A service would use another file.
pub(crate) fn config_of_this_shell() -> Option<PathBuf> {
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    config_path().filter(|_| is_set(CONFIG) || is_set("XDG_CONFIG_HOME"))
}

/// The `claude` that the environment names.
pub(crate) fn named_claude() -> Option<PathBuf> {
    named_path(CLAUDE)
}

/// Whether this process runs in a tool call of an agent.
pub(crate) fn is_called_by_an_agent() -> bool {
    env::var_os(FRAME).is_some() || env::var_os(ATTEMPT).is_some()
}

pub(super) fn caller() -> Result<Option<Caller>, CliError> {
    let (frame, attempt) = match (env::var_os(FRAME), env::var_os(ATTEMPT)) {
        (None, None) => return Ok(None),
        (frame, attempt) => (frame.unwrap_or_default(), attempt.unwrap_or_default()),
    };
    let ids = frame.to_str().and_then(|frame| frame.parse().ok()).zip(attempt.to_str().and_then(|id| id.parse().ok()));
    let (frame, attempt) = ids.ok_or_else(|| {
        CliError::usage(format!("{FRAME} and {ATTEMPT} are set, but are not ids"))
            .hint(format!("agent-cli sets them for its agents: unset {FRAME} {ATTEMPT}"))
    })?;
    Ok(Some(Caller { frame, attempt }))
}

pub(super) fn home() -> Option<PathBuf> {
    dirs::home_dir()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_program_that_was_replaced_is_found_in_its_place() {
        let temp = tempfile::tempdir().unwrap();
        let (own, noted) = (temp.path().join("agent-cli"), temp.path().join("agent-cli (deleted)"));
        assert_eq!([replacement(&own), replacement(&noted)], [None, None], "it is gone");
        fs::write(&own, "").unwrap();
        assert_eq!([replacement(&own), replacement(&noted)], [None, Some(own)]);
        fs::write(&noted, "").unwrap();
        assert_eq!(replacement(&noted), None, "that is its name");
    }
}
