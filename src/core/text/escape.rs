//! Makes text of agents, files and APIs harmless for a terminal.
//!
//! Everything that reaches a terminal passes through here, because a terminal obeys what it receives: control characters move
//! the cursor, set the title or answer in the user's place, and format characters reorder or hide adjacent characters.
//! Characters that would not be shown as themselves are written as code points: `\u{202e}`.

use std::fmt::Write as _;

use unicode_properties::{GeneralCategory, UnicodeEmoji, UnicodeGeneralCategory};

/// Joins the emoji before and after it.
const JOINER: char = '\u{200d}';
/// Replaces a line break in a text on one line. A blank would hide where a command ends.
pub(crate) const BREAK: char = '⏎';

pub(crate) fn one_line(text: &str) -> String {
    escaped(text, |c, out| match c {
        '\n' => out.push(BREAK),
        '\t' => out.push_str("\\t"),
        _ => as_code(c, out),
    })
}

/// `text` with its own line breaks and tabs.
pub(crate) fn block(text: &str) -> String {
    escaped(text, |c, out| match c {
        '\n' | '\t' => out.push(c),
        _ => as_code(c, out),
    })
}

/// `text` with its own line breaks, in which nothing looks like something else: each line break is a Unix one, and each blank
/// an ordinary one that is followed by others. A blank at the end of a line cannot be seen, but `\\ ` does not continue a line
/// in a shell. For texts that a person approves.
pub(crate) fn exact(text: &str) -> String {
    exactly(text, |c| c == JOINER)
}

/// The same for prose, in which joined emoji stay whole.
pub(crate) fn exact_prose(text: &str) -> String {
    exactly(text, |_| false)
}

fn exactly(text: &str, is_named: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            out.push('\n');
        }
        let (mut at, seen) = (0, line.trim_end_matches(' ').len());
        for (c, _, is_shown) in characters(line) {
            let is_odd_blank = c.general_category() == GeneralCategory::SpaceSeparator && (c != ' ' || at >= seen);
            match c {
                '\t' => out.push_str("\\t"),
                _ if is_odd_blank || is_named(c) || !is_shown => as_code(c, &mut out),
                _ => out.push(c),
            }
            at += c.len_utf8();
        }
    }
    out
}

/// JSON with the same values. Characters that would not be shown can only occur in its strings, where JSON can escape them.
pub(crate) fn json(text: &str) -> String {
    escaped(text, |c, out| match c {
        '\n' => out.push(c),
        _ => out.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}"))),
    })
}

/// Whether a terminal shows all of `text` unchanged, on one line.
pub(crate) fn is_plain(text: &str) -> bool {
    characters(text).all(|(_, _, is_shown)| is_shown)
}

/// The characters of `text`, each with the next one, and whether a terminal shows it as itself.
fn characters(text: &str) -> impl Iterator<Item = (char, Option<char>, bool)> {
    let (mut before, mut base) = (None, None);
    let mut rest = text.chars().peekable();
    std::iter::from_fn(move || {
        let c = rest.next()?;
        let after = rest.peek().copied();
        let shown = is_shown(before, c, after) || joins(base, c, after);
        // The form of an emoji is a part of it.
        if !(c == '\u{fe0f}' && shown) {
            base = Some(c);
        }
        before = Some(c);
        Some((c, after, shown))
    })
}

/// `text` with `hidden` in place of each character that is not shown. The carriage return of a Windows line break has no
/// effect, and is dropped.
fn escaped(text: &str, mut hidden: impl FnMut(char, &mut String)) -> String {
    let mut out = String::with_capacity(text.len());
    for (c, after, is_shown) in characters(text) {
        if is_shown {
            out.push(c);
        } else if c != '\r' || after != Some('\n') {
            hidden(c, &mut out);
        }
    }
    out
}

fn as_code(c: char, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
}

/// Whether a terminal shows `c` as itself and does nothing else, between these two.
fn is_shown(before: Option<char>, c: char, after: Option<char>) -> bool {
    use GeneralCategory as Category;
    match c {
        ' '..='~' => true,
        // These two select how an emoji looks. Elsewhere they are invisible.
        '\u{fe0e}' | '\u{fe0f}' => before.is_some_and(|before| {
            let is_on_a_key = before.is_emoji_char() && after == Some('\u{20e3}');
            is_on_a_key || is_emoji(before)
        }),
        _ if is_invisible(c) => false,
        _ => !matches!(
            c.general_category(),
            Category::Control
                | Category::Format
                | Category::LineSeparator
                | Category::ParagraphSeparator
                | Category::Surrogate
                | Category::PrivateUse
                | Category::Unassigned
        ),
    }
}

/// Whether `c` makes one emoji of those before and after it, as in 👩‍💻. A terminal that does not join them shows both.
fn joins(before: Option<char>, c: char, after: Option<char>) -> bool {
    c == JOINER && before.is_some_and(is_emoji) && after.is_some_and(is_emoji)
}

fn is_emoji(c: char) -> bool {
    !c.is_ascii() && c.is_emoji_char()
}

/// Characters that Unicode calls ignorable by default and counts among letters or marks, and a blank that counts as a symbol.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{34f}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2800}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}')
}

/// `text` on one line, escaped and at most 120 characters long.
pub(crate) fn shortened(text: &str) -> String {
    const MOST: usize = 120;
    // Two more, because a joiner at the end would be escaped.
    let beginning: String = text.chars().take(MOST + 2).collect();
    let mut line = one_line(&beginning);
    if line.chars().count() > MOST {
        line = without_joiner(&line.chars().take(MOST - 1).collect::<String>()).to_owned();
        line.push('…');
    }
    line
}

/// The beginning of a text that was cut within a joined emoji, without the joiner that would follow it.
pub(crate) fn without_joiner(beginning: &str) -> &str {
    beginning.trim_end_matches(JOINER)
}

/// The beginning of a text without the emoji at its end that the next character belongs to.
pub(crate) fn before_joined(text: &str, next: char) -> &str {
    // The form of an emoji, and the colour of its skin.
    let is_modifier = |c: char| matches!(c, '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}');
    let without_one = |text: &str| {
        let base = text.strip_suffix(is_modifier).unwrap_or(text);
        base.strip_suffix(is_emoji).map(str::len)
    };
    let mut end = text.len();
    let mut belongs = is_modifier(next) || next == JOINER;
    loop {
        if belongs && let Some(before) = without_one(&text[..end]) {
            end = before;
        }
        let Some(joined) = text[..end].strip_suffix(JOINER) else { return &text[..end] };
        (end, belongs) = (joined.len(), true);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Characters that must never reach a terminal, and how they are shown.
    const HOSTILE: [(char, &str); 24] = [
        ('\0', "\\u{0}"),
        ('\u{7}', "\\u{7}"),
        ('\u{8}', "\\u{8}"),
        ('\u{b}', "\\u{b}"),
        ('\r', "\\u{d}"),
        ('\u{1b}', "\\u{1b}"),
        ('\u{7f}', "\\u{7f}"),
        ('\u{85}', "\\u{85}"),
        ('\u{9b}', "\\u{9b}"),
        ('\u{ad}', "\\u{ad}"),
        ('\u{34f}', "\\u{34f}"),
        ('\u{61c}', "\\u{61c}"),
        ('\u{200b}', "\\u{200b}"),
        ('\u{200d}', "\\u{200d}"),
        ('\u{200f}', "\\u{200f}"),
        ('\u{2028}', "\\u{2028}"),
        ('\u{202e}', "\\u{202e}"),
        ('\u{2060}', "\\u{2060}"),
        ('\u{2066}', "\\u{2066}"),
        ('\u{3164}', "\\u{3164}"),
        ('\u{e000}', "\\u{e000}"),
        ('\u{feff}', "\\u{feff}"),
        ('\u{e0041}', "\\u{e0041}"),
        ('\u{10ffff}', "\\u{10ffff}"),
    ];

    #[test]
    fn what_is_not_shown_is_named() {
        for (c, shown) in HOSTILE {
            let (text, expected) = (format!("a{c}b"), format!("a{shown}b"));
            assert_eq!([one_line(&text), block(&text)], [&*expected; 2].map(str::to_owned), "{c:?}");
            assert!(!is_plain(&text), "{c:?}");
        }
    }

    #[test]
    fn a_line_break_never_passes_for_a_blank() {
        assert_eq!(one_line("a\nb\r\nc\td"), "a⏎b⏎c\\td");
        assert_eq!(block("a\nb\r\nc\td\re"), "a\nb\nc\td\\u{d}e");
    }

    #[test]
    fn ordinary_text_is_shown_as_it_is() {
        for text in [
            "", "a b", "Größe – “x” …", "漢字かな", "e\u{301}", "עברית", "🙂 ✅ ❤\u{fe0f}",
            "1\u{fe0f}\u{20e3} #\u{fe0f}\u{20e3}", "a\u{a0}b",
        ] {
            assert_eq!([one_line(text), block(text)], [text; 2].map(str::to_owned));
            assert!(is_plain(text), "{text}");
        }
    }

    #[test]
    fn only_emoji_are_joined() {
        for text in ["👩\u{200d}💻", "❤\u{fe0f}\u{200d}🔥", "👩🏽\u{200d}🚀", "🏳\u{fe0f}\u{200d}🌈!"]
        {
            assert_eq!([one_line(text), block(text)], [text; 2].map(str::to_owned));
            assert!(is_plain(text) && exact(text).contains("\\u{200d}"), "what is approved is shown exactly");
            assert_eq!(exact_prose(text), text);
        }
        for (text, shown) in [
            ("👩\u{200d}", "👩\\u{200d}"),
            ("\u{200d}👩", "\\u{200d}👩"),
            ("👩\u{200d}x", "👩\\u{200d}x"),
            ("1\u{200d}👩", "1\\u{200d}👩"),
            ("👩\u{200d}\u{200d}👩", "👩\\u{200d}\\u{200d}👩"),
            ("a\u{fe0f}\u{200d}👩", "a\\u{fe0f}\\u{200d}👩"),
            ("1\u{fe0f}2", "1\\u{fe0f}2"),
            ("a\u{fe0f}\u{20e3}", "a\\u{fe0f}\u{20e3}"),
        ] {
            assert_eq!(one_line(text), shown);
            assert!(!is_plain(text), "{text:?}");
        }
    }

    #[test]
    fn what_is_approved_has_no_blank_but_the_ordinary_one() {
        assert_eq!(exact("true\u{a0}# \u{3000}x"), "true\\u{a0}# \\u{3000}x");
        assert_eq!(exact("a \\ \ntouch b\n  \n c"), "a \\\\u{20}\ntouch b\n\\u{20}\\u{20}\n c");
        for letter in ['a', '1', 'é'] {
            assert_eq!(exact(&format!("rm {letter}\u{fe0f}")), format!("rm {letter}\\u{{fe0f}}"));
        }
    }

    #[test]
    fn json_keeps_its_value() {
        for (c, _) in HOSTILE {
            let value = serde_json::json!({"a": [format!("x{c}y"), "\u{1f642}"]});
            let text = json(&value.to_string());
            assert!(is_plain(&text), "{text}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
        }
        assert_eq!(json("{\n  \"a\": \"\u{202e}\"\n}"), "{\n  \"a\": \"\\u202e\"\n}", "it stays on its lines");
    }

    #[test]
    fn a_long_line_has_120_characters_with_what_says_that_it_goes_on() {
        let long = "é".repeat(121);
        assert_eq!(shortened(&long), "é".repeat(119) + "…");
        assert_eq!(shortened(&long[..240]), long[..240]);
    }

    proptest! {
        #[test]
        fn nothing_else_comes_through(text: String) {
            for shown in [one_line(&text), block(&text).replace(['\n', '\t'], "")] {
                prop_assert!(is_plain(&shown), "{:?}", shown);
            }
            prop_assert_eq!(block(&block(&text)), block(&text));
        }
    }
}
