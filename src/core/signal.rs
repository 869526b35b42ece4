//! Signals: the words an agent ends its turn with when it pauses.
//!
//! A signal counts when it stands on a line of its own. Back-ticks, quotation marks and emphasis around it are ignored,
//! because models add them. The last such line wins. A sentence that mentions a signal is no signal.

/// The prompt that wakes an agent begins with this line.
pub const RESUME: &str = "SGN_RESUME";
/// Printed when a tree, or a request, begins to wait for something.
pub const STARTED: &str = "SGN_PEND_STARTED";
/// Printed when it still waits for what it waited for.
pub const ONGOING: &str = "SGN_PEND_ONGOING";
/// An agent's word for "I was resumed and do not know why".
pub const UNHANDLED: &str = "SGN_UNHANDLED";

/// What an agent says of itself with the last line of its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// It waits for something new.
    Started,
    /// It still waits for what it waited for.
    Ongoing,
    /// It was resumed and does not know why.
    Unhandled,
}

impl Signal {
    /// The signal that `reply` ends its turn with, or `None` when it is a plain reply.
    ///
    /// [`RESUME`] is said to agents, never by them, so it is part of a reply like any other word.
    #[must_use]
    pub fn find(reply: &str) -> Option<Self> {
        reply.lines().rev().find_map(Self::of_line)
    }

    fn of_line(line: &str) -> Option<Self> {
        let line = undecorated(line);
        let word_end = line.find(|c: char| !c.is_ascii_uppercase() && c != '_').unwrap_or(line.len());
        let (word, rest) = line.split_at(word_end);
        let signal = match undecorated(word) {
            STARTED => Self::Started,
            ONGOING => Self::Ongoing,
            UNHANDLED => Self::Unhandled,
            _ => return None,
        };
        let rest = undecorated(rest);
        (rest.is_empty() || is_id_in_parentheses(rest)).then_some(signal)
    }
}

fn undecorated(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || "`'\"*_“”‘’«»".contains(c))
}

fn is_id_in_parentheses(text: &str) -> bool {
    text.strip_prefix('(')
        .and_then(|text| text.strip_suffix(')'))
        .map(undecorated)
        .is_some_and(|id| !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_signal_stands_on_a_line_of_its_own() {
        for reply in [
            "SGN_PEND_STARTED",
            "  SGN_PEND_STARTED\n",
            "`SGN_PEND_STARTED`",
            "**SGN_PEND_STARTED**",
            "__SGN_PEND_STARTED__",
            "\"SGN_PEND_STARTED\"",
            "“SGN_PEND_STARTED”",
            "SGN_PEND_STARTED (0193e7b0-1c2d-4abc-8def-0123456789ff)",
            "**`SGN_PEND_STARTED` (`0193e7b0`)**",
            "I asked.\n\n```\nSGN_PEND_STARTED\n```\n",
            "SGN_PEND_STARTED\r\nI will carry on when there is an answer.",
        ] {
            assert_eq!(Signal::find(reply), Some(Signal::Started), "{reply:?}");
        }
        assert_eq!(Signal::find("SGN_PEND_ONGOING"), Some(Signal::Ongoing));
        assert_eq!(Signal::find("`SGN_UNHANDLED`"), Some(Signal::Unhandled));
    }

    #[test]
    fn the_last_signal_wins() {
        assert_eq!(Signal::find("SGN_PEND_STARTED\nSGN_PEND_ONGOING"), Some(Signal::Ongoing));
        assert_eq!(Signal::find("SGN_PEND_ONGOING\n\nSGN_PEND_STARTED (ab12)"), Some(Signal::Started));
    }

    #[test]
    fn a_mention_is_no_signal() {
        for reply in [
            "",
            "Jan 1st",
            "The child answered SGN_PEND_STARTED.",
            "SGN_PEND_STARTED means that it waits.",
            "> SGN_PEND_STARTED",
            "- SGN_PEND_STARTED",
            "SGN_PEND_STARTED (the child asked for a birthday)",
            "SGN_PEND_STARTED ()",
            "SGN_PEND_STARTED_LATE",
            "sgn_pend_started",
            "SGN_RESUME",
        ] {
            assert_eq!(Signal::find(reply), None, "{reply:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String) {
            let _ = Signal::find(&text);
        }

        #[test]
        fn a_signal_survives_decoration(
            before in "[a-z .\n]{0,40}",
            left in "[`'\"* ]{0,4}",
            right in "[`'\"* ]{0,4}",
            id in proptest::option::of("[0-9a-f]{8}"),
        ) {
            let id = id.map(|id| format!(" ({id})")).unwrap_or_default();
            let reply = format!("{before}\n{left}SGN_PEND_ONGOING{id}{right}");
            prop_assert_eq!(Signal::find(&reply), Some(Signal::Ongoing));
        }

        #[test]
        fn a_mention_in_prose_is_no_signal(before in "[a-z]{1,10}", after in "[a-z]{1,10}") {
            let (lead, trail) = (format!("{before} SGN_PEND_STARTED"), format!("SGN_PEND_STARTED {after}"));
            prop_assert_eq!(Signal::find(&lead), None);
            prop_assert_eq!(Signal::find(&trail), None);
        }
    }
}
