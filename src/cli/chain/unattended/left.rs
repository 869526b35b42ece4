//! Chains that only a person continues.

use std::io::{self, IsTerminal};

use crate::cli::output::tell;
use crate::runtime::RuntimeError;
use crate::store::Store;

/// Says which chains were interrupted. Only on a terminal: cron would mail it every minute.
pub(super) fn tell_of_interrupted(store: &Store) -> Result<(), RuntimeError> {
    if !io::stderr().is_terminal() {
        return Ok(());
    }
    match store.chains_with("cancelled")?.as_slice() {
        [] => {}
        [one] => tell(&format!("1 chain was interrupted and is left to you: agent-cli resume {}", one.short())),
        [newest, others @ ..] => tell(&format!(
            "{} chains were interrupted and are left to you: agent-cli resume {} continues the newest, and agent-cli ls -p --status cancelled lists all",
            others.len() + 1,
            newest.short(),
        )),
    }
    Ok(())
}
