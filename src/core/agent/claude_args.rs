//! A person's or an agent's arguments for `claude`, parsed once: options, each with its value.
//!
//! Claude Code takes the word behind an option for its value, or for another option, by rules that differ from option to
//! option. Two readers of the same words can disagree, and a rule that is checked by one of them protects nothing.
//! Whatever is decided about an argument is therefore decided about a pair, and a pair is given to `claude` as one word,
//! `--option=value`, which can be read in one way only.

use serde::{Deserialize, Serialize};

use crate::core::agent::claude_options::{self as options, Takes};

/// One option, and the value that it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pair {
    /// The one name that stands for all spellings of the option, with its dashes.
    name: String,
    value: Option<String>,
}

/// Options for `claude`, in the order in which they were given. One may be given several times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub struct ClaudeArgs(Vec<Pair>);

/// Why arguments for `claude` are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadArgument {
    /// It would be a prompt of its own.
    #[error("{0} is not an option of claude")]
    Positional(String),
    /// Claude Code takes all words behind some options for values, a mistyped one, too. Here each value is given by itself.
    #[error("{word} is not an option of claude, and not a value of {option}")]
    Trailing {
        /// The option before it.
        option: String,
        /// The word.
        word: String,
    },
    /// The word behind it may be a value or a prompt: only that release of Claude Code knows which.
    #[error("agent-cli does not know {option}, and cannot tell whether {word} is its value")]
    Unjoined {
        /// The option.
        option: String,
        /// The word.
        word: String,
    },
    /// Nothing follows it.
    #[error("{0} needs a value")]
    NoValue(String),
    /// It is a switch.
    #[error("{0} takes no value")]
    TakesNoValue(String),
    /// Its value is of another kind.
    #[error("{value} is not a number, and {option} takes one")]
    NotANumber {
        /// The option.
        option: String,
        /// What it was given.
        value: String,
    },
    /// Short names may be joined to each other and to values, and only those that are known can be taken apart.
    #[error("{0} is not an option of claude that agent-cli knows")]
    UnknownShort(String),
    /// The program sets that argument itself.
    #[error("agent-cli gives {0} to claude itself")]
    Reserved(String),
    /// There is an option of `agent-cli` for it, which is recorded.
    #[error("{0} is an option of agent-cli too: give it before the --")]
    HasOption(String),
}

impl ClaudeArgs {
    /// The options that somebody wants to pass to `claude`.
    ///
    /// # Errors
    ///
    /// [`BadArgument`] where the words could be read in two ways, or `agent-cli` decides about an option itself.
    pub fn parse<S: AsRef<str>>(words: &[S]) -> Result<Self, BadArgument> {
        let mut pairs: Vec<Pair> = Vec::new();
        let mut words = words.iter().map(AsRef::as_ref).peekable();
        while let Some(word) = words.next() {
            if !is_dashed(word) || word == "--" {
                let word = word.to_owned();
                return Err(match pairs.pop().map(|pair| (options::takes(&pair.name), pair)) {
                    Some((None, Pair { name, value: None })) => BadArgument::Unjoined { option: name, word },
                    Some((Some(Takes::Several), pair)) => BadArgument::Trailing { option: pair.name, word },
                    _ => BadArgument::Positional(word),
                });
            }
            let (name, mut value) = split(word)?;
            if options::is_own(&name) {
                return Err(BadArgument::HasOption(name));
            }
            if options::is_reserved(&name) {
                return Err(BadArgument::Reserved(name));
            }
            let takes = options::takes(&name);
            if value.is_none() && takes.is_some_and(|takes| takes.takes_next(words.peek().copied())) {
                value = words.next().map(str::to_owned);
            }
            match (takes, &value) {
                (Some(Takes::Nothing), Some(_)) => return Err(BadArgument::TakesNoValue(name)),
                (Some(Takes::Value | Takes::Several), None) => return Err(BadArgument::NoValue(name)),
                _ => {}
            }
            let pair = Pair { name, value };
            pair.check()?;
            pairs.push(pair);
        }
        Ok(Self(pairs))
    }

    /// One option without a value.
    pub(crate) fn switch(name: &str) -> Self {
        Self(vec![Pair { name: name.to_owned(), value: None }])
    }

    /// The same list as words for `claude`, one an option.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        self.0.iter().map(Pair::word).collect()
    }

    /// The options with their values.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.0.iter().map(|pair| (pair.name.as_str(), pair.value.as_deref()))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this option is given.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|pair| pair.name == name)
    }

    /// The value of an option of which only the last counts.
    #[must_use]
    pub fn last(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|pair| pair.name == name)?.value.as_deref()
    }

    /// All but this option.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        Self(self.0.iter().filter(|pair| pair.name != name).cloned().collect())
    }

    /// These, and others behind them.
    #[must_use]
    pub fn and(&self, others: &Self) -> Self {
        Self(self.0.iter().chain(&others.0).cloned().collect())
    }

    /// What is behind `first`, if the list begins with it.
    #[must_use]
    pub fn behind(&self, first: &Self) -> Option<Self> {
        self.0.strip_prefix(first.0.as_slice()).map(|rest| Self(rest.to_vec()))
    }

    /// Whether Claude Code has this option, as far as that is known here.
    #[must_use]
    pub fn knows(option: &str) -> bool {
        let name = options::canonical(option);
        options::takes(name).is_some() || options::is_reserved(name)
    }

    /// Whether all of them are options that Claude Code is known to have.
    #[must_use]
    pub fn are_known(&self) -> bool {
        self.0.iter().all(|pair| Self::knows(&pair.name))
    }

    /// The same options with other values.
    #[must_use]
    pub fn with_values(self, change: impl Fn(&str) -> String) -> Self {
        let changed = |pair: Pair| Pair { value: pair.value.map(|value| change(&value)), ..pair };
        Self(self.0.into_iter().map(changed).collect())
    }
}

impl From<ClaudeArgs> for Vec<String> {
    fn from(args: ClaudeArgs) -> Self {
        args.words()
    }
}

/// Reads a recorded list. Releases that kept the words as they had been given are read as Claude Code read them; what is no
/// option is left out, because it was a prompt by mistake.
impl From<Vec<String>> for ClaudeArgs {
    fn from(words: Vec<String>) -> Self {
        let mut pairs: Vec<Pair> = Vec::new();
        let mut words = words.into_iter().peekable();
        // What follows two dashes is no option.
        while let Some(word) = words.next().filter(|word| word != "--") {
            let Ok((name, value)) = split(&word) else { continue };
            let takes = options::takes(&name);
            let next = words.peek().map(String::as_str);
            let takes_next = match takes {
                Some(takes) => takes.takes_next(next),
                None => next.is_some_and(|next| !is_dashed(next)),
            };
            let value = if value.is_none() && takes_next { words.next() } else { value };
            let lacks_one = value.is_none() && matches!(takes, Some(Takes::Value | Takes::Several));
            let value = if lacks_one { Some(String::new()) } else { value };
            let has_more = takes == Some(Takes::Several) && !word.contains('=');
            pairs.push(Pair { name: name.clone(), value });
            while has_more && words.peek().is_some_and(|next| !is_dashed(next)) {
                pairs.push(Pair { name: name.clone(), value: words.next() });
            }
        }
        Self(pairs)
    }
}

impl Pair {
    fn word(&self) -> String {
        match &self.value {
            Some(value) => format!("{}={value}", self.name),
            None => self.name.clone(),
        }
    }

    fn check(&self) -> Result<(), BadArgument> {
        match &self.value {
            Some(value) if options::is_number(&self.name) && number(value).is_none() => {
                Err(BadArgument::NotANumber { option: self.name.clone(), value: value.clone() })
            }
            _ => Ok(()),
        }
    }
}

/// What a limit says, if it is a number above zero.
pub(crate) fn number(value: &str) -> Option<f64> {
    value.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0)
}

/// Whether Claude Code takes a word for an option. A dash alone is none.
fn is_dashed(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

/// The option that a word names, by the name that stands for all of its spellings, and the value that is joined to it.
fn split(word: &str) -> Result<(String, Option<String>), BadArgument> {
    let Some(long) = word.strip_prefix("--") else {
        let (name, joined) = options::split_short(word).ok_or_else(|| BadArgument::UnknownShort(word.to_owned()))?;
        return Ok((name.to_owned(), joined.map(str::to_owned)));
    };
    let (name, value) = match long.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (long, None),
    };
    let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if !is_name {
        return Err(BadArgument::Positional(word.to_owned()));
    }
    Ok((options::canonical(&format!("--{name}")).to_owned(), value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(args: &[&str]) -> Result<Vec<String>, BadArgument> {
        ClaudeArgs::parse(args).map(|args| args.words())
    }

    fn recorded(args: &[&str]) -> Vec<String> {
        ClaudeArgs::from(args.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).words()
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
            assert_eq!(recorded(args), expected, "{args:?}");
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

    #[test]
    fn what_older_releases_recorded_is_read_as_claude_read_it() {
        for (args, expected) in [
            (
                &["--allowedTools", "Bash", "Edit", "--verbose"][..],
                &["--allowedTools=Bash", "--allowedTools=Edit", "--verbose"][..],
            ),
            (&["stray", "--max-turns", "9", "stray"], &["--max-turns=9"]),
            (&["--of-next-year", "x"], &["--of-next-year=x"]),
            (&["--settings", "a", "--", "--settings", "b"], &["--settings=a"]),
            (&["--settings"], &["--settings="]),
        ] {
            assert_eq!(recorded(args), expected, "{args:?}");
        }
        let json = serde_json::to_string(&ClaudeArgs::parse(&["--max-turns", "9"]).unwrap()).unwrap();
        assert_eq!(json, r#"["--max-turns=9"]"#);
        assert_eq!(serde_json::from_str::<ClaudeArgs>(r#"["--max-turns","9"]"#).unwrap().words(), ["--max-turns=9"]);
    }

    #[test]
    fn of_several_the_last_counts() {
        let args = ClaudeArgs::parse(&["--settings=a", "--effort=low", "--settings", "--b"]).unwrap();
        assert_eq!(args.last("--settings"), Some("--b"));
        assert_eq!(args.without("--settings").words(), ["--effort=low"]);
        assert!(args.has("--effort") && !args.without("--effort").has("--effort"));
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
            if let Ok(args) = ClaudeArgs::parse(&list) {
                prop_assert_eq!(ClaudeArgs::parse(&args.words()), Ok(args.clone()));
                prop_assert_eq!(ClaudeArgs::from(args.words()), args);
            }
            let recorded = ClaudeArgs::from(list);
            prop_assert_eq!(ClaudeArgs::from(recorded.words()), recorded);
        }

        #[test]
        fn every_word_for_claude_is_one_option(list in any_words()) {
            for word in ClaudeArgs::from(list).words() {
                prop_assert!(word.starts_with("--") && word.len() > 2, "{}", word);
            }
        }
    }
}
