//! Computes what a single attempt cost.

use std::path::Path;

use crate::claude::installation::version::Version;
use crate::claude::stream::digest::Digest;
use crate::claude::transcript::session_facts;
use crate::core::agent::usage::prices::{Lifetime, Prices};
use crate::core::agent::usage::{Account, Spending, Totals, Usage};
use crate::core::chain::frame::Frame;
use crate::runtime::conclude::claude_output::transcript_of;
use crate::runtime::requests::fork;
use crate::runtime::{RuntimeError, while_trying};
use crate::store::{Attempt, Counting, Store};

/// What a running attempt has spent so far, in US dollars. If Claude Code has not reported this yet, its answers are
/// priced.
pub(crate) fn so_far(
    store: &Store,
    frame: &Frame,
    attempt: &Attempt,
    digest: &Digest,
    prices: &Prices,
) -> Result<f64, RuntimeError> {
    let transcript = transcript_of(frame, attempt);
    let (Spending { usage, requests, usd, estimated }, _) =
        spent(store, prices, frame, &store.attempts(frame.id)?, digest, transcript.as_deref())?;
    let Some(model) = digest.model.as_deref().filter(|_| estimated) else { return Ok(usd) };
    let before = store.counted(Counting::LastPriced(model))?.pop().map(|counted| counted.spent);
    let sent = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens;
    let price = prices.of(model, sent / requests.max(1), before.as_ref(), Lifetime::FiveMinutes);
    Ok(price.map_or(usd, |(price, _)| usd.max(price.cost(usage, Lifetime::FiveMinutes))))
}

/// What an attempt of `frame` spent, and what its session had spent when it ended. `prices`: those that a person has set;
/// `attempts`: the frame's attempts; `transcript`: the transcript of its session.
pub(super) fn spent(
    store: &Store,
    prices: &Prices,
    frame: &Frame,
    attempts: &[Attempt],
    digest: &Digest,
    transcript: Option<&Path>,
) -> Result<(Spending, Totals), RuntimeError> {
    let written = transcript.map(session_facts::costs).transpose().map_err(while_trying("read the transcript"))?;
    let written = written.unwrap_or_default();
    // An attempt that ends before the model is called does not report its version.
    let version = digest.version.as_deref().or_else(|| attempts.iter().rev().find_map(|it| it.version.as_deref()));
    let accumulates = accumulates(version);
    let before = if accumulates { totals_before(store, frame, attempts)? } else { Totals::default() };
    let result = digest.result.as_ref().or(digest.interim.as_ref());
    let printed = result.map(|result| Totals { usd: result.total_cost_usd, usage: result.total_usage });
    let noted = written.total.filter(|_| accumulates);
    let total = printed.filter(|total| total.usage.is_some()).or(noted).or(printed);
    // A result that this program created after it had ended `claude` does not count.
    let has_counted = total.is_some_and(|total| total.usage.is_some() || total.usd > before.usd);
    let is_final = digest.result.is_some() && has_counted;
    let mut answers = digest.answers.clone();
    answers.complete(&written.answers);
    let rate = match &digest.model {
        Some(model) if !is_final => store.counted(Counting::LastPriced(model))?.pop().and_then(|it| it.spent.rate()),
        _ => None,
    };
    let account = Account {
        before,
        total,
        printed: result.map_or_else(Usage::default, |result| result.usage),
        is_final,
        began: digest.spoke,
        answers: answers.usage(),
        requests: answers.count(),
        rate,
    };
    let carries_on = if accumulates { printed.unwrap_or(before) } else { Totals::default() };
    let spending = account.spending();
    // As the budget has counted it while the agent was running: otherwise an agent that has spent the budget would start again.
    let price = digest.model.as_deref().and_then(|model| prices.configured(model));
    let usd = price.map_or(spending.usd, |price| price.cost(spending.usage, Lifetime::FiveMinutes));
    Ok((Spending { usd, ..spending }, written.total.unwrap_or(carries_on)))
}

/// What the session that a frame's next attempt forks has spent. Newer versions of Claude Code continue this count, and earlier
/// attempts account for it.
fn totals_before(store: &Store, frame: &Frame, attempts: &[Attempt]) -> Result<Totals, RuntimeError> {
    Ok(match (frame.continues(), frame.baseline) {
        (Some(kept), _) if frame.checkpoint.is_some() => fork::totals(frame, attempts, kept),
        (_, Some(baseline)) => fork::totals_of_baseline(store, &baseline)?,
        _ => Totals::default(),
    })
}

/// Whether this version continues the count of what a session had spent before it was resumed.
fn accumulates(version: Option<&str>) -> bool {
    let version = version.and_then(|version| version.parse::<Version>().ok());
    version.is_some_and(|version| version >= Version::TOTAL_COST_ACCUMULATES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_versions_count_on() {
        let newer = Version::TOTAL_COST_ACCUMULATES.to_string();
        for (version, expected) in
            [(Some(newer.as_str()), true), (Some("2.1.89"), false), (Some("of next year"), false), (None, false)]
        {
            assert_eq!(accumulates(version), expected, "{version:?}");
        }
    }
}
