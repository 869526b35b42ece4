//! How many columns of a terminal a text occupies.

use unicode_width::UnicodeWidthChar;

/// The characters of a line, where each begins, and how many columns it occupies.
///
/// Terminals differ in whether they join the characters of one emoji. Counting them one by one, a line is never wider than this
/// says.
pub(crate) fn of_each(line: &str) -> impl Iterator<Item = (usize, char, usize)> {
    let mut before = 0;
    line.char_indices().map(move |(at, c)| {
        let own = c.width().unwrap_or(0);
        // This character asks for the wide form of the one before it.
        let columns = if c == '\u{fe0f}' { usize::from(before == 1) } else { own };
        before = own;
        (at, c, columns)
    })
}

pub(crate) fn columns(line: &str) -> usize {
    of_each(line).map(|(_, _, columns)| columns).sum()
}

/// `text` with line breaks, between words where there are some, so that no line is wider than `width`.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let width = width.max(2);
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (mut taken, mut begins, mut gap) = (0, 0, None);
        for (at, c, columns) in of_each(line) {
            // A blank at the end of a line is not seen.
            if c != ' ' && taken + columns > width {
                let end = gap.unwrap_or(at);
                out.push_str(line[begins..end].trim_end_matches(' '));
                out.push('\n');
                begins = end + usize::from(gap.take().is_some());
                taken = self::columns(&line[begins..at]);
            }
            if c == ' ' && at > begins {
                gap = Some(at);
            }
            taken += columns;
        }
        out.push_str(&line[begins..]);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        for (text, width, expected) in [
            ("one two three", 7, "one two\nthree"),
            ("one two three\n", 20, "one two three\n"),
            ("one two\nthree four", 5, "one\ntwo\nthree\nfour"),
            ("abcdefgh ij", 3, "abc\ndef\ngh\nij"),
            ("漢字漢字", 5, "漢字\n漢字"),
            ("", 5, ""),
        ] {
            assert_eq!(wrapped(text, width), expected, "{text} in {width}");
        }
    }

    proptest! {
        #[test]
        fn a_wrapped_text_fits_and_loses_nothing(text in "([a-zé漢🙂]{0,9}[ \n]?){0,9}", width in 2..12usize) {
            let wrapped = wrapped(&text, width);
            prop_assert!(wrapped.lines().all(|line| columns(line.trim_end()) <= width), "{wrapped}");
            let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(letters(&wrapped), letters(&text));
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
