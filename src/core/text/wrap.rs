//! The width of text in columns, and breaking long lines between words. What a person approves is broken by
//! [`Bars`](crate::core::text::bars::Bars) instead, which keeps every blank.

use unicode_width::UnicodeWidthChar;

/// The characters of a line, where each begins, and how many columns it occupies.
///
/// Terminals differ in whether they join the characters of one emoji. Counted one by one, a line is never wider than the
/// result.
pub(crate) fn of_each(line: &str) -> impl Iterator<Item = (usize, char, usize)> {
    let mut before = 0;
    line.char_indices().map(move |(at, c)| {
        let own = c.width().unwrap_or(0);
        // This character requests the wide form of the previous one.
        let columns = if c == '\u{fe0f}' { usize::from(before == 1) } else { own };
        before = own;
        (at, c, columns)
    })
}

pub(crate) fn columns(line: &str) -> usize {
    of_each(line).map(|(_, _, columns)| columns).sum()
}

/// Whether a word that is wider than a line is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LongWord {
    Stays,
    IsBroken,
}

/// A line of escaped text as lines of at most `width` columns, broken at blanks. Those after the first are indented by `indent`
/// blanks. A wider word is not broken: it may be a path or a command.
pub(crate) fn wrapped(line: &str, width: usize, indent: usize) -> Vec<String> {
    broken(line, width, indent, LongWord::Stays)
}

/// The same, with long words broken, too.
pub(crate) fn wrapped_within(line: &str, width: usize, indent: usize) -> Vec<String> {
    broken(line, width.max(2), indent.min(width / 2), LongWord::IsBroken)
}

/// An escaped text of which no line is wider than `width`, long words included. A line continues below its own beginning. Two
/// columns are reserved for a wide character.
pub(crate) fn wrapped_text(text: &str, width: usize) -> String {
    let indent = |line: &str| (line.len() - line.trim_start().len()).min(width / 2).min(width.saturating_sub(2));
    let lines = text.split('\n').flat_map(|line| broken(line, width.max(2), indent(line), LongWord::IsBroken));
    lines.collect::<Vec<_>>().join("\n")
}

fn broken(line: &str, width: usize, indent: usize, long: LongWord) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = line;
    loop {
        let before = if lines.is_empty() { 0 } else { indent };
        let Some(end) = end_of_line(rest, width.saturating_sub(before), long) else {
            lines.push(format!("{}{rest}", " ".repeat(before)));
            return lines;
        };
        lines.push(format!("{}{}", " ".repeat(before), rest[..end].trim_end()));
        rest = rest[end..].trim_start();
    }
}

/// Where the first line ends, if the text does not fit on it. Blanks at its end are invisible.
fn end_of_line(text: &str, width: usize, long: LongWord) -> Option<usize> {
    let (mut column, mut last_blank, mut has_word) = (0, None, false);
    for (at, c, columns) in of_each(text) {
        column += columns;
        if c == ' ' {
            last_blank = has_word.then_some(at);
            continue;
        }
        if column > width {
            let here = (long == LongWord::IsBroken && at > 0).then_some(at);
            if let Some(end) = last_blank.or(here) {
                return Some(end);
            }
        }
        has_word = true;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_is_broken_between_words() {
        assert_eq!(wrapped("one two three", 7, 2), ["one two", "  three"]);
        assert_eq!(wrapped("one two three", 80, 2), ["one two three"]);
        assert_eq!(wrapped("  one two", 6, 2), ["  one", "  two"]);
        assert_eq!(wrapped("a /a/path/that/is/long b", 8, 2), ["a", "  /a/path/that/is/long", "  b"]);
        assert_eq!(wrapped("漢字 漢字 漢字", 9, 0), ["漢字 漢字", "漢字"]);
        assert_eq!(wrapped("", 0, 2), [""]);
    }

    #[test]
    fn a_text_that_has_to_fit_is_broken_within_words_too() {
        for (text, width, expected) in [
            ("one two three", 7, "one two\nthree"),
            ("one two three\n", 20, "one two three\n"),
            ("one two\nthree four", 5, "one\ntwo\nthree\nfour"),
            ("abcdefgh ij", 3, "abc\ndef\ngh\nij"),
            ("  abcdef", 4, "  ab\n  cd\n  ef"),
            ("  abc def", 5, "  abc\n  def"),
            ("  a  b \n", 80, "  a  b \n"),
            ("                one two three four", 20, "                one\n          two three\n          four"),
            ("漢字漢字", 5, "漢字\n漢字"),
            ("漢字", 1, "漢\n字"),
            ("", 5, ""),
        ] {
            assert_eq!(wrapped_text(text, width), expected, "{text} in {width}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_only_words_are_too_wide(text in "[a漢 ]{0,40}", width in 0..30usize, indent in 0..4usize) {
            let lines = wrapped(&text, width, indent);
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            prop_assert_eq!(words(&lines.join("\n")), words(&text));
            for line in &lines {
                prop_assert!(columns(line.trim_end()) <= width || words(line).len() <= 1, "{:?}", line);
            }
        }

        #[test]
        fn a_wrapped_text_fits_and_loses_nothing(text in " {0,3}([a-zé漢🙂]{0,9}[ \n]?){0,9}", width in 2..12usize) {
            let wrapped = wrapped_text(&text, width);
            prop_assert!(wrapped.lines().all(|line| columns(line.trim_end()) <= width), "{wrapped}");
            let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(letters(&wrapped), letters(&text));
            let breaks = |text: &str| text.matches('\n').count();
            prop_assert!(breaks(&wrapped) >= breaks(&text));
        }
    }

    #[test]
    fn wide_and_narrow_characters_are_counted_as_a_terminal_does() {
        for (line, width) in
            [("", 0), ("abc", 3), ("漢字", 4), ("e\u{301}", 1), ("🙂", 2), ("❤\u{fe0f}", 2), ("🙂\u{fe0f}", 2)]
        {
            assert_eq!(columns(line), width, "{line}");
        }
    }
}
