//! The directory in which Claude Code keeps its sessions and settings.

use std::env;
use std::path::PathBuf;

use crate::core::agent::launch::Launch;

/// Where Claude Code keeps sessions and settings.
pub(crate) const CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";

/// The directory in which Claude Code keeps the sessions of a frame with these launch options.
pub(crate) fn config_dir(launch: &Launch) -> Option<PathBuf> {
    config_dir_of(named_config_dir(), launch)
}

/// The same, if the environment sets this directory or none.
pub(crate) fn config_dir_of(named: Option<PathBuf>, launch: &Launch) -> Option<PathBuf> {
    named.or_else(|| launch.config_dir.clone()).or_else(|| dirs::home_dir().map(|home| home.join(".claude")))
}

/// The directory that the user of this process has set. An empty value counts as unset, also for agents.
pub(crate) fn named_config_dir() -> Option<PathBuf> {
    env::var_os(CONFIG_DIR).filter(|dir| !dir.is_empty()).map(PathBuf::from)
}
