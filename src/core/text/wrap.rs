//! Breaking long lines between words.

use crate::core::text::columns::of_each;

/// A line of escaped text as lines of at most `width` columns, broken at blanks. Those after the first are indented by `indent`
/// blanks. A word that is wider stays whole: it may be a path or a command.
pub(crate) fn wrapped(line: &str, width: usize, indent: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = line;
    loop {
        let before = if lines.is_empty() { 0 } else { indent };
        let Some(end) = end_of_line(rest, width.saturating_sub(before)) else {
            lines.push(format!("{}{rest}", " ".repeat(before)));
            return lines;
        };
        lines.push(format!("{}{}", " ".repeat(before), rest[..end].trim_end()));
        rest = rest[end..].trim_start();
    }
}

/// Where the first line ends, if the text does not fit on it.
fn end_of_line(text: &str, width: usize) -> Option<usize> {
    let (mut column, mut last_blank, mut has_word) = (0, None, false);
    for (at, c, columns) in of_each(text) {
        column += columns;
        if c == ' ' && has_word {
            last_blank = Some(at);
        }
        has_word |= c != ' ';
        if column > width && last_blank.is_some() {
            break;
        }
    }
    last_blank.filter(|blank| column > width && !text[*blank..].trim().is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::core::text::columns::columns;

    #[test]
    fn a_line_is_broken_between_words() {
        assert_eq!(wrapped("one two three", 7, 2), ["one two", "  three"]);
        assert_eq!(wrapped("one two three", 80, 2), ["one two three"]);
        assert_eq!(wrapped("  one two", 6, 2), ["  one", "  two"]);
        assert_eq!(wrapped("a /a/path/that/is/long b", 8, 2), ["a", "  /a/path/that/is/long", "  b"]);
        assert_eq!(wrapped("漢字 漢字 漢字", 9, 0), ["漢字 漢字", "漢字"]);
        assert_eq!(wrapped("", 0, 2), [""]);
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
    }
}
