//! Signals: the words with which an agent ends its turn when it pauses.
//!
//! A signal is on a separate line: decoration, punctuation and parentheses around it do not matter, because
//! models add them. The last such line wins. A word inside a sentence may be a mention, so the
//! [record](crate::core::attempt::meaning) decides. A word in a code block or in a quotation is never a signal.
//! `docs/protocol.md` has the table.

/// The first line of the prompt that wakes an agent.
pub(crate) const RESUME: &str = "SGN_RESUME";
/// Printed when a tree, or a request, has begun to wait for something.
pub(crate) const STARTED: &str = "SGN_PEND_STARTED";
/// Printed when it still waits for the same thing.
pub(crate) const ONGOING: &str = "SGN_PEND_ONGOING";
/// An agent's word for "I was resumed and do not know why".
pub(crate) const UNHANDLED: &str = "SGN_UNHANDLED";

/// What an agent says about itself in the last line of its turn.
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
    const ALL: [Self; 3] = [Self::Started, Self::Ongoing, Self::Unhandled];

    /// The last signal on a separate line of `reply`.
    ///
    /// [`RESUME`] is only sent to agents, so in a reply it is a word like any other.
    pub(crate) fn on_a_line(reply: &str) -> Option<Self> {
        own_lines(reply).filter_map(Self::of_line).last()
    }

    /// The signals whose words are inside sentences of `reply`, in order.
    pub(crate) fn in_sentences(reply: &str) -> Vec<Self> {
        let lines = own_lines(reply).filter(|line| Self::of_line(line).is_none());
        lines.flat_map(Self::words_of).collect()
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Started => STARTED,
            Self::Ongoing => ONGOING,
            Self::Unhandled => UNHANDLED,
        }
    }

    /// Whether `text` contains its word anywhere.
    pub(crate) fn is_named_in(self, text: &str) -> bool {
        places(text, self.word()).next().is_some()
    }

    fn words_of(line: &str) -> Vec<Self> {
        let mut found: Vec<(usize, Self)> =
            Self::ALL.into_iter().flat_map(|signal| places(line, signal.word()).map(move |at| (at, signal))).collect();
        found.sort_by_key(|(at, _)| *at);
        found.into_iter().map(|(_, signal)| signal).collect()
    }

    fn of_line(line: &str) -> Option<Self> {
        let line = line.trim_start_matches(is_decoration);
        let (signal, rest) =
            Self::ALL.into_iter().find_map(|signal| Some((signal, line.strip_prefix(signal.word())?)))?;
        is_nothing_more(rest).then_some(signal)
    }
}

/// The lines of a text that are neither in a Markdown code block nor in a quotation. A code block without an end
/// continues to the end of the text.
fn own_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut fence: Option<(char, usize)> = None;
    text.lines().filter(move |line| {
        let line = line.trim_start();
        match (fence, fence_of(line)) {
            (None, Some((mark, length, info))) if mark == '~' || !info.contains('`') => {
                fence = Some((mark, length));
                false
            }
            (None, _) => !line.starts_with('>'),
            (Some(open), Some((mark, length, info))) => {
                if mark == open.0 && length >= open.1 && info.trim().is_empty() {
                    fence = None;
                }
                false
            }
            (Some(_), None) => false,
        }
    })
}

/// The character and length of the fence with which a line begins, and the rest of the line.
fn fence_of(line: &str) -> Option<(char, usize, &str)> {
    let mark = line.chars().next().filter(|mark| ['`', '~'].contains(mark))?;
    let info = line.trim_start_matches(mark);
    let length = line.len() - info.len();
    (length >= 3).then_some((mark, length, info))
}

/// Where `word` occurs in `text` as a word: not as part of a longer name, and not in a path.
fn places<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let continues = |c: char| c.is_alphanumeric() || "_-/\\".contains(c);
    text.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let (before, after) = (&text[..*at], &text[at + word.len()..]);
        let is_file = after.strip_prefix('.').is_some_and(|rest| rest.starts_with(char::is_alphanumeric));
        !before.ends_with(|c| continues(c) || c == '.') && !after.starts_with(continues) && !is_file
    })
}

/// Whether the text after a signal on its line adds nothing: punctuation, decoration, parentheses with any content.
fn is_nothing_more(rest: &str) -> bool {
    let mut depth = 0_u32;
    for c in rest.chars() {
        match c {
            '(' | '（' => depth += 1,
            ')' | '）' if depth > 0 => depth -= 1,
            _ if depth > 0 || is_decoration(c) || is_punctuation(c) => {}
            _ => return false,
        }
    }
    depth == 0
}

fn is_decoration(c: char) -> bool {
    c.is_whitespace() || "`'\"*_~“”‘’«»".contains(c)
}

fn is_punctuation(c: char) -> bool {
    ".,:;!?…。！？".contains(c)
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
            "```SGN_PEND_STARTED```",
            "**SGN_PEND_STARTED**",
            "__SGN_PEND_STARTED__",
            "\"SGN_PEND_STARTED\"",
            "“SGN_PEND_STARTED”",
            "SGN_PEND_STARTED.",
            "SGN_PEND_STARTED…",
            "**SGN_PEND_STARTED**.",
            "**SGN_PEND_STARTED.**",
            "SGN_PEND_STARTED (0193e7b0-1c2d-4abc-8def-0123456789ff)",
            "**`SGN_PEND_STARTED` (`0193e7b0`)**",
            "SGN_PEND_STARTED (waiting for question.md)",
            "SGN_PEND_STARTED (waiting for question.md (the second)).",
            "SGN_PEND_STARTED. (The child asked.)",
            "SGN_PEND_STARTED ()",
            "I asked.\n\nSGN_PEND_STARTED\n",
            "```\ncode\n```\nSGN_PEND_STARTED",
            "~~~\n```\n~~~\nSGN_PEND_STARTED",
            "SGN_PEND_STARTED\r\nI will carry on when there is an answer.",
        ] {
            assert_eq!(Signal::on_a_line(reply), Some(Signal::Started), "{reply:?}");
            assert_eq!(Signal::in_sentences(reply), [], "{reply:?}");
        }
        assert_eq!(Signal::on_a_line("SGN_PEND_ONGOING"), Some(Signal::Ongoing));
        assert_eq!(Signal::on_a_line("`SGN_UNHANDLED`"), Some(Signal::Unhandled));
    }

    #[test]
    fn the_last_signal_wins() {
        assert_eq!(Signal::on_a_line("SGN_PEND_STARTED\nSGN_PEND_ONGOING"), Some(Signal::Ongoing));
        assert_eq!(Signal::on_a_line("SGN_PEND_ONGOING\n\nSGN_PEND_STARTED (ab12)"), Some(Signal::Started));
    }

    #[test]
    fn a_word_in_a_sentence_is_not_on_a_line_of_its_own() {
        for reply in [
            "I created question.md. Replying SGN_PEND_STARTED to the caller.",
            "The child answered SGN_PEND_STARTED.",
            "The child answered `SGN_PEND_STARTED`.",
            "SGN_PEND_STARTED means that it waits.",
            "SGN_PEND_STARTED: waiting for question.md",
            "SGN_PEND_STARTED (a) and (b) are",
            "SGN_PEND_STARTED (waiting for question.md",
            "- SGN_PEND_STARTED",
            "## SGN_PEND_STARTED",
            "status=SGN_PEND_STARTED",
            "(SGN_PEND_STARTED)",
        ] {
            assert_eq!(Signal::on_a_line(reply), None, "{reply:?}");
            assert_eq!(Signal::in_sentences(reply), [Signal::Started], "{reply:?}");
        }
        let several = "SGN_UNHANDLED is not SGN_PEND_ONGOING\nand not SGN_PEND_STARTED either";
        assert_eq!(Signal::in_sentences(several), [Signal::Unhandled, Signal::Ongoing, Signal::Started]);
    }

    #[test]
    fn a_quotation_is_no_signal() {
        for reply in [
            "It ends with:\n```\nSGN_PEND_STARTED\n```\nThat is all.",
            "```text\nSGN_PEND_STARTED (ab12)\n```",
            "~~~\nSGN_PEND_STARTED\n~~~",
            "1. so:\n   ```\n   it says SGN_PEND_STARTED\n   ```",
            "    ```\n    SGN_PEND_STARTED\n    ```",
            "````\n```\nSGN_PEND_STARTED\n````",
            "~~~\n```\nSGN_PEND_STARTED\n~~~",
            "```\n``` no end\nSGN_PEND_STARTED\n```",
            "An open block:\n```\nSGN_PEND_STARTED",
            "> SGN_PEND_STARTED",
            "  > it said SGN_PEND_STARTED",
        ] {
            assert_eq!(Signal::on_a_line(reply), None, "{reply:?}");
            assert_eq!(Signal::in_sentences(reply), [], "{reply:?}");
        }
    }

    #[test]
    fn other_words_are_none() {
        for reply in [
            "", "Jan 1st", "SGN_PEND_STARTED_LATE", "MY_SGN_PEND_STARTED", "docs/SGN_PEND_STARTED.md",
            "SGN_PEND_STARTED.md", "sgn_pend_started", "SGN_RESUME",
        ] {
            assert_eq!(Signal::on_a_line(reply), None, "{reply:?}");
            assert_eq!(Signal::in_sentences(reply), [], "{reply:?}");
        }
    }

    #[test]
    fn a_word_is_named_wherever_it_stands() {
        assert!(Signal::Started.is_named_in("```\nSGN_PEND_STARTED\n```"));
        assert!(Signal::Ongoing.is_named_in("_terminate_ \"SGN_PEND_ONGOING\""));
        assert!(!Signal::Started.is_named_in("SGN_PEND_ONGOING and SGN_PEND_STARTED_LATE"));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String) {
            let _ = (Signal::on_a_line(&text), Signal::in_sentences(&text));
        }

        #[test]
        fn a_signal_survives_decoration(
            before in "[a-z .\n]{0,40}",
            left in "[`'\"* ]{0,2}",
            right in "[`'\"* .!…]{0,4}",
            more in proptest::option::of("[ -'*-~]{0,20}"),
        ) {
            let more = more.map(|more| format!(" ({more})")).unwrap_or_default();
            let reply = format!("{before}\n{left}SGN_PEND_ONGOING{more}{right}");
            prop_assert_eq!(Signal::on_a_line(&reply), Some(Signal::Ongoing));
        }

        #[test]
        fn a_word_in_prose_is_found_in_it(before in "[a-z]{1,10}", after in "[a-z]{1,10}") {
            for reply in [format!("{before} SGN_PEND_STARTED"), format!("SGN_PEND_STARTED {after}")] {
                prop_assert_eq!(Signal::on_a_line(&reply), None);
                prop_assert_eq!(Signal::in_sentences(&reply), [Signal::Started]);
            }
        }

        #[test]
        fn a_signal_in_a_code_block_does_not_count(
            before in "[a-z \n]{0,20}",
            fence in "(`{3,5}|~{3,5})",
            word in "(SGN_PEND_STARTED|SGN_PEND_ONGOING|SGN_UNHANDLED)",
            end in proptest::bool::ANY,
        ) {
            let end = if end { fence.as_str() } else { "" };
            let reply = format!("{before}\n{fence}\n{word}\nso {word}.\n{end}");
            prop_assert_eq!(Signal::on_a_line(&reply), None);
            prop_assert_eq!(Signal::in_sentences(&reply), []);
        }
    }
}
