//! The events of a chain on standard output while it runs, for `--stream`.

use std::path::Path;
use std::time::Duration;

use crate::cli::error::CliError;
use crate::cli::output::{self, print_event};
use crate::cli::report::live::beside::{Beside, Seen};
use crate::core::id::FrameId;

/// A notification comes earlier.
const LOOK: Duration = Duration::from_millis(500);

/// Prints what happens from now on in the chain of `top`. A reader that has gone away ends nothing.
pub(crate) fn start(state_dir: &Path, top: FrameId) -> Result<Beside, CliError> {
    Beside::start(state_dir, top, LOOK, |seen| match seen {
        Seen::Event(event) if !output::was_unread() => Ok(print_event(event)?),
        // What happened before was another command's to print.
        Seen::Event(_) | Seen::Before(_) | Seen::Chain(_) | Seen::Last => Ok(()),
    })
}
