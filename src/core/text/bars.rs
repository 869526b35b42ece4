//! Shows text of others line by line behind a bar, so that no line can be mistaken for agent-cli's own.

use std::time::Duration;

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use crate::core::text::escape;
use crate::core::text::wrap::{columns, of_each};

/// Stands before each line that somebody else has written.
pub(crate) const BAR: char = '\u{2502}';

pub(crate) struct Bars {
    text: String,
    width: Option<usize>,
}

impl Bars {
    /// `width`: the number of columns, if known.
    pub(crate) fn new(width: Option<usize>) -> Self {
        Self { text: String::new(), width }
    }

    pub(crate) fn text(self) -> String {
        self.text
    }

    pub(crate) fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// A name on a separate line.
    pub(crate) fn named(&mut self, before: &str, name: &str) {
        self.wrapped(before, ' ', name);
    }

    pub(crate) fn field(&mut self, name: &str) {
        self.named("  ", &format!("{name}:"));
    }

    pub(crate) fn value(&mut self, name: &str, value: &Value) {
        self.field(name);
        match value {
            Value::String(text) => self.lines(' ', text),
            // Writing JSON to a string cannot fail.
            other => self.lines(' ', &serde_json::to_string_pretty(other).unwrap_or_default()),
        }
    }

    /// Each line behind a bar. Many empty lines are counted instead: they would push the text above them off the screen.
    pub(crate) fn lines(&mut self, mark: char, text: &str) {
        const MOST_EMPTY: usize = 3;
        let lines: Vec<&str> = text.split('\n').collect();
        let mut at = 0;
        while at < lines.len() {
            let empty = lines[at..].iter().take_while(|line| line.trim().is_empty()).count();
            if empty > MOST_EMPTY {
                self.line(&format!("    ({empty} lines with nothing but blanks)"));
                at += empty;
            } else {
                self.behind_a_bar(mark, lines[at]);
                at += 1;
            }
        }
    }

    fn behind_a_bar(&mut self, mark: char, line: &str) {
        self.wrapped(&format!("  {BAR} {mark}"), mark, line);
    }

    /// A line behind `first`. If it does not fit, it continues behind a different bar: after a blank if there is one in the second
    /// half of the room. No character is left out, blanks included.
    fn wrapped(&mut self, first: &str, mark: char, line: &str) {
        let line = escape::exact(line).replace('\n', "\u{23ce}");
        let room = self.width.map_or(usize::MAX, |width| width.saturating_sub(6).max(1));
        let (mut before, mut part, mut taken, mut after_blank) = (first.to_owned(), String::new(), 0, None);
        for (_, c, wide) in of_each(&line) {
            if taken + wide > room && !part.is_empty() {
                let rest = part.split_off(after_blank.take().filter(|_| c != ' ').unwrap_or(part.len()));
                self.line(&format!("{before}{part}"));
                (before, taken, part) = (format!("  \u{2506} {mark}"), columns(&rest), rest);
            }
            part.push(c);
            taken += wide;
            if c == ' ' && taken >= room.div_ceil(2) {
                after_blank = Some(part.len());
            }
        }
        self.line(format!("{before}{part}").trim_end());
    }

    /// `context`: how many unchanged lines are shown around each change. A missing line break at the end of a text is only
    /// mentioned if the other text has one, or is empty: it is not a difference between two texts that both lack it.
    pub(crate) fn diff(&mut self, old: &str, new: &str, context: usize) {
        // Without a limit, comparing two long texts with nothing in common would take minutes.
        const PATIENCE: Duration = Duration::from_millis(500);
        // A carriage return alone is not a line break for a shell.
        let [of_old, of_new] = [old, new].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
        let diff = TextDiff::configure().timeout(PATIENCE).diff_slices(&of_old, &of_new);
        let context = context.min(old.len() + new.len());
        let is_bare = |text: &str| !text.is_empty() && !text.ends_with('\n');
        let differ_at_end = is_bare(old) != is_bare(new);
        let (mut shown, all) = (0, of_old.len());
        for group in diff.grouped_ops(context) {
            if let Some(first) = group.first() {
                self.skipped(first.old_range().start - shown);
            }
            for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                let mark = match change.tag() {
                    ChangeTag::Equal => ' ',
                    ChangeTag::Delete => '-',
                    ChangeTag::Insert => '+',
                };
                let line = change.value();
                self.behind_a_bar(mark, line.strip_suffix('\n').unwrap_or(line));
                if differ_at_end && !line.ends_with('\n') {
                    self.line("    (no line break at the end)");
                }
            }
            shown = group.last().map_or(shown, |last| last.old_range().end);
        }
        self.skipped(all - shown);
    }

    fn skipped(&mut self, lines: usize) {
        match lines {
            0 => {}
            1 => self.line("    (1 line stays as it is)"),
            lines => self.line(&format!("    ({lines} lines stay as they are)")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str, width: usize) -> String {
        let mut bars = Bars::new(Some(width));
        bars.lines(' ', text);
        bars.text()
    }

    #[test]
    fn a_line_continues_after_a_blank_if_one_is_near() {
        assert_eq!(shown("one two three", 16), "  \u{2502}  one two \n  \u{2506}  three\n");
        assert_eq!(shown("a bcdefghijkl", 16), "  \u{2502}  a bcdefghi\n  \u{2506}  jkl\n");
        assert_eq!(shown("one two threefour", 13), "  \u{2502}  one two\n  \u{2506}   threef\n  \u{2506}  our\n");
    }

    #[test]
    fn a_carriage_return_alone_ends_no_line() {
        let mut bars = Bars::new(None);
        bars.diff("", "echo a\rrm -rf x\r\n", usize::MAX);
        assert_eq!(bars.text(), "  \u{2502} +echo a\\u{d}rm -rf x\\u{d}\n");
    }

    #[test]
    fn that_a_line_break_is_missing_is_said_where_the_two_differ_in_it() {
        let said = |old: &str, new: &str| {
            let mut bars = Bars::new(None);
            bars.diff(old, new, usize::MAX);
            bars.text().matches("(no line break at the end)").count()
        };
        for (old, new, expected) in [
            ("a", "b", 0),
            ("a\nb", "a\nc", 0),
            ("a\n", "b\n", 0),
            ("a\n", "a", 1),
            ("a", "b\n", 1),
            ("", "a", 1),
            ("a", "", 1),
        ] {
            assert_eq!(said(old, new), expected, "{old:?} {new:?}");
        }
    }

    proptest! {
        #[test]
        fn no_character_is_left_out(text in "[ab\u{6f22} ]{0,60}", width in 8..40usize) {
            let shown = shown(&text, width);
            let parts: String = shown.lines().map(|line| line.chars().skip(5).collect::<String>()).collect();
            let end = text.trim_end().len();
            let (seen, blanks) = text.split_at(end);
            let expected = format!("{seen}{}", blanks.replace(' ', "\\u{20}"));
            // An empty line shows nothing behind its bar.
            prop_assert_eq!(parts, expected);
            for line in shown.lines() {
                prop_assert!(columns(line) <= width, "{:?}", line);
            }
        }
    }
}
