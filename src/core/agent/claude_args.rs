//! Arguments for `claude` from a person or an agent: options, each with its value.
//!
//! Two parsers of the same words can disagree about which of them is a value, and then a rule that one of them checks protects
//! nothing. Words are therefore parsed once, at the edge, and every rule about arguments works on pairs. A pair is recorded and
//! passed to `claude` as one word, `--option=value`, which can be read in only one way.

use serde::{Deserialize, Serialize};

/// One option and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The canonical name of the option, with its dashes.
    pub name: String,
    /// `None`: the option has no value.
    pub value: Option<String>,
}

/// Options for `claude`, in the order given. An option may occur several times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClaudeArgs(Vec<Pair>);

impl ClaudeArgs {
    /// An option without a value.
    pub(crate) fn switch(name: &str) -> Self {
        Self(vec![Pair { name: name.to_owned(), value: None }])
    }

    /// The list as words for `claude`, one for each option.
    pub(crate) fn words(&self) -> Vec<String> {
        self.0.iter().map(Pair::word).collect()
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.0.iter().map(|pair| (pair.name.as_str(), pair.value.as_deref()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|pair| pair.name == name)
    }

    pub(crate) fn last(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|pair| pair.name == name)?.value.as_deref()
    }

    /// All options except this one.
    pub(crate) fn without(&self, name: &str) -> Self {
        Self(self.0.iter().filter(|pair| pair.name != name).cloned().collect())
    }

    /// The same options with this one, in the place in which it was first given.
    pub(crate) fn with_only(&self, pair: Pair) -> Self {
        let at = self.0.iter().position(|other| other.name == pair.name).unwrap_or(self.0.len());
        let mut all = self.without(&pair.name).0;
        all.insert(at, pair);
        Self(all)
    }

    /// The same options, with all values of this one joined to one text: Claude Code uses only the last.
    pub(crate) fn with_joined(&self, name: &str) -> Self {
        let texts: Vec<&str> = self.pairs().filter(|(other, _)| *other == name).filter_map(|(_, text)| text).collect();
        if texts.len() < 2 {
            return self.clone();
        }
        self.with_only(Pair { name: name.to_owned(), value: Some(texts.join("\n\n")) })
    }

    /// These options followed by others.
    pub(crate) fn and(&self, others: &Self) -> Self {
        Self(self.0.iter().chain(&others.0).cloned().collect())
    }

    /// The rest of the list, if it begins with `first`.
    pub(crate) fn behind(&self, first: &Self) -> Option<Self> {
        self.0.strip_prefix(first.0.as_slice()).map(|rest| Self(rest.to_vec()))
    }

    /// The same options with other values.
    pub(crate) fn with_values(self, change: impl Fn(&str) -> String) -> Self {
        let changed = |pair: Pair| Pair { value: pair.value.map(|value| change(&value)), ..pair };
        Self(self.0.into_iter().map(changed).collect())
    }
}

impl From<ClaudeArgs> for Vec<String> {
    fn from(args: ClaudeArgs) -> Self {
        args.words()
    }
}

impl From<Vec<Pair>> for ClaudeArgs {
    fn from(pairs: Vec<Pair>) -> Self {
        Self(pairs)
    }
}

/// Reads a recorded list. This program never writes a word that names no option, so such words are skipped.
impl From<Vec<String>> for ClaudeArgs {
    fn from(words: Vec<String>) -> Self {
        Self(words.iter().filter_map(|word| Pair::recorded(word)).collect())
    }
}

#[cfg(test)]
impl ClaudeArgs {
    /// Parses words as they are recorded.
    pub(crate) fn from_recorded(words: &[&str]) -> Self {
        words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>().into()
    }
}

impl Pair {
    fn recorded(word: &str) -> Option<Self> {
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value.to_owned())));
        is_name(name).then(|| Self { name: name.to_owned(), value })
    }

    fn word(&self) -> String {
        match &self.value {
            Some(value) => format!("{}={value}", self.name),
            None => self.name.clone(),
        }
    }
}

pub(crate) fn is_name(word: &str) -> bool {
    word.strip_prefix("--").is_some_and(|name| {
        name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    })
}

/// The value of a limit, if it is a number above zero.
pub(crate) fn number(value: &str) -> Option<f64> {
    value.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0)
}

// The options that decide what an agent may do. `claude` knows all options; the rules about rights are in `core`, because
// they also apply to recorded options: an imported archive must not grant its agents what its options claim to allow.

/// Options with one value that cannot give a child more rights than its parent. Only a person can give others, to the
/// root.
pub(crate) const FOR_CHILDREN: [&str; 6] =
    ["--append-system-prompt", "--disallowedTools", "--effort", "--fallback-model", "--max-budget-usd", "--max-turns"];

/// A child's addition to the system prompt: it is appended to those of the agents above it.
pub(crate) const APPENDED: &str = "--append-system-prompt";

/// System prompts of which Claude Code uses the last: a child may not replace those of the agents above it.
pub(crate) const PROMPTS: [&str; 3] = ["--append-system-prompt-file", "--system-prompt", "--system-prompt-file"];

/// Limits that a child may not raise above its parent's.
pub(crate) const LIMITS: [&str; 2] = [MAX_BUDGET, MAX_TURNS];
pub(crate) const MAX_BUDGET: &str = "--max-budget-usd";
pub(crate) const MAX_TURNS: &str = "--max-turns";

/// Lets an agent do everything, whatever its permission mode.
pub(crate) const SKIP_PERMISSIONS: &str = "--dangerously-skip-permissions";

/// Lets an agent switch to the mode in which it may do everything. Before 2.1.300 it could do everything in plan mode,
/// too.
pub(crate) const MAY_SKIP_PERMISSIONS: &str = "--allow-dangerously-skip-permissions";

/// Lets one of the user's tools decide on approvals. Questions would go there, too.
pub(crate) const PROMPT_TOOL: &str = "--permission-prompt-tool";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_recorded_is_one_word_an_option() {
        let args =
            ClaudeArgs::from_recorded(&["--max-turns=9", "--verbose", "--append-system-prompt=--a=b", "--tools="]);
        let json = serde_json::to_string(&args).unwrap();
        assert_eq!(json, r#"["--max-turns=9","--verbose","--append-system-prompt=--a=b","--tools="]"#);
        assert_eq!(serde_json::from_str::<ClaudeArgs>(&json).unwrap(), args);
        assert_eq!(args.last("--append-system-prompt"), Some("--a=b"));
        assert_eq!(
            ClaudeArgs::from_recorded(&["stray", "-p", "--", "---x", "--a b=c", "--verbose"]).words(),
            ["--verbose"]
        );
    }

    #[test]
    fn of_several_the_last_counts() {
        let args = ClaudeArgs::from_recorded(&["--settings=a", "--effort=low", "--settings=--b"]);
        assert_eq!(args.last("--settings"), Some("--b"));
        assert_eq!(args.without("--settings").words(), ["--effort=low"]);
        assert!(args.has("--effort") && !args.without("--effort").has("--effort"));
    }

    proptest! {
        #[test]
        fn any_recorded_words_are_options_and_are_recorded_alike(list in prop::collection::vec("-{0,3}[a-z]{0,3}=?\\PC{0,4}", 0..6)) {
            let args = ClaudeArgs::from(list);
            prop_assert!(args.words().iter().all(|word| word.starts_with("--") && word.len() > 2));
            prop_assert_eq!(ClaudeArgs::from(args.words()), args);
        }
    }
}
