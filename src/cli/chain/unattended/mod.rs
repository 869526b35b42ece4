//! Commands that continue chains without a person.

pub(crate) mod resume_all;
pub(crate) mod work;

use std::io::{self, IsTerminal};

use crate::app::chains::unattended::{self, Interrupted};
use crate::cli::output::{hint, tell, warn};
use crate::core::chain::check_schedule::RefusedAnswer;
use crate::runtime::RuntimeError;
use crate::store::Store;

/// Whether to report that a file's content does not count as an answer. Without this check, cron would mail the report every
/// minute.
pub(super) fn is_news(refused: &RefusedAnswer) -> bool {
    !refused.was_reported || io::stderr().is_terminal()
}

/// Reports why a file's content does not count as an answer, with a hint.
pub(super) fn tell_of_refused(refused: &RefusedAnswer) {
    let (chain, path) = (refused.root.short(), refused.path.display());
    warn(&format!("{chain}: {path} {}", refused.why));
    hint(&format!("correct the file, or answer the question: agent-cli questions {chain}"));
}

/// Reports interrupted chains, but only on a terminal. Cron would mail the report every minute.
pub(crate) fn tell_of_interrupted(store: &Store) -> Result<(), RuntimeError> {
    if !io::stderr().is_terminal() {
        return Ok(());
    }
    let Some(Interrupted { newest, others }) = unattended::interrupted(store)? else { return Ok(()) };
    match others {
        0 => tell(&format!("1 chain was interrupted and is left to you: agent-cli resume {}", newest.short())),
        others => tell(&format!(
            "{} chains were interrupted and are left to you: agent-cli resume {} continues the newest, and agent-cli ls -p --status cancelled lists all",
            others + 1,
            newest.short(),
        )),
    }
    Ok(())
}
