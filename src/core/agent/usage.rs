//! Tokens and dollars: how much an attempt spent, and whether this is exact.

pub(crate) mod context_size;
pub(crate) mod prices;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// Tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Usage {
    /// Sent and not cached.
    pub input_tokens: u64,
    /// Generated.
    pub output_tokens: u64,
    /// Sent and written to the prompt cache.
    pub cache_creation_input_tokens: u64,
    /// Sent and read from the prompt cache.
    pub cache_read_input_tokens: u64,
}

/// US dollars without the digits that adding binary fractions leaves behind, for programs.
pub(crate) fn rounded_usd(usd: f64) -> f64 {
    (usd * 1e6).round() / 1e6
}

/// A sum of US dollars, for people.
pub(crate) fn usd(sum: f64) -> String {
    // A difference of sums may be a little less than a cent.
    let sum = rounded_usd(sum);
    if sum > 0.0 && sum < 0.01 { "<$0.01".to_owned() } else { format!("${sum:.2}") }
}

/// A limit in US dollars as it was given, with the digits after the cents.
pub(crate) fn limit_usd(most: f64) -> String {
    let most = rounded_usd(most);
    if rounded_usd((most * 100.0).round() / 100.0) == most { format!("${most:.2}") } else { format!("${most}") }
}

/// A number of tokens in three digits: `950`, `12.2k`, `155k`, `1.2M`.
pub(crate) fn in_short(count: u64) -> String {
    let thousands = count as f64 / 1000.0;
    match count {
        0..1_000 => count.to_string(),
        1_000..100_000 => format!("{thousands:.1}k"),
        100_000..1_000_000 => format!("{thousands:.0}k"),
        _ => format!("{:.1}M", thousands / 1000.0),
    }
}

impl Usage {
    /// Adds each count.
    pub(crate) fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    /// The sum of all counts.
    pub(crate) fn all(self) -> u64 {
        let Self { input_tokens, output_tokens, cache_creation_input_tokens, cache_read_input_tokens } = self;
        [output_tokens, cache_creation_input_tokens, cache_read_input_tokens]
            .into_iter()
            .fold(input_tokens, u64::saturating_add)
    }

    /// Subtracts each count; none becomes negative.
    pub(crate) fn minus(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }

    /// The larger of each count.
    pub(crate) fn max(self, other: Self) -> Self {
        self.with(other, u64::max)
    }

    fn with(self, other: Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            input_tokens: combine(self.input_tokens, other.input_tokens),
            output_tokens: combine(self.output_tokens, other.output_tokens),
            cache_creation_input_tokens: combine(self.cache_creation_input_tokens, other.cache_creation_input_tokens),
            cache_read_input_tokens: combine(self.cache_read_input_tokens, other.cache_read_input_tokens),
        }
    }

    /// The number of plain input tokens with the same cost. The ratios follow the API's price list and are nearly the same for
    /// all models: accurate enough to estimate the cost of a killed attempt.
    pub(crate) fn weight(self) -> f64 {
        let Self { input_tokens, output_tokens, cache_creation_input_tokens, cache_read_input_tokens } = self;
        input_tokens as f64
            + 5.0 * output_tokens as f64
            + 1.25 * cache_creation_input_tokens as f64
            + 0.1 * cache_read_input_tokens as f64
    }

    /// US dollars for each unit of [`Self::weight`], if these tokens cost this much. An estimate says nothing about the price.
    pub(crate) fn rate(self, usd: f64, estimated: bool) -> Option<f64> {
        let weight = self.weight();
        (!estimated && usd > 0.0 && weight > 0.0).then(|| usd / weight)
    }
}

/// What a session has spent so far, as Claude Code counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// US dollars.
    pub usd: f64,
    /// Tokens, if its version counts them.
    pub usage: Option<Usage>,
}

/// What an attempt spent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spending {
    /// Its tokens.
    pub usage: Usage,
    /// The responses of the API that it got.
    pub requests: u64,
    /// US dollars.
    pub usd: f64,
    /// Whether its `claude` died before it reported its spending: this is a lower bound, short by at most one request.
    pub estimated: bool,
}

/// What several attempts have cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// Tokens.
    pub usage: Usage,
    /// US dollars.
    pub cost_usd: f64,
    /// Whether this is a lower bound: a `claude` died before it reported its cost.
    pub estimated: bool,
    /// Responses of the API.
    pub requests: u64,
    /// `claude` processes.
    pub attempts: u64,
    /// Their total running time.
    pub time: SignedDuration,
}

impl Spent {
    /// What was spent. If it may be more, the result says so.
    pub(crate) fn dollars(&self) -> String {
        let least = if self.estimated { "≥" } else { "" };
        format!("{least}{}", usd(self.cost_usd))
    }

    /// The same, with tokens.
    pub(crate) fn in_words(&self) -> String {
        let Usage { input_tokens, output_tokens, cache_creation_input_tokens, cache_read_input_tokens } = self.usage;
        let input = input_tokens + cache_creation_input_tokens + cache_read_input_tokens;
        format!("{}, {} tokens in, {} out", self.dollars(), in_short(input), in_short(output_tokens))
    }

    /// As [`Usage::rate`].
    pub(crate) fn rate(&self) -> Option<f64> {
        self.usage.rate(self.cost_usd, self.estimated)
    }

    /// Adds what others have cost.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            usage: self.usage.plus(other.usage),
            cost_usd: self.cost_usd + other.cost_usd,
            estimated: self.estimated || other.estimated,
            requests: self.requests + other.requests,
            attempts: self.attempts + other.attempts,
            time: self.time.saturating_add(other.time),
        }
    }
}

/// What is known about the spending of an attempt.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    /// What its session had spent when it began, if its Claude Code continues that count.
    pub(crate) before: Totals,
    /// What its session has spent, according to its last result or its transcript.
    pub(crate) total: Option<Totals>,
    /// The tokens of the attempt alone, according to its last result.
    pub(crate) printed: Usage,
    /// Whether the result was its last output.
    pub(crate) is_final: bool,
    /// Whether `claude` began to make requests.
    pub(crate) began: bool,
    /// The tokens of the responses that it got.
    pub(crate) answers: Usage,
    /// The number of these responses.
    pub(crate) requests: u64,
    /// US dollars for each unit of [`Usage::weight`], according to other uses of its model.
    pub(crate) rate: Option<f64>,
}

impl Account {
    /// What the attempt spent. Responses only count if nothing else does: subagents and summaries are only included in totals.
    pub(crate) fn spending(&self) -> Spending {
        let own = |total: &Totals| {
            let before = if self.counts_on(total) { self.before } else { Totals::default() };
            let usage = match (total.usage, before.usage) {
                // An unknown earlier count cannot be subtracted.
                (Some(_), None) if before.usd > 0.0 => Usage::default(),
                (usage, before) => usage.unwrap_or_default().minus(before.unwrap_or_default()),
            };
            (usage.max(self.printed), total.usd - before.usd)
        };
        // The only total of a killed attempt may be the one at its beginning.
        let total = self.total.as_ref().filter(|total| **total != self.before);
        let (usage, usd) = total.map_or((self.printed, 0.0), own);
        if self.is_final {
            return Spending { usage, requests: self.requests, usd, estimated: false };
        }
        let usage = usage.max(self.answers);
        let usd = usd.max(self.rate.map_or(0.0, |rate| rate * usage.weight()));
        Spending { usage, requests: self.requests, usd, estimated: self.began }
    }

    /// Whether the total includes what the session had spent before. Claude Code forgets that when it continues a session whose
    /// last process was killed, so this depends on which interpretation of the total explains the responses better.
    fn counts_on(&self, total: &Totals) -> bool {
        let (Some(all), Some(before)) = (total.usage, self.before.usage) else { return total.usd >= self.before.usd };
        let unexplained = |own: f64| (own - self.answers.weight()).abs();
        let with = all.minus(before).weight();
        all.max(before) == all && total.usd >= self.before.usd && unexplained(with) <= unexplained(all.weight())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_has_the_digits_that_it_was_given_with() {
        let shown = [0.5, 0.025, 3.0, 0.1 + 0.2, 1234.0].map(limit_usd);
        assert_eq!(shown, ["$0.50", "$0.025", "$3.00", "$0.30", "$1234.00"]);
    }

    fn tokens(input_tokens: u64, output_tokens: u64) -> Usage {
        Usage { input_tokens, output_tokens, ..Usage::default() }
    }

    fn total(usd: f64, usage: Usage) -> Option<Totals> {
        Some(Totals { usd, usage: Some(usage) })
    }

    #[test]
    fn what_came_before_is_taken_off() {
        let before = Totals { usd: 0.5, usage: Some(tokens(50, 5)) };
        let spent = |total| {
            let Spending { usage, usd, .. } =
                Account { before, total, is_final: true, ..Account::default() }.spending();
            (usage, usd)
        };
        assert_eq!(spent(total(0.75, tokens(70, 6))), (tokens(20, 1), 0.25));
        assert_eq!(spent(total(0.5, tokens(50, 5))), (tokens(0, 0), 0.0));
        assert_eq!(spent(total(0.25, tokens(20, 2))), (tokens(20, 2), 0.25), "it did not count on");
        assert_eq!(spent(None), (tokens(0, 0), 0.0));
    }

    #[test]
    fn what_came_before_is_taken_off_where_only_dollars_are_known() {
        let only = |usd| Totals { usd, usage: None };
        let spent =
            |total| Account { before: only(0.5), total: Some(only(total)), ..Account::default() }.spending().usd;
        assert_eq!([spent(0.75), spent(0.5), spent(0.25)], [0.25, 0.0, 0.25]);
    }

    #[test]
    fn a_total_that_is_just_what_was_answered_includes_nothing_else() {
        let before = Totals { usd: 0.5, usage: Some(tokens(50, 5)) };
        let account = |input, usd| Account {
            before,
            total: total(usd, tokens(input, 6)),
            answers: tokens(60, 1),
            is_final: true,
            ..Account::default()
        };
        assert_eq!(account(60, 0.6).spending().usage.input_tokens, 60);
        assert_eq!(account(110, 1.1).spending().usage.input_tokens, 60);
        // An interrupted response is in no total, and a subagent's responses may be in no stream.
        assert_eq!(account(100, 1.0).spending().usage.input_tokens, 50);
        assert_eq!(account(150, 1.5).spending().usage.input_tokens, 100);
    }

    #[test]
    fn a_result_that_counts_no_models_counts_its_own_tokens() {
        let account = Account {
            total: Some(Totals { usd: 0.25, usage: None }),
            printed: tokens(7, 1),
            is_final: true,
            requests: 1,
            ..Account::default()
        };
        let expected = Spending { usage: tokens(7, 1), requests: 1, usd: 0.25, estimated: false };
        assert_eq!(account.spending(), expected);
    }

    #[test]
    fn an_attempt_that_died_is_counted_by_its_answers() {
        let died = Account { began: true, answers: tokens(100, 10), requests: 2, ..Account::default() };
        let spent = died.spending();
        assert_eq!(spent, Spending { usage: tokens(100, 10), requests: 2, usd: 0.0, estimated: true });
        let priced = Account { rate: Some(0.01), ..died }.spending();
        assert_eq!((priced.usd, priced.estimated), (1.5, true));
        // A transcript may still contain the record with which the session began.
        let before = Totals { usd: 1.0, usage: Some(tokens(150, 15)) };
        assert_eq!(Account { before, total: Some(before), ..died }.spending(), spent);
        // An interim result contains a part of it.
        let interim = Account { total: total(2.0, tokens(90, 20)), rate: Some(0.01), ..died }.spending();
        assert_eq!((interim.usage, interim.usd), (tokens(100, 20), 2.0));
        assert!(!Account::default().spending().estimated, "it made no request");
    }

    #[test]
    fn only_a_price_that_was_paid_for_tokens_says_what_a_token_costs() {
        let usage = tokens(100, 0);
        assert_eq!(usage.rate(2.0, false), Some(0.02));
        assert_eq!([usage.rate(2.0, true), usage.rate(0.0, false), Usage::default().rate(2.0, false)], [None; 3]);
    }

    #[test]
    fn a_token_that_is_generated_weighs_as_much_as_five() {
        let usage = Usage { cache_creation_input_tokens: 4, cache_read_input_tokens: 10, ..tokens(1, 2) };
        assert!((usage.weight() - 17.0).abs() < 1e-9);
    }
}
