//! Parses arguments for `claude`.
//!
//! Claude Code's rules for whether the word after an option is its value differ from option to option. They are applied once,
//! here.

use crate::claude::options::known::{self, Takes};
use crate::core::agent::claude_args::{ClaudeArgs, Pair, is_name, number};

/// Why arguments for `claude` are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadArgument {
    /// It would be a second prompt.
    #[error("{0} is not an option of claude")]
    Positional(String),
    /// After some options, Claude Code takes every word for a value, even a mistyped one. agent-cli takes one value per option.
    #[error("{word} is neither an option of claude nor a value of {option}")]
    Trailing { option: String, word: String },
    /// The word after it may be a value or a prompt: only that release of Claude Code knows.
    #[error("agent-cli does not know {option}, and cannot tell whether {word} is its value")]
    Unjoined { option: String, word: String },
    #[error("{0} needs a value")]
    NoValue(String),
    #[error("{0} takes no value")]
    TakesNoValue(String),
    /// Its value has the wrong type.
    #[error("{option} takes a number, not {value}")]
    NotANumber { option: String, value: String },
    /// Short options may be joined to each other and to values; only known ones can be separated.
    #[error("{0} is not an option of claude that agent-cli knows")]
    UnknownShort(String),
    /// agent-cli sets this argument itself.
    #[error("agent-cli sets {0} itself")]
    Reserved(String),
    /// `agent-cli` has an option for it, which is recorded.
    #[error("{0} is an option of agent-cli too: give it before the --")]
    HasOption(String),
}

/// The options that a user wants to pass to `claude`.
pub(crate) fn parse<S: AsRef<str>>(words: &[S]) -> Result<ClaudeArgs, BadArgument> {
    let mut pairs: Vec<Pair> = Vec::new();
    let mut words = words.iter().map(AsRef::as_ref).peekable();
    while let Some(word) = words.next() {
        if !is_dashed(word) || word == "--" {
            return Err(no_option(word, pairs.pop()));
        }
        let (name, mut value) = split(word)?;
        let takes = known::takes(&name);
        if value.is_none() && takes.is_some_and(|takes| takes.takes_next(words.peek().copied())) {
            value = words.next().map(str::to_owned);
        }
        pairs.push(checked(Pair { name, value }, takes)?);
    }
    Ok(pairs.into())
}

/// Why a word that is not an option is refused after `before`.
fn no_option(word: &str, before: Option<Pair>) -> BadArgument {
    let word = word.to_owned();
    match before.map(|pair| (known::takes(&pair.name), pair)) {
        Some((None, Pair { name, value: None })) => BadArgument::Unjoined { option: name, word },
        Some((Some(Takes::Several), pair)) => BadArgument::Trailing { option: pair.name, word },
        _ => BadArgument::Positional(word),
    }
}

fn checked(pair: Pair, takes: Option<Takes>) -> Result<Pair, BadArgument> {
    let Pair { name, value } = &pair;
    if known::is_own(name) {
        return Err(BadArgument::HasOption(pair.name));
    }
    if known::is_reserved(name) {
        return Err(BadArgument::Reserved(pair.name));
    }
    match (takes, value) {
        (Some(Takes::Nothing), Some(_)) => Err(BadArgument::TakesNoValue(pair.name)),
        (Some(Takes::Value | Takes::Several), None) => Err(BadArgument::NoValue(pair.name)),
        (_, Some(value)) if known::is_number(name) && number(value).is_none() => {
            Err(BadArgument::NotANumber { option: name.clone(), value: value.clone() })
        }
        _ => Ok(pair),
    }
}

/// Whether Claude Code takes a word for an option. A single dash is not one.
fn is_dashed(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

/// The option that a word names, by its canonical name, and the value joined to it.
fn split(word: &str) -> Result<(String, Option<String>), BadArgument> {
    if !word.starts_with("--") {
        let (name, joined) = known::split_short(word).ok_or_else(|| BadArgument::UnknownShort(word.to_owned()))?;
        return Ok((name.to_owned(), joined.map(str::to_owned)));
    }
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (word, None),
    };
    if !is_name(name) {
        return Err(BadArgument::Positional(word.to_owned()));
    }
    Ok((known::canonical(name).to_owned(), value))
}

/// The options of a command line, as Claude Code reads them.
#[cfg(test)]
pub(crate) fn as_claude_reads(words: &[String]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let mut words = words.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        let Ok((name, mut value)) = split(word) else { continue };
        let takes_next = known::takes(&name).is_some_and(|takes| takes.takes_next(words.peek().copied()));
        if value.is_none() && takes_next {
            value = words.next().map(str::to_owned);
        }
        pairs.push(Pair { name, value });
    }
    pairs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(args: &[&str]) -> Result<Vec<String>, BadArgument> {
        parse(args).map(|args| args.words())
    }

    #[test]
    fn each_option_is_one_word() {
        for (args, expected) in [
            (&["--max-turns", "9", "--effort=low"][..], &["--max-turns=9", "--effort=low"][..]),
            (&["--verbose", "--debug", "--strict-mcp-config"], &["--verbose", "--debug", "--strict-mcp-config"]),
            (&["--debug", "hooks", "-dapi", "-d"], &["--debug=hooks", "--debug=api", "--debug"]),
            (&["-n", "a name", "-nX", "-d2e"], &["--name=a name", "--name=X", "--debug-to-stderr"]),
            (
                &["--allowed-tools", "Bash", "--disallowed-tools=Edit"],
                &["--allowedTools=Bash", "--disallowedTools=Edit"],
            ),
            (&["--tools=", "--append-system-prompt", "- be brief"], &["--tools=", "--append-system-prompt=- be brief"]),
            (&["--next-year", "--of-next-year=x"], &["--next-year", "--of-next-year=x"]),
            (&["--append-system-prompt", "--settings={}"], &["--append-system-prompt=--settings={}"]),
        ] {
            assert_eq!(words(args).unwrap(), expected, "{args:?}");
        }
    }

    #[test]
    fn what_is_no_option_is_refused_wherever_it_stands() {
        use BadArgument::{NoValue, Positional, Reserved, TakesNoValue, Trailing, Unjoined, UnknownShort};
        let trailing = |option: &str| Trailing { option: option.into(), word: "b.md".into() };
        for (args, expected) in [
            (&["b.md"][..], Positional("b.md".into())),
            (&["-"], Positional("-".into())),
            (&["--"], Positional("--".into())),
            (&["---x"], Positional("---x".into())),
            (&["--a b=c"], Positional("--a b=c".into())),
            (&["--max-turns", "9", "b.md"], Positional("b.md".into())),
            (&["--verbose", "b.md"], Positional("b.md".into())),
            (&["--allowedTools", "Bash", "b.md"], trailing("--allowedTools")),
            (&["--allowedTools=Bash", "b.md"], trailing("--allowedTools")),
            (&["--next-year=x", "b.md"], Positional("b.md".into())),
            (&["--next-year", "b.md"], Unjoined { option: "--next-year".into(), word: "b.md".into() }),
            (&["--max-turns"], NoValue("--max-turns".into())),
            (&["--verbose=1"], TakesNoValue("--verbose".into())),
            (&["-x"], UnknownShort("-x".into())),
            (&["-pc"], Reserved("--print".into())),
            (&["--bg"], Reserved("--bg".into())),
        ] {
            assert_eq!(words(args), Err(expected), "{args:?}");
        }
        assert!(matches!(words(&["--max-turns", "nope"]), Err(BadArgument::NotANumber { .. })));
    }

    #[test]
    fn arguments_that_agent_cli_sets_are_refused() {
        for arg in ["--resume", "--session-id=x", "-p", "-rID", "-pc", "--output-format=json", "--bg"] {
            assert!(matches!(words(&[arg]), Err(BadArgument::Reserved(_))), "{arg}");
        }
        for arg in ["--model=opus", "--permission-mode=plan", "-w", "--worktree=x"] {
            assert!(matches!(words(&[arg]), Err(BadArgument::HasOption(_))), "{arg}");
        }
    }

    /// Words of all shapes: options with and without values, values that look like options, stray words.
    fn any_words() -> impl Strategy<Value = Vec<String>> {
        let options = "--(settings|allowedTools|append-system-prompt|verbose|debug|effort|next|a-b)";
        let word = prop_oneof![
            options.prop_map(|option| option),
            (options, "(=\\PC{0,6})").prop_map(|(option, value)| option + &value),
            "-{0,3}\\PC{0,6}",
            Just("--settings={}".to_owned()),
            Just("--dangerously-skip-permissions".to_owned()),
        ];
        prop::collection::vec(word, 0..6)
    }

    proptest! {
        #[test]
        fn what_is_given_to_claude_is_read_as_it_was_meant(list in any_words()) {
            if let Ok(args) = parse(&list) {
                prop_assert_eq!(parse(&args.words()), Ok(args.clone()));
                prop_assert_eq!(ClaudeArgs::from(args.words()), args);
            }
        }
    }
}
