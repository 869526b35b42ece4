//! Limits that Claude Code counts within one process. An agent has a process for each stretch between two pauses, so its
//! earlier usage is subtracted.

use crate::core::agent::claude_args::{ClaudeArgs, MAX_BUDGET, MAX_TURNS, Pair};

/// What Claude Code says when it has reached a limit, and the option that sets it.
const LIMITS: [(&str, &str); 2] =
    [("Reached maximum number of turns (", MAX_TURNS), ("Reached maximum budget ($", MAX_BUDGET)];

/// The rest of the limits among some arguments.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Left {
    /// The arguments for a process that may use the rest.
    Some(ClaudeArgs),
    /// Nothing, in Claude Code's words.
    Nothing(String),
}

/// The rest of the limits among `args`, given how much of each option's was used. A limit that is not a number is left to
/// Claude Code to refuse.
pub(crate) fn left(args: &ClaudeArgs, used: impl Fn(&str) -> f64) -> Left {
    let mut left = args.clone();
    for (words, option) in LIMITS {
        let Some(given) = args.last(option) else { continue };
        let Some(limit) = given.parse().ok().filter(|limit: &f64| limit.is_finite() && *limit > 0.0) else { continue };
        // Sums of dollars are not exact.
        let rest = ((limit - used(option)) * 1e6).round() / 1e6;
        if rest <= 0.0 {
            return Left::Nothing(format!("{words}{given})"));
        }
        if rest < limit {
            left = left.with_only(Pair { name: option.to_owned(), value: Some(rest.to_string()) });
        }
    }
    Left::Some(left)
}

/// Claude Code's message, with the original limit in place of the rest that was passed to it.
pub(crate) fn as_given(said: &str, args: &ClaudeArgs) -> String {
    let of_limit = LIMITS.iter().find_map(|(words, option)| {
        let (before, rest) = said.split_once(words)?;
        let (_, after) = rest.split_once(')')?;
        Some(format!("{before}{words}{}){after}", args.last(option)?))
    });
    of_limit.unwrap_or_else(|| said.to_owned())
}

/// The option whose limit was reached, with a value twice as high.
pub(crate) fn raised(said: &str) -> Option<Pair> {
    LIMITS.iter().find_map(|(words, option)| {
        let (_, rest) = said.split_once(words)?;
        let met: f64 = rest.split_once(')')?.0.parse().ok().filter(|met: &f64| *met > 0.0 && met.is_finite())?;
        Some(Pair { name: (*option).to_owned(), value: Some((met * 2.0).to_string()) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: &[&str]) -> ClaudeArgs {
        ClaudeArgs::from_recorded(words)
    }

    #[test]
    fn what_was_used_is_taken_off_until_nothing_is_left() {
        let both = args(&["--max-turns=5", "--effort=low", "--max-budget-usd=2.2"]);
        let of = |turns: f64, usd: f64| left(&both, |option| if option == MAX_TURNS { turns } else { usd });
        assert_eq!(of(0.0, 0.0), Left::Some(both.clone()));
        let rest = args(&["--max-turns=3", "--effort=low", "--max-budget-usd=0.88"]);
        assert_eq!(of(2.0, 1.32), Left::Some(rest));
        assert_eq!(of(5.0, 0.0), Left::Nothing("Reached maximum number of turns (5)".into()));
        assert_eq!(of(1.0, 2.2), Left::Nothing("Reached maximum budget ($2.2)".into()));
        assert_eq!(of(1.0, 0.1 + 0.1 + 2.0), Left::Nothing("Reached maximum budget ($2.2)".into()));
        for odd in ["--max-turns=x", "--max-turns=0", "--max-turns", "--effort=low"] {
            assert_eq!(left(&args(&[odd]), |_| 9.0), Left::Some(args(&[odd])), "{odd}");
        }
    }

    #[test]
    fn a_limit_is_named_as_it_was_given() {
        let both = args(&["--max-turns=5", "--max-budget-usd=2.20"]);
        assert_eq!(as_given("Reached maximum number of turns (3)", &both), "Reached maximum number of turns (5)");
        assert_eq!(as_given("Reached maximum budget ($0.88)", &both), "Reached maximum budget ($2.20)");
        for other in ["Reached maximum number of turns", "out of order"] {
            assert_eq!(as_given(other, &both), other);
        }
        let of_variable = "Reached maximum number of turns (3)";
        assert_eq!(as_given(of_variable, &args(&[])), of_variable);
    }
}
