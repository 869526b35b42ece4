//! Claude Code's permission modes, and which of them are wider than others.

/// From the narrowest to the widest. An absent mode means `default`, which newer releases call `manual`.
const MODES: [&str; 6] = ["plan", "dontAsk", "default", "acceptEdits", "auto", "bypassPermissions"];

/// The mode that never asks.
pub(crate) const UNRESTRICTED: &str = "bypassPermissions";

/// The mode that applies if none is given.
pub(crate) const DEFAULT: &str = "default";
/// The narrowest mode in which Claude Code changes files in the agent's directories without asking.
pub(crate) const ACCEPT_EDITS: &str = "acceptEdits";

/// Whether an agent in `mode` may do no more than one in `own`. Any release may add modes that are unknown here: those include
/// only themselves.
pub(crate) fn covers(own: &str, mode: &str) -> bool {
    let known = |mode| MODES.iter().position(|known| *known == plain(mode));
    own == UNRESTRICTED || mode == own || known(mode).zip(known(own)).is_some_and(|(mode, own)| mode <= own)
}

/// Whether both names mean the same mode.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    plain(one) == plain(other)
}

fn plain(mode: &str) -> &str {
    if mode == "manual" { DEFAULT } else { mode }
}
