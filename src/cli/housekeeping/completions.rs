//! `agent-cli completions`: prints shell completions.

use std::ffi::OsString;
use std::path::Path;

use clap::{Arg, Args, Command};
use clap_complete::Shell;
use clap_complete::env::{CompleteEnv, Shells};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::print;

/// A completion script sets this variable.
const VARIABLE: &str = "AGENT_CLI_COMPLETE";
const PROGRAM: &str = "agent-cli";
/// The script for bash sets this variable to the first character of the word as it was typed.
const QUOTE: &str = "AGENT_CLI_COMPLETE_QUOTE";

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Example, for ~/.bashrc:
  eval \"$(agent-cli completions bash)\"")]
pub(crate) struct Completions {
    /// The shell [default: that of $SHELL]
    shell: Option<Shell>,
}

impl Completions {
    pub(crate) fn run(self, _: &Context) -> Result<ExitStatus, CliError> {
        let unnamed = || CliError::usage("no shell was given, and $SHELL names none that is known");
        let named = self.shell.or_else(Shell::from_env);
        let name = named.ok_or_else(|| unnamed().hint("agent-cli completions bash"))?.to_string();
        let unknown = || CliError::usage(format!("no completions for {name}"));
        let shells = Shells::builtins();
        let shell = shells.completer(&name).ok_or_else(unknown)?;
        let mut script = Vec::new();
        let written = shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script);
        written.map_err(|error| CliError::failed(format!("the script cannot be written: {error}")))?;
        let script = String::from_utf8_lossy(&script);
        // Bash passes a word without the quote that it begins with.
        let quote = format!("{QUOTE}=\"${{COMP_WORDS[COMP_CWORD]:0:1}}\" \\\n        _CLAP_IFS=");
        print(&if name == "bash" { script.replacen("_CLAP_IFS=", &quote, 1) } else { script.into_owned() })?;
        Ok(ExitStatus::Ok)
    }
}

/// Prints completions if a script requests them, and returns whether it did. `program` describes the whole command line.
pub(crate) fn complete(program: impl Fn() -> Command, arguments: &[OsString]) -> bool {
    let Some(shell) = std::env::var_os(VARIABLE) else { return false };
    let here = std::env::current_dir().ok();
    let mut words: Vec<_> = arguments.iter().skip_while(|word| *word != "--").skip(1).cloned().collect();
    let shells = Shells::builtins();
    let shell = Path::new(&shell).file_stem().and_then(|name| shells.completer(&name.to_string_lossy()));
    if let Some(shell) = shell.filter(|_| !words.is_empty()) {
        // Bash passes words as they were typed, and inserts candidates as they are.
        let is_bash = shell.name() == "bash";
        let quote = std::env::var(QUOTE).ok().and_then(|first| first.chars().next());
        if is_bash && quote != Some('\'') {
            words.iter_mut().for_each(|word| *word = without_backslashes(word));
        }
        let mut command = program();
        let takes_id = names_an_id(&command, &words);
        command.build();
        let mut offered = Vec::new();
        // Shells do not show errors of completions.
        let _ = shell.write_complete(&mut command, words, here.as_deref(), &mut offered);
        let offered = String::from_utf8_lossy(&offered);
        let between = std::env::var("_CLAP_IFS").ok().filter(|between| !between.is_empty());
        let between = between.as_deref().unwrap_or("\n");
        let candidates = offered.split(between).filter(|word| !takes_id || !word.starts_with('-'));
        let candidates = candidates.map(|word| if is_bash { with_backslashes(word, quote) } else { word.to_owned() });
        let _ = print(&candidates.collect::<Vec<_>>().join(between));
        return true;
    }
    CompleteEnv::with_factory(program)
        .var(VARIABLE)
        .bin(PROGRAM)
        .try_complete(arguments, here.as_deref())
        .unwrap_or(true)
}

/// A word with a backslash before each character that means something to a shell: the name of a file must not become a command.
/// A space at its end separates it from the next one. `quote` is the first character of the word that is completed.
fn with_backslashes(word: &str, quote: Option<char>) -> String {
    let (word, space) = word.strip_suffix(' ').map_or((word, ""), |word| (word, " "));
    if quote == Some('\'') {
        // Only a quote means anything there. It cannot be escaped: the text ends before it and begins again behind it.
        return word.replace('\'', r"'\''") + space;
    }
    let is_plain = |c: char| match quote {
        Some('"') => !"\"\\$`!".contains(c),
        _ => c.is_alphanumeric() || "-_./,:=@%+~".contains(c),
    };
    let escaped: String = word.chars().flat_map(|c| [(!is_plain(c)).then_some('\\'), Some(c)]).flatten().collect();
    escaped + space
}

fn without_backslashes(word: &OsString) -> OsString {
    let Some(text) = word.to_str() else { return word.clone() };
    let mut escapes_next = false;
    let plain = text.chars().filter(|c| {
        escapes_next = *c == '\\' && !escapes_next;
        !escapes_next
    });
    plain.collect::<String>().into()
}

/// Whether to complete an id and not an option. Without ids to offer, a shell would insert `--`, the common beginning of all
/// options.
fn names_an_id(program: &Command, words: &[OsString]) -> bool {
    let index = std::env::var("_CLAP_COMPLETE_INDEX").ok().and_then(|index| index.parse::<usize>().ok());
    let word = words.get(index.unwrap_or(words.len().saturating_sub(1)));
    let command = words.get(1).and_then(|name| program.find_subcommand(name));
    let is_id = |argument: &Arg| ["id", "ids"].contains(&argument.get_id().as_str());
    let takes_one = command.is_some_and(|command| command.get_positionals().any(is_id));
    takes_one && word.is_none_or(|word| !word.to_string_lossy().starts_with('-'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever a word contains, a shell sees it as one word without commands.
        #[test]
        fn no_character_of_a_word_means_anything_to_a_shell(word in "[^ ]*|[ -~]{0,12}[!-~]") {
            let escaped = with_backslashes(&word, None);
            let mut rest = escaped.chars();
            while let Some(c) = rest.next() {
                let is_plain = c.is_alphanumeric() || "-_./,:=@%+~".contains(c);
                prop_assert!(is_plain || c == '\\' && rest.next().is_some(), "{escaped}");
            }
            prop_assert_eq!(without_backslashes(&escaped.into()), OsString::from(word.clone()));
            let quoted = with_backslashes(&word, Some('\''));
            prop_assert_eq!(quoted.replace(r"'\''", "").matches('\'').count(), 0, "{}", quoted);
        }
    }
}
