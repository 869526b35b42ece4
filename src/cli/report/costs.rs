//! Formats costs for people.

use jiff::{SignedDuration, Timestamp};

use crate::cli::output::format::time_since;
use crate::core::agent::usage::{Spent, Usage};
pub(crate) use crate::core::agent::usage::{limit_usd, usd};
use crate::core::id::FrameId;

/// Warns about a chain that has cost more than its budget.
pub(crate) fn passed(chain: FrameId, spent: &Spent, max_budget_usd: Option<f64>) -> Option<String> {
    let most = max_budget_usd.filter(|most| spent.cost_usd > *most)?;
    Some(format!("{} has cost {}, more than its budget of {}", chain.short(), spent.dollars(), limit_usd(most)))
}

/// Formats tokens by their price class.
pub(crate) fn tokens(usage: Usage) -> String {
    let Usage { input_tokens, output_tokens, cache_creation_input_tokens, cache_read_input_tokens } = usage;
    format!(
        "{input_tokens} in, {cache_creation_input_tokens} to cache, {cache_read_input_tokens} from cache, {output_tokens} out"
    )
}

/// Formats dollars, requests and time.
pub(crate) fn words(spent: &Spent) -> String {
    let Spent { requests, time, .. } = spent;
    let unit = if *requests == 1 { "request" } else { "requests" };
    format!("{}, {requests} {unit}, {}", spent.dollars(), length(*time))
}

/// Formats a duration in up to two units.
pub(crate) fn length(time: SignedDuration) -> String {
    let then = Timestamp::UNIX_EPOCH;
    time_since(then, then.checked_add(time).unwrap_or(then))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_budget_that_was_passed_is_warned_of() {
        let (id, spent) = (FrameId::random(), Spent { cost_usd: 0.5, ..Spent::default() });
        assert_eq!((passed(id, &spent, None), passed(id, &spent, Some(0.5))), (None, None));
        let warning = passed(id, &spent, Some(0.25)).unwrap();
        assert_eq!(warning, format!("{} has cost $0.50, more than its budget of $0.25", id.short()));
    }

    #[test]
    fn a_cost_that_may_be_more_says_so() {
        let spent = Spent { cost_usd: 0.05, requests: 2, time: SignedDuration::from_secs(90), ..Spent::default() };
        assert_eq!(words(&spent), "$0.05, 2 requests, 1 min");
        let more = Spent { cost_usd: 12.3, requests: 1, estimated: true, ..spent };
        assert_eq!(words(&more), "≥$12.30, 1 request, 1 min");
        assert_eq!(Spent::default().dollars(), "$0.00");
    }
}
