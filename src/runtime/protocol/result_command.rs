//! The command that a suspended call runs as when its result is there.
//!
//! It is this program, under its whole path, because nothing that a user's shell defines has such a name, and because
//! Claude Code takes a file that `cat` is given for one that the agent has read, which it shows the agent again later.

use std::path::Path;

use crate::core::text::shell::quoted;

/// The command that prints the result in `file`. `own`: this program, an absolute path.
pub(super) fn command(own: &Path, file: &Path, failed: bool) -> String {
    let [own, file] = [own, file].map(|path| quoted(&path.display().to_string()));
    let option = if failed { "--failed " } else { "" };
    format!("{own} hook-result {option}{file}")
}
