//! A person's decision about a call or a plan: `allow`, or `deny`, perhaps with a reason.

/// A person's decision about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Permit {
    /// It may run, once.
    Allow,
    /// It may not run.
    Deny {
        /// Why, in the person's words. May be empty.
        reason: String,
    },
}

/// The decision in an answer. `None`: it is neither.
pub(crate) fn permit(text: &str) -> Option<Permit> {
    let text = text.trim();
    let (word, reason) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    match word.trim_end_matches([':', ',']).to_ascii_lowercase().as_str() {
        "allow" if reason.is_empty() => Some(Permit::Allow),
        "deny" => Some(Permit::Deny { reason: reason.trim().to_owned() }),
        _ => None,
    }
}
