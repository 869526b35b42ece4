//! The words of a shell command, as far as they can be known without running a shell.
//!
//! Agents write commands for their user's shell: `sh`, bash or zsh. If these would read a command differently, or need to know
//! more than the working directory and the home directory, it is not parsed: a wrong guess would record a different question than
//! the one that the agent asked.

use std::path::Path;
use std::str::Chars;

/// What a shell knows about the place where the command runs.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// `$PWD`.
    pub pwd: &'a str,
    /// `$HOME`.
    pub home: &'a str,
}

/// The words of one simple command. `None` if `command` is anything else, or if its words are not certain.
#[must_use]
pub(crate) fn split<'a>(command: &'a str, surroundings: &Surroundings<'a>) -> Option<Vec<String>> {
    if command.contains(UNSURE) {
        return None;
    }
    let mut reader = Reader { rest: command.chars(), surroundings: *surroundings, words: Vec::new(), word: None };
    reader.command()?;
    (!reader.words.is_empty()).then_some(reader.words)
}

/// Quotes `word` so that every shell reads it as this one word.
#[must_use]
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A word of a command that a person may paste: quoted if a shell would read it otherwise.
#[must_use]
pub(crate) fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) { word.to_owned() } else { quoted(word) }
}

/// The same of a path.
#[must_use]
pub(crate) fn shell_path(path: &Path) -> String {
    shell_word(&path.display().to_string())
}

/// A command that runs in `directory`, an absolute path, and leaves the shell there. If the directory cannot be entered, the
/// command runs anyway. A function named `cd` in the user's shell is bypassed, and what the shell prints about the new directory
/// is dropped.
#[must_use]
pub(crate) fn going_to(directory: &Path, command: &str) -> String {
    format!("builtin cd {} >/dev/null 2>&1; {command}", quoted(&directory.display().to_string()))
}

/// The same for a command that must not run anywhere else.
#[must_use]
pub(crate) fn only_in(directory: &Path, command: &str) -> String {
    // The command on the following lines may contain anything, including comments and here-documents.
    format!("builtin cd {} >/dev/null || exit\n{command}", quoted(&directory.display().to_string()))
}

/// No argument can contain the first. Bash uses the others to mark positions in its own copy of a word, and some versions of it
/// lose them.
const UNSURE: [char; 3] = ['\0', '\u{1}', '\u{7f}'];

struct Reader<'a> {
    rest: Chars<'a>,
    surroundings: Surroundings<'a>,
    words: Vec<String>,
    /// The word that is being read. `None` between words, because a word may be empty.
    word: Option<String>,
}

impl<'a> Reader<'a> {
    fn command(&mut self) -> Option<()> {
        let mut over = false;
        while let Some(next) = self.rest.next() {
            match next {
                ' ' | '\t' => self.end_word(),
                '\n' => {
                    self.end_word();
                    // Empty lines around a command mean nothing; a line after it is another command.
                    over = !self.words.is_empty();
                }
                _ if over => return None,
                _ => self.part(next)?,
            }
        }
        self.end_word();
        Some(())
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    /// One character, or one quoted part, of a word.
    fn part(&mut self, first: char) -> Option<()> {
        match first {
            '\'' => self.single_quoted(),
            '"' => self.double_quoted(),
            '$' => self.dollar(false),
            '\\' => {
                let escaped = self.rest.next()?;
                // A continued line is one line, even in the middle of a word.
                if escaped != '\n' {
                    self.push(escaped);
                }
                Some(())
            }
            '~' if self.word.is_none() && self.rest.as_str().starts_with(['/', ' ', '\t', '\n']) => self.home(),
            '~' if self.word.is_none() && self.rest.as_str().is_empty() => self.home(),
            // In zsh, `=ls` is the path of ls.
            '=' if self.word.is_none() => None,
            _ if is_plain(first) => {
                self.push(first);
                Some(())
            }
            _ => None,
        }
    }

    fn single_quoted(&mut self) -> Option<()> {
        let (inside, after) = self.rest.as_str().split_once('\'')?;
        self.push_str(inside);
        self.rest = after.chars();
        Some(())
    }

    fn double_quoted(&mut self) -> Option<()> {
        self.push_str("");
        loop {
            match self.rest.next()? {
                '"' => return Some(()),
                '`' => return None,
                '$' => self.dollar(true)?,
                '\\' => match self.rest.next()? {
                    '\n' => {}
                    escaped @ ('$' | '`' | '"' | '\\') => self.push(escaped),
                    other => {
                        self.push('\\');
                        self.push(other);
                    }
                },
                other => self.push(other),
            }
        }
    }

    /// What follows a `$`: one of the two variables, or nothing, in which case it is a plain dollar.
    fn dollar(&mut self, in_quotes: bool) -> Option<()> {
        let rest = self.rest.as_str();
        let (name, after) = match rest.strip_prefix('{') {
            Some(inside) => inside.split_once('}')?,
            None => rest.split_at(rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())),
        };
        if name.is_empty() {
            let mere = after.is_empty() || after.starts_with([' ', '\t', '\n', '.', ',', ';', ')']);
            let mere = mere || in_quotes && after.starts_with(['"', '\'']);
            return (rest.len() == after.len() && mere).then(|| self.push('$'));
        }
        let value = self.value(name)?;
        // A continued line would extend the name. In zsh so would a non-ASCII letter, a bracket would select a character of the
        // value, and a colon would modify it.
        if after.starts_with(|c: char| matches!(c, '\\' | '[' | ':') || !c.is_ascii()) {
            return None;
        }
        // Outside of quotes, a shell would split the value into words and look for matching files.
        if !in_quotes && !value.chars().all(is_plain) {
            return None;
        }
        self.push_str(value);
        self.rest = after.chars();
        Some(())
    }

    fn home(&mut self) -> Option<()> {
        let home = self.value("HOME")?;
        // Shells disagree on whether two adjacent slashes become one.
        if home.ends_with('/') {
            return None;
        }
        self.push_str(home);
        Some(())
    }

    /// A variable's value, if it is known.
    fn value(&self, name: &str) -> Option<&'a str> {
        let value = match name {
            "PWD" => self.surroundings.pwd,
            "HOME" => self.surroundings.home,
            _ => return None,
        };
        (!value.is_empty() && !value.contains(UNSURE)).then_some(value)
    }

    fn push(&mut self, character: char) {
        self.word.get_or_insert_default().push(character);
    }

    fn push_str(&mut self, text: &str) {
        self.word.get_or_insert_default().push_str(text);
    }
}

/// Whether every shell takes `character` literally, outside of quotes and inside of a word.
fn is_plain(character: char) -> bool {
    character.is_alphanumeric() || "_-./:,+@%=".contains(character)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HERE: Surroundings<'_> = Surroundings { pwd: "/srv/my project", home: "/home/dev" };

    fn words(command: &str) -> Option<Vec<String>> {
        split(command, &HERE)
    }

    #[test]
    fn words_are_split_as_a_shell_would() {
        let table: [(&str, &[&str]); 16] = [
            ("a  b\tc\n", &["a", "b", "c"]),
            ("\n  a b", &["a", "b"]),
            ("a 'b c' \"d e\" f\\ g", &["a", "b c", "d e", "f g"]),
            ("a '' \"\" b''c", &["a", "", "", "bc"]),
            ("a 'it'\\''s' \"it's\"", &["a", "it's", "it's"]),
            (r#"a "\$ \` \" \\ \n \'""#, &["a", r#"$ ` " \ \n \'"#]),
            (r"a 'x\ty' x\ty", &["a", r"x\ty", "xty"]),
            ("a b\\\nc \\\n d \"e\\\nf\" 'g\\\nh'", &["a", "bc", "d", "ef", "g\\\nh"]),
            (
                "a \"$PWD/x\" \"${HOME}/y\" $HOME/z ${HOME}",
                &["a", "/srv/my project/x", "/home/dev/y", "/home/dev/z", "/home/dev"],
            ),
            ("~/a ~ ~/'b c'", &["/home/dev/a", "/home/dev", "/home/dev/b c"]),
            ("a '~' \"~/b\" \\~", &["a", "~", "~/b", "~"]),
            ("a '$PWD `b` $(c) *'", &["a", "$PWD `b` $(c) *"]),
            ("a \"5$ or $, ('$')\" 5$", &["a", "5$ or $, ('$')", "5$"]),
            (
                "a \"Who's there? (a|b) & more; #1 !{x,y} *now* <z>\"",
                &["a", "Who's there? (a|b) & more; #1 !{x,y} *now* <z>"],
            ),
            ("a \"two\n\nlines\"", &["a", "two\n\nlines"]),
            ("a --x=y übung.md", &["a", "--x=y", "übung.md"]),
        ];
        for (command, expected) in table {
            assert_eq!(
                words(command).as_deref(),
                Some(&expected.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()[..]),
                "{command:?}"
            );
        }
    }

    #[test]
    fn what_needs_a_shell_has_no_words() {
        for command in [
            "",
            " \n",
            "a | b",
            "a; b",
            "a;",
            ";a",
            "a && b",
            "a || b",
            "a & b",
            "a&",
            "a\nb",
            "a\n\\\n",
            "(a)",
            "{ a; }",
            "! a",
            "a $(b)",
            "a `b`",
            "a \"`b`\"",
            "a \"$(b)\"",
            "a $b",
            "a \"$5\"",
            "a $PWDX",
            "a ${PWD:-x}",
            "a ${#HOME}",
            "a ${}",
            "a $((1))",
            "a $[1]",
            "a \"$$\"",
            "a $@",
            "a $'b'",
            "a $\"b\"",
            "a $PWD",
            "a \"$PWD\\\nX\"",
            "a \"$PWDé\"",
            "a \"$PWD[1]\"",
            "a \"$HOME:h\"",
            "a *",
            "a b?",
            "a [b]",
            "a {b,c}",
            "a >b",
            "a <b",
            "a <<b\nb\n",
            "a 2>&1",
            "a # b",
            "a b#c",
            "a !",
            "a ^b",
            "a 'b",
            "a \"b",
            "a b\\",
            "a \"b\\",
            "a ~b",
            "a ~+",
            "a ~\"\"/b",
            "a b~",
            "a --b=~/c",
            "a =b",
            "a \0",
            "a '\0'",
            "a\rb",
            "a \u{a0}b",
        ] {
            assert_eq!(words(command), None, "{command:?}");
        }
    }

    #[test]
    fn a_value_that_is_not_known_is_not_guessed() {
        let nowhere = Surroundings { pwd: "", home: "/" };
        assert_eq!(split("a \"$PWD\"", &nowhere), None);
        assert_eq!(split("~/a", &nowhere), None);
        assert_eq!(split("a $HOME", &nowhere), Some(vec!["a".to_owned(), "/".to_owned()]));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String, pwd: String, home: String) {
            let _ = split(&text, &Surroundings { pwd: &pwd, home: &home });
        }

        #[test]
        fn text_like_a_command_is_read(text in "[ab $PWDHOME{}~/'\"\\\\\n\t=*;|&()é]{0,40}") {
            let _ = words(&text);
        }

        #[test]
        fn quoted_words_come_back(list in prop::collection::vec("[^\u{0}\u{1}\u{7f}]*", 1..6)) {
            let command = list.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
            prop_assert_eq!(words(&command), Some(list));
        }
    }
}
