//! Limits that Claude Code counts within one process. An agent has a process for each stretch between two pauses, so its
//! earlier usage is subtracted.

use crate::core::agent::claude_args::{ClaudeArgs, MAX_BUDGET, MAX_TURNS, Pair, number};

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
        let rest = millionths(limit - used(option));
        if rest <= 0.0 {
            return Left::Nothing(format!("{words}{given})"));
        }
        if rest < limit {
            left = left.with_only(Pair { name: option.to_owned(), value: Some(rest.to_string()) });
        }
    }
    Left::Some(left)
}

/// The arguments for a process that may spend at most so much, because its chain has no more left.
pub(crate) fn within(args: &ClaudeArgs, chain_usd: f64) -> ClaudeArgs {
    let own = args.last(MAX_BUDGET).and_then(number).unwrap_or(f64::INFINITY);
    if own <= chain_usd {
        return args.clone();
    }
    args.with_only(Pair {
        name: MAX_BUDGET.to_owned(),
        value: Some(millionths(chain_usd).max(SMALLEST_USD).to_string()),
    })
}

/// Claude Code refuses a budget of nothing.
const SMALLEST_USD: f64 = 1e-6;

/// The arguments for a process that only writes a text. `denies_tools`: whether a hook denies all tools, so that they stay in the
/// prompt cache; otherwise it gets no tools.
pub(crate) fn for_summary(args: &ClaudeArgs, denies_tools: bool) -> ClaudeArgs {
    // A call that is denied is a turn.
    const MOST_TURNS: u32 = 4;
    let turns = args.last(MAX_TURNS).and_then(|turns| turns.parse().ok()).unwrap_or(MOST_TURNS).min(MOST_TURNS);
    let args = args.with_only(Pair { name: MAX_TURNS.to_owned(), value: Some(turns.to_string()) });
    if denies_tools {
        return args;
    }
    let args = args.without("--mcp-config").with_only(Pair { name: "--tools".to_owned(), value: Some(String::new()) });
    args.with_only(Pair { name: "--strict-mcp-config".to_owned(), value: None })
}

/// Whether Claude Code says that so many turns were not enough.
pub(crate) fn are_turns_used(said: &str) -> bool {
    let (words, _) = LIMITS[0];
    said.contains(words)
}

/// Whether the budget that Claude Code says is spent was the rest of its chain's, where `own_usd` was left of the agent's own.
pub(crate) fn is_budget_of_chain(said: &str, own_usd: Option<f64>) -> bool {
    let (words, _) = LIMITS[1];
    let Some((_, rest)) = said.split_once(words) else { return false };
    let met = rest.split_once(')').and_then(|(met, _)| met.parse::<f64>().ok());
    own_usd.is_none_or(|own| met.is_some_and(|met| met < millionths(own)))
}

/// Sums of dollars are not exact.
fn millionths(usd: f64) -> f64 {
    (usd * 1e6).round() / 1e6
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
    fn what_is_left_of_the_budget_of_a_chain_is_never_nothing() {
        let of = |words: &[&str], chain_usd| within(&args(words), chain_usd).last(MAX_BUDGET).map(str::to_owned);
        assert_eq!(of(&[], 1e-9).as_deref(), Some("0.000001"), "in the notation that Claude Code reads");
        assert_eq!(of(&["--max-budget-usd=3"], 0.5).as_deref(), Some("0.5"));
        assert_eq!(of(&["--max-budget-usd=3"], 3.5).as_deref(), Some("3"));
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

    #[test]
    fn what_is_left_of_the_chain_limits_a_process_further() {
        let of = |words: &[&str], usd| within(&args(words), usd);
        assert_eq!(of(&["--effort=low"], 0.25), args(&["--effort=low", "--max-budget-usd=0.25"]));
        assert_eq!(of(&["--max-budget-usd=1"], 0.1 + 0.2), args(&["--max-budget-usd=0.3"]));
        assert_eq!(of(&["--max-budget-usd=0.2"], 0.3), args(&["--max-budget-usd=0.2"]));
        let said = "Reached maximum budget ($0.3)";
        let whose = [None, Some(0.3), Some(0.1 + 0.2), Some(0.5)].map(|own| is_budget_of_chain(said, own));
        assert_eq!(whose, [true, false, false, true]);
        assert!(!is_budget_of_chain("Reached maximum number of turns (3)", None));
    }
}
