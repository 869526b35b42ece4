//! The permission modes of Claude Code, and which of them lets an agent do more than another.

/// From the narrowest to the widest. `default` is what an absent mode means, and newer releases call it `manual`.
const MODES: [&str; 6] = ["plan", "dontAsk", "default", "acceptEdits", "auto", "bypassPermissions"];

/// The mode in which nothing is asked.
pub(crate) const UNRESTRICTED: &str = "bypassPermissions";

/// What an absent mode means.
pub(crate) const DEFAULT: &str = "default";

/// Whether an agent may do no more in `mode` than in `own`. Modes that are not known here may come with any release: they
/// cover only themselves.
#[must_use]
pub(crate) fn covers(own: &str, mode: &str) -> bool {
    let known = |mode| MODES.iter().position(|known| *known == plain(mode));
    own == UNRESTRICTED || mode == own || known(mode).zip(known(own)).is_some_and(|(mode, own)| mode <= own)
}

/// Whether two names are of the same mode.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    plain(one) == plain(other)
}

fn plain(mode: &str) -> &str {
    if mode == "manual" { DEFAULT } else { mode }
}
