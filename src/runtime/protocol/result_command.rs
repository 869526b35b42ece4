//! The command that a suspended call runs when its result is available.
//!
//! It is this program under its full path, because a user's shell cannot define anything by that name. `cat` would not
//! work: Claude Code treats its file as one that the agent has read, and shows it to the agent again later.

use std::path::Path;

use crate::core::text::shell::quoted;

/// The command that prints the result in `file`. `own`: this program, an absolute path.
pub(super) fn command(own: &Path, file: &Path, failed: bool) -> String {
    let [own, file] = [own, file].map(|path| quoted(&path.display().to_string()));
    let option = if failed { "--failed " } else { "" };
    format!("{own} hook-result {option}{file}")
}
