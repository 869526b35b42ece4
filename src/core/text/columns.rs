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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_and_narrow_characters_are_counted_as_a_terminal_does() {
        for (line, width) in
            [("", 0), ("abc", 3), ("漢字", 4), ("e\u{301}", 1), ("🙂", 2), ("❤\u{fe0f}", 2), ("🙂\u{fe0f}", 2)]
        {
            assert_eq!(columns(line), width, "{line}");
        }
    }
}
