//! Chains that only a person continues.

use std::io::{self, IsTerminal};

use crate::cli::output::tell;
use crate::runtime::RuntimeError;
use crate::store::{Chains, Store};

/// Says which chains were interrupted. Only on a terminal: cron would mail it every minute.
pub(super) fn tell_of_interrupted(store: &Store) -> Result<(), RuntimeError> {
    if !io::stderr().is_terminal() {
        return Ok(());
    }
    let interrupted = store.chains(Chains::With { status: "cancelled", most: 1 })?;
    let Some(newest) = interrupted.chains.first() else { return Ok(()) };
    match interrupted.more {
        0 => tell(&format!("1 chain was interrupted and is left to you: agent-cli resume {}", newest.id.short())),
        others => tell(&format!(
            "{} chains were interrupted and are left to you: agent-cli resume {} continues the newest, and agent-cli ls -p --status cancelled lists all",
            others + 1,
            newest.id.short(),
        )),
    }
    Ok(())
}
