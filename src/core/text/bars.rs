//! Shows text of others line by line behind a bar, so that no line can be mistaken for agent-cli's own.

use std::time::Duration;

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use crate::core::text::escape;
use crate::core::text::wrap::{columns, of_each};

/// Stands before each line that somebody else has written.
pub(crate) const BAR: char = '\u{2502}';
/// Stands before the rest of a line that is too wide.
const CONTINUED: char = '\u{2506}';

/// Whether a line of a text with bars is one that a change adds or removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    Added,
    Removed,
}

impl Changed {
    pub(crate) fn of_line(line: &str) -> Option<Self> {
        let (number, text) = line.split_once([BAR, CONTINUED])?;
        if !number.starts_with("  ") || !number.bytes().all(|byte| byte == b' ' || byte.is_ascii_digit()) {
            return None;
        }
        match text.strip_prefix(' ')?.chars().next()? {
            '+' => Some(Self::Added),
            '-' => Some(Self::Removed),
            _ => None,
        }
    }
}

pub(crate) struct Bars {
    text: String,
    width: Option<usize>,
    escaped: fn(&str) -> String,
}

impl Bars {
    /// For a text that a person approves. `width`: the number of columns, if known.
    pub(crate) fn new(width: Option<usize>) -> Self {
        Self { text: String::new(), width, escaped: escape::exact }
    }

    /// For a text that is read.
    pub(crate) fn of_prose(width: Option<usize>) -> Self {
        Self { escaped: escape::exact_prose, ..Self::new(width) }
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
        self.wrapped(before, &format!("  {CONTINUED}  "), name);
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
                self.behind_a_bar("", mark, lines[at]);
                at += 1;
            }
        }
    }

    /// `number`: of the line, with a blank after it.
    fn behind_a_bar(&mut self, number: &str, mark: char, line: &str) {
        let rest = format!("  {}{CONTINUED} {mark}", " ".repeat(number.len()));
        self.wrapped(&format!("  {number}{BAR} {mark}"), &rest, line);
    }

    /// A line behind `first`. If it does not fit, it continues behind `rest`: after a blank if there is one in the second half of
    /// the room. No character is left out, blanks included. A blank at which a line breaks ends it.
    fn wrapped(&mut self, first: &str, rest: &str, line: &str) {
        let line = (self.escaped)(line).replace('\n', "\u{23ce}");
        let room = self.width.map_or(usize::MAX, |width| width.saturating_sub(columns(rest) + 1).max(1));
        let (mut before, mut part, mut taken, mut after_blank) = (first.to_owned(), String::new(), 0, None);
        for (_, c, wide) in of_each(&line) {
            let ends_line = c == ' ' && taken == room && !part.ends_with(' ');
            if taken + wide > room && !part.is_empty() && !ends_line {
                // What belongs together and is wider than a line breaks anywhere.
                let whole = escape::before_joined(&part, c).len();
                let fits = whole > 0 && columns(&part[whole..]) + wide <= room;
                let whole = if fits { whole } else { part.len() };
                let next = part.split_off(after_blank.take().filter(|_| c != ' ').unwrap_or(whole));
                self.line(&format!("{before}{part}"));
                (before, taken, part) = (rest.to_owned(), columns(&next), next);
            }
            part.push(c);
            taken += wide;
            if c == ' ' && taken >= room.div_ceil(2) {
                after_blank = Some(part.len());
            }
        }
        self.line(format!("{before}{part}").trim_end());
    }

    /// A change from `old` to `new`, with all lines of both.
    pub(crate) fn diff(&mut self, old: &str, new: &str) {
        self.changes(old, new, None, usize::MAX);
    }

    /// A change in a file, with the numbers of its lines: removed ones have those they had. `first`: the number of the first line.
    /// `context`: how many unchanged lines are shown around each change.
    pub(crate) fn diff_of_file(&mut self, old: &str, new: &str, first: usize, context: usize) {
        self.changes(old, new, Some(first), context);
    }

    /// A missing line break at the end of a text is only mentioned if the other text has one, or is empty: it is not a difference
    /// between two texts that both lack it.
    fn changes(&mut self, old: &str, new: &str, first: Option<usize>, context: usize) {
        // Without a limit, comparing two long texts with nothing in common would take minutes.
        const PATIENCE: Duration = Duration::from_millis(500);
        // A carriage return alone is not a line break for a shell.
        let [of_old, of_new] = [old, new].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
        let diff = TextDiff::configure().timeout(PATIENCE).diff_slices(&of_old, &of_new);
        let context = context.min(old.len() + new.len());
        let is_bare = |text: &str| !text.is_empty() && !text.ends_with('\n');
        let differ_at_end = is_bare(old) != is_bare(new);
        let (mut shown, all) = (0, of_old.len());
        let digits = first.map(|first| (first + all.max(of_new.len())).saturating_sub(1).to_string().len());
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
                let at = change.new_index().or(change.old_index()).unwrap_or_default();
                let number = first.zip(digits).map(|(first, digits)| format!("{:>digits$} ", first + at));
                self.behind_a_bar(&number.unwrap_or_default(), mark, line.strip_suffix('\n').unwrap_or(line));
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
        assert_eq!(shown("one two threefour", 13), "  \u{2502}  one two \n  \u{2506}  threefo\n  \u{2506}  ur\n");
    }

    #[test]
    fn an_emoji_of_prose_stays_on_one_line() {
        let shown = |width| {
            let mut bars = Bars::of_prose(Some(width));
            bars.lines(' ', "ab👩🏽\u{200d}👩\u{200d}👦cd");
            bars.text()
        };
        assert_eq!(shown(15), "  \u{2502}  ab\n  \u{2506}  👩🏽\u{200d}👩\u{200d}👦c\n  \u{2506}  d\n");
        assert!(shown(9).lines().all(|line| columns(line) <= 9), "{}", shown(9));
    }

    #[test]
    fn a_carriage_return_alone_ends_no_line() {
        let mut bars = Bars::new(None);
        bars.diff("", "echo a\rrm -rf x\r\n");
        assert_eq!(bars.text(), "  \u{2502} +echo a\\u{d}rm -rf x\\u{d}\n");
    }

    #[test]
    fn that_a_line_break_is_missing_is_said_where_the_two_differ_in_it() {
        let said = |old: &str, new: &str| {
            let mut bars = Bars::new(None);
            bars.diff(old, new);
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

    #[test]
    fn lines_of_a_file_have_numbers() {
        let text =
            |skipped: usize| (1..=12).filter(|n| *n != skipped).map(|n| format!("line {n}\n")).collect::<String>();
        let shown = |width| {
            let mut bars = Bars::new(width);
            bars.diff_of_file(&text(0), &text(10), 1, 1);
            bars.text()
        };
        insta::assert_snapshot!(shown(None), @"
          (8 lines stay as they are)
         9 │  line 9
        10 │ -line 10
        10 │  line 11
          (1 line stays as it is)
        ");
        assert!(shown(Some(13)).contains("  10 \u{2502} -line \n     \u{2506} -10\n"), "{}", shown(Some(13)));
    }

    #[test]
    fn lines_of_a_diff_are_told_from_lines_that_look_like_one() {
        for (line, expected) in [
            ("  \u{2502} +new", Some(Changed::Added)),
            ("  \u{2502} -old", Some(Changed::Removed)),
            ("  7 \u{2502} -old", Some(Changed::Removed)),
            ("    \u{2506} -old", Some(Changed::Removed)),
            ("  \u{2502}  -same", None),
            ("  \u{2502}", None),
            ("\u{2502} -not a bar of ours", None),
            ("  x \u{2502} -not a number", None),
            ("+x", None),
        ] {
            assert_eq!(Changed::of_line(line), expected, "{line}");
        }
    }

    proptest! {
        #[test]
        fn every_line_of_prose_is_behind_a_bar_and_fits(
            text in "[ab \u{1f469}\u{1f3fd}\u{200d}\u{fe0f}1\u{20e3}\u{1f1e6}]{0,80}",
            width in 9..40usize,
        ) {
            for mut bars in [Bars::of_prose(Some(width)), Bars::new(Some(width))] {
                bars.lines(' ', &text);
                for line in bars.text().lines() {
                    prop_assert!(columns(line) <= width, "{:?}", line);
                    prop_assert!(line.starts_with("  \u{2502}") || line.starts_with("  \u{2506}"), "{:?}", line);
                }
            }
        }

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
