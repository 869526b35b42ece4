//! The options of Claude Code, and how words become options with values.

mod known;
pub(crate) mod limits_left;
mod parse;

use crate::core::agent::launch::Launch;

pub(crate) use parse::{BadArgument, parse};

#[cfg(test)]
pub(crate) use parse::as_claude_reads;

/// The permission modes of all releases. A release that is too old for a mode says so at the first attempt.
pub(crate) const MODES: [&str; 7] =
    ["acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "manual", "plan"];

/// Whether Claude Code is known to have this option.
pub(crate) fn knows(option: &str) -> bool {
    let name = known::canonical(option);
    known::takes(name).is_some() || known::is_reserved(name)
}

/// Whether any release of Claude Code accepts these launch options.
pub(crate) fn are_known(launch: &Launch) -> bool {
    let knows_mode = launch.permission_mode.as_deref().is_none_or(|mode| MODES.contains(&mode));
    knows_mode && launch.args.pairs().all(|(name, _)| knows(name))
}
