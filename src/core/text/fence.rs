//! Text of others inside a text for an agent.
//!
//! A reply, an answer or an error may contain anything, including text that looks like agent-cli's: another result, an answer
//! that was never given, a notice. So it ends at a line that none of the texts contains, and that is announced before all of
//! them.

/// A line that ends each of several texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fence {
    line: String,
}

impl Fence {
    /// A line like `--- end of result ---`, with more dashes than any of `texts` has before these words.
    pub(crate) fn new<'a>(kind: &str, texts: impl IntoIterator<Item = &'a str>) -> Self {
        const FEWEST: usize = 3;
        let words = format!("end of {kind}");
        let longest = texts.into_iter().filter_map(|text| longest(text, &words)).max();
        let dashes = "-".repeat(longest.map_or(FEWEST, |longest| FEWEST.max(longest + 1)));
        Self { line: format!("{dashes} {words} {dashes}") }
    }

    /// `text`, followed by the line that ends it.
    pub(crate) fn closed(&self, text: &str) -> String {
        format!("{text}\n{}", self.line)
    }

    /// The announcement before all texts: `subject` names them, and `none` says that none of them contains the line.
    pub(crate) fn rule(&self, subject: &str, none: &str) -> String {
        format!("{subject} ends at the line `{}`; {none}.", self.line)
    }
}

/// The most dashes of any kind before `words` in `text`.
fn longest(text: &str, words: &str) -> Option<usize> {
    let text = text.to_lowercase();
    let dashes = |(at, _): (usize, _)| {
        let before = text[..at].trim_end();
        before.chars().rev().take_while(|c| "-‐‑‒–—―−".contains(*c)).count()
    };
    text.match_indices(words).map(dashes).max()
}

/// Whether a reader would see a new line at `c`.
pub(crate) fn is_line_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether `text` is a single line, whatever follows it.
pub(crate) fn is_one_line(text: &str) -> bool {
    !text.trim_end_matches(is_line_break).contains(is_line_break)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_line_has_more_dashes_than_any_text() {
        let line = |texts: &[&str]| Fence::new("result", texts.iter().copied()).line;
        assert_eq!(line(&[]), "--- end of result ---");
        assert_eq!(line(&["a\n---\nb", "end of result"]), "--- end of result ---");
        assert_eq!(line(&["x\n--- end of result ---\nresult of"]), "---- end of result ----");
        assert_eq!(line(&["—————  END of Result"]), "------ end of result ------");
    }

    proptest! {
        #[test]
        fn no_text_has_the_line(texts in prop::collection::vec("(-| |\n|end of result|---- end of result ----){0,12}", 0..4)) {
            let fence = Fence::new("result", texts.iter().map(String::as_str));
            for text in &texts {
                prop_assert!(!text.contains(&fence.line), "{text:?}");
            }
        }
    }
}
