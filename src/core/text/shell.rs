//! The words of a shell command, as far as they can be known without running a shell.
//!
//! Agents write commands for their user's shell: `sh`, bash or zsh. If these would read a command differently, or need to know
//! more than the working directory and the home directory, it is not parsed: a wrong guess would record a different question than
//! the one that the agent asked.

use std::path::Path;
use std::str::Chars;

mod around;

use around::HereDocument;

/// What a shell knows about the place where the command runs.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// `$PWD`.
    pub pwd: &'a str,
    /// `$HOME`.
    pub home: &'a str,
}

/// One simple command, with its surroundings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Simple {
    pub words: Vec<String>,
    /// Where it runs, if a `cd` before it changes the directory. The directory must exist, and `CDPATH` must be unset.
    pub directory: Option<String>,
    /// Its standard input, if the command line provides it.
    pub input: Option<String>,
}

/// The one simple command that `command` runs. `None` if it is anything else, or if its words are not certain.
///
/// It may follow `cd DIR`, and be surrounded by parts that change neither its effect nor its visible output: comments,
/// redirections of standard error, and a here-document.
pub(crate) fn split(command: &str, surroundings: &Surroundings<'_>) -> Option<Simple> {
    if command.contains(UNSURE) {
        return None;
    }
    WordReader {
        rest: command.chars(),
        home: surroundings.home,
        pwd: surroundings.pwd.to_owned(),
        words: Vec::new(),
        word: None,
        input: None,
        here_document: None,
        redirected: false,
        found: Simple::default(),
    }
    .script()
}

/// Quotes `word` so that every shell reads it as this one word.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A word of a command that a person may paste: quoted if a shell would read it otherwise. In zsh, `=ls` is the path of ls.
pub(crate) fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && !word.starts_with('=') && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        quoted(word)
    }
}

/// The same for a path.
pub(crate) fn shell_path(path: &Path) -> String {
    shell_word(&path.display().to_string())
}

/// A command that runs in `directory`, an absolute path, and leaves the shell there. If the directory cannot be entered, the
/// command runs nevertheless. The shell's output about the new directory is dropped. `change`: how the shell changes its
/// directory. In plan mode, Claude Code runs no command that does so twice.
pub(crate) fn going_to(change: &str, directory: &Path, command: &str) -> String {
    format!("{change} {} >/dev/null 2>&1; {command}", quoted(&directory.display().to_string()))
}

/// A command that must not run anywhere but in `directory`. A function named `cd` in the user's shell is bypassed; shells that do
/// not know `builtin` know `command`.
pub(crate) fn only_in(directory: &Path, command: &str) -> String {
    let directory = quoted(&directory.display().to_string());
    // The command on the following lines may contain anything, including comments and here-documents.
    format!(
        "builtin cd {directory} >/dev/null 2>&1 || command cd {directory} >/dev/null\ntest . -ef {directory} || exit\n{command}"
    )
}

/// No argument can contain the first. Bash uses the others to mark positions in its own copy of a word, and some versions of it
/// lose them.
const UNSURE: [char; 3] = ['\0', '\u{1}', '\u{7f}'];

struct WordReader<'a> {
    rest: Chars<'a>,
    home: &'a str,
    /// Where the command that is being read runs.
    pwd: String,
    /// The words of the command that is being read.
    words: Vec<String>,
    /// The word that is being read. `None` between words, because a word may be empty.
    word: Option<String>,
    /// The standard input of the command that is being read.
    input: Option<String>,
    /// The here-document that begins on the next line.
    here_document: Option<HereDocument>,
    /// Whether the command that is being read has a redirection.
    redirected: bool,
    found: Simple,
}

impl WordReader<'_> {
    fn script(mut self) -> Option<Simple> {
        loop {
            if self.word.is_none() && (self.skip_comment() || self.redirection()?) {
                continue;
            }
            let Some(next) = self.rest.next() else { break };
            match next {
                ' ' | '\t' => self.end_word(),
                '\n' => {
                    self.end_word();
                    self.read_here_document()?;
                    // Empty lines mean nothing.
                    if !self.words.is_empty() || self.redirected {
                        self.end_command()?;
                    }
                }
                ';' => self.end_command()?,
                '&' if self.rest.as_str().starts_with('&') => {
                    self.rest.next();
                    self.end_command()?;
                    // Something follows, which would run after the command.
                    if !self.found.words.is_empty() {
                        return None;
                    }
                }
                _ => self.part(next)?,
            }
        }
        self.end_word();
        if !self.words.is_empty() || self.redirected {
            self.end_command()?;
        }
        (!self.found.words.is_empty()).then_some(self.found)
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
            // In zsh, `=ls` is the path of ls, also after empty quotes.
            '=' if self.word.as_ref().is_none_or(String::is_empty) => None,
            _ if is_plain(first) => {
                self.push(first);
                Some(())
            }
            _ => None,
        }
    }

    fn single_quoted(&mut self) -> Option<()> {
        let (inside, after) = self.rest.as_str().split_once('\'')?;
        // With the option RC_QUOTES of zsh, two quotes in a quoted part are one quote in the word.
        if after.starts_with('\'') {
            return None;
        }
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
        if rest.starts_with("(cat <<") && in_quotes {
            return self.text_of_cat();
        }
        let (name, after) = match rest.strip_prefix('{') {
            Some(inside) => inside.split_once('}')?,
            None => rest.split_at(rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())),
        };
        if name.is_empty() {
            let mere = after.is_empty() || after.starts_with([' ', '\t', '\n', '.', ',', ';', ')']);
            let mere = mere || in_quotes && after.starts_with(['"', '\'']);
            return (rest.len() == after.len() && mere).then(|| self.push('$'));
        }
        let value = self.value(name)?.to_owned();
        // A continued line would extend the name. In zsh so would a non-ASCII letter, a bracket would select a character of the
        // value, and a colon would modify it.
        if after.starts_with(|c: char| matches!(c, '\\' | '[' | ':') || !c.is_ascii()) {
            return None;
        }
        // Outside of quotes, a shell would split the value into words and look for matching files.
        if !in_quotes && !value.chars().all(is_plain) {
            return None;
        }
        self.push_str(&value);
        self.rest = after.chars();
        Some(())
    }

    fn home(&mut self) -> Option<()> {
        let home = self.value("HOME")?.to_owned();
        // Shells disagree on whether two adjacent slashes become one.
        if home.ends_with('/') {
            return None;
        }
        self.push_str(&home);
        Some(())
    }

    /// A variable's value, if it is known.
    fn value(&self, name: &str) -> Option<&str> {
        let value = match name {
            "PWD" => self.pwd.as_str(),
            "HOME" => self.home,
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
mod tests;
