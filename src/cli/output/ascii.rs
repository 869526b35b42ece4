//! What the program draws, on a terminal that is not in UTF-8. Letters stay as they are: nothing in ASCII says the same.

use std::borrow::Cow;
use std::env;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

/// Each sign, and what is shown in its place. Both take one column, so that nothing moves.
const SIGNS: [(char, char); 12] = [
    ('│', '|'),
    ('┆', ':'),
    ('├', '|'),
    ('└', '`'),
    ('─', '-'),
    ('…', '~'),
    ('⏎', '$'),
    ('→', '>'),
    ('≥', '>'),
    ('−', '-'),
    ('×', 'x'),
    ('·', '-'),
];

/// A text for a stream, which may be a terminal.
pub(super) fn for_stream(stream: &impl IsTerminal, text: String) -> String {
    if stream.is_terminal() { for_terminal(&text).into_owned() } else { text }
}

/// A text for a terminal.
pub(super) fn for_terminal(text: &str) -> Cow<'_, str> {
    static IS_NEEDED: OnceLock<bool> = OnceLock::new();
    let variables = ["LC_ALL", "LC_CTYPE", "LANG"];
    if *IS_NEEDED.get_or_init(|| !is_utf8(variables.iter().filter_map(|name| env::var(name).ok()))) {
        in_ascii(text).into()
    } else {
        text.into()
    }
}

/// Whether the terminal shows UTF-8, from the values of the variables in which the C library looks for an encoding. Containers and remote
/// shells often have none of these variables, but today's terminals.
fn is_utf8(values: impl IntoIterator<Item = String>) -> bool {
    let set = values.into_iter().find(|value| !value.is_empty());
    set.is_none_or(|value| value.to_ascii_lowercase().replace('-', "").contains("utf8"))
}

fn in_ascii(text: &str) -> String {
    let shown = |sign: char| SIGNS.iter().find(|(other, _)| *other == sign).map_or(sign, |(_, shown)| *shown);
    text.chars().map(shown).collect()
}

/// A terminal to which another library writes, a whole text at a time.
#[derive(Debug)]
pub(super) struct ForTerminal<W>(pub(super) W);

impl<W: Write> Write for ForTerminal<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match str::from_utf8(bytes) {
            Ok(text) => self.0.write_all(for_terminal(text).as_bytes())?,
            Err(_) => self.0.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_tells_the_encoding() {
        let is_utf8 = |values: [&str; 3]| is_utf8(values.map(str::to_owned));
        for utf8 in [["", "", ""], ["", "", "de_DE.UTF-8"], ["C.utf8", "C", "C"], ["", "UTF-8", "C"]] {
            assert!(is_utf8(utf8), "{utf8:?}");
        }
        for other in [["", "", "C"], ["POSIX", "", "de_DE.UTF-8"], ["", "de_DE.ISO-8859-1", "C.UTF-8"]] {
            assert!(!is_utf8(other), "{other:?}");
        }
    }

    #[test]
    fn only_signs_of_the_program_change() {
        assert_eq!(in_ascii("└─ a…\n  │  für 漢"), "`- a~\n  |  für 漢");
        assert!(SIGNS.iter().all(|(_, shown)| shown.is_ascii()));
    }
}
