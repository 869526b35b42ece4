//! What tokens cost: as a person has set it, as Claude Code reported it before, or as Anthropic lists it.

pub(crate) mod estimate;
mod list;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::core::agent::usage::{Spent, Usage};

pub(crate) use list::LISTED_ON;

/// US dollars for a million tokens of each class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Price {
    pub(crate) input: f64,
    pub(crate) output: f64,
    /// Written to the prompt cache, for five minutes.
    pub(crate) cache_write: f64,
    /// The same for an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cache_write_1h: Option<f64>,
    /// Read from the prompt cache.
    pub(crate) cache_read: f64,
}

/// How long the prompt cache keeps what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// The default with an API key.
    FiveMinutes,
    /// The default with a subscription.
    Hour,
}

/// Where a price comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) enum PriceSource {
    /// A person has set it.
    Configured,
    /// Claude Code reported what earlier attempts cost.
    Reported,
    /// The price list of Anthropic.
    Listed,
}

/// The prices that a person has set, by model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Prices(BTreeMap<String, Price>);

impl Price {
    const fn new(input: f64, output: f64, cache_write: f64, cache_write_1h: f64, cache_read: f64) -> Self {
        Self { input, output, cache_write, cache_write_1h: Some(cache_write_1h), cache_read }
    }

    /// US dollars for a million tokens that are written to the prompt cache.
    pub(crate) fn cache_write(&self, lifetime: Lifetime) -> f64 {
        match lifetime {
            Lifetime::FiveMinutes => self.cache_write,
            Lifetime::Hour => self.cache_write_1h.unwrap_or(self.cache_write),
        }
    }

    /// US dollars for these tokens.
    pub(crate) fn cost(&self, usage: Usage, lifetime: Lifetime) -> f64 {
        let Usage { input_tokens, output_tokens, cache_creation_input_tokens, cache_read_input_tokens } = usage;
        let millionths = input_tokens as f64 * self.input
            + output_tokens as f64 * self.output
            + cache_creation_input_tokens as f64 * self.cache_write(lifetime)
            + cache_read_input_tokens as f64 * self.cache_read;
        millionths / 1e6
    }

    /// The price of each class, by its name in the settings.
    pub(crate) fn classes(&self) -> [(&'static str, Option<f64>); 5] {
        [
            ("input", Some(self.input)),
            ("output", Some(self.output)),
            ("cache-write", Some(self.cache_write)),
            ("cache-write-1h", self.cache_write_1h),
            ("cache-read", Some(self.cache_read)),
        ]
    }

    fn times(self, factor: f64) -> Self {
        Self {
            input: self.input * factor,
            output: self.output * factor,
            cache_write: self.cache_write * factor,
            cache_write_1h: self.cache_write_1h.map(|price| price * factor),
            cache_read: self.cache_read * factor,
        }
    }

    fn is_usable(&self) -> bool {
        let is_amount = |usd: f64| usd.is_finite() && usd >= 0.0;
        self.classes().into_iter().filter_map(|(_, usd)| usd).all(is_amount) && self.input > 0.0 && self.output > 0.0
    }
}

impl Prices {
    /// What the tokens of a request of `tokens` tokens to `model` cost; `None`: that is not known. `before`: what earlier attempts
    /// with this model have cost.
    pub(crate) fn of(
        &self,
        model: &str,
        tokens: u64,
        before: Option<&Spent>,
        lifetime: Lifetime,
    ) -> Option<(Price, PriceSource)> {
        if let Some(price) = self.configured(model) {
            return Some((price, PriceSource::Configured));
        }
        let listed = |tokens| list::listed(&canonical(model), tokens);
        if let Some(before) = before.filter(|before| before.rate().is_some()) {
            let Usage { input_tokens, cache_creation_input_tokens, cache_read_input_tokens, .. } = before.usage;
            let sent = input_tokens.saturating_add(cache_creation_input_tokens).saturating_add(cache_read_input_tokens);
            // The ratios of the classes are the model's if they are known. What was reported says how high all of them are.
            let usual = listed(sent / before.requests.max(1)).unwrap_or(list::USUAL);
            let factor = before.cost_usd / usual.cost(before.usage, lifetime);
            let price = listed(tokens).unwrap_or(list::USUAL).times(factor);
            if price.is_usable() {
                return Some((price, PriceSource::Reported));
            }
        }
        listed(tokens).map(|price| (price, PriceSource::Listed))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Price)> {
        self.0.iter().map(|(model, price)| (model.as_str(), price))
    }

    /// The price that a person has set for a model.
    pub(crate) fn configured(&self, model: &str) -> Option<Price> {
        let alike = || self.0.iter().find(|(name, _)| canonical(name) == canonical(model)).map(|(_, price)| *price);
        self.0.get(model).copied().or_else(alike)
    }

    /// What is wrong with them, to follow "is not".
    pub(crate) fn problem(&self) -> Option<String> {
        let (model, _) = self.0.iter().find(|(_, price)| !price.is_usable())?;
        Some(format!("a table of prices above 0: see `{model}`"))
    }
}

/// A model's name without its provider, version and date: `us.anthropic.claude-opus-4-8-20260601-v1:0` is `claude-opus-4-8`.
fn canonical(model: &str) -> String {
    let name = model.find("claude-").map_or(model, |at| &model[at..]);
    let name = name.split(['[', ':']).next().unwrap_or(name).replace(['.', '@'], "-");
    let mut parts: Vec<&str> = name.split('-').collect();
    let is_edition = |part: &str| {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        part == "latest" || part.strip_prefix('v').is_some_and(is_number) || part.len() == 8 && is_number(part)
    };
    while parts.len() > 1 && parts.last().is_some_and(|last| is_edition(last)) {
        parts.pop();
    }
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn usage(input: u64, output: u64, write: u64, read: u64) -> Usage {
        Usage {
            input_tokens: input,
            output_tokens: output,
            cache_creation_input_tokens: write,
            cache_read_input_tokens: read,
        }
    }

    fn spent(usage: Usage, cost_usd: f64) -> Spent {
        Spent { usage, cost_usd, requests: 1, ..Spent::default() }
    }

    #[test]
    fn a_model_is_known_by_all_of_its_names() {
        for name in [
            "claude-opus-4-8", "claude-opus-4-8-20260601", "claude-opus-4.8", "claude-opus-4-8[1m]",
            "us.anthropic.claude-opus-4-8-20260601-v1:0", "claude-opus-4-8@20260601", "claude-opus-4-8-latest",
        ] {
            assert_eq!(canonical(name), "claude-opus-4-8", "{name}");
        }
        assert_eq!(canonical("claude-opus-4-20250514"), "claude-opus-4");
        assert_eq!(canonical("20250514"), "20250514");
    }

    #[test]
    fn what_a_person_sets_counts_before_what_was_reported_and_that_before_the_list() {
        let of = |prices: &Prices, before| prices.of("claude-opus-4-8", 1000, before, Lifetime::FiveMinutes);
        let (none, own) = (Prices::default(), Price { input: 7.0, ..list::USUAL });
        let set = Prices([("claude-opus-4-8".to_owned(), own)].into());
        let before = spent(usage(1000, 20, 0, 0), 0.011);
        assert_eq!(of(&none, None).unwrap().1, PriceSource::Listed);
        let (price, source) = of(&none, Some(&before)).unwrap();
        assert_eq!(source, PriceSource::Reported);
        assert!((price.input - 10.0).abs() < 1e-9, "twice what is listed: {price:?}");
        assert_eq!(of(&set, Some(&before)), Some((own, PriceSource::Configured)));
        let estimated = Spent { estimated: true, ..before };
        assert_eq!(of(&none, Some(&estimated)).unwrap().1, PriceSource::Listed, "an estimate says nothing");
    }

    #[test]
    fn a_model_that_is_not_listed_costs_what_it_cost_before_or_is_unknown() {
        let none = Prices::default();
        assert_eq!(none.of("claude-next-9", 1000, None, Lifetime::Hour), None);
        let before = spent(usage(1000, 0, 0, 0), 0.02);
        let (price, source) = none.of("claude-next-9", 1000, Some(&before), Lifetime::Hour).unwrap();
        assert_eq!((price.input, source), (20.0, PriceSource::Reported));
    }

    #[test]
    fn a_price_that_would_make_requests_free_is_refused() {
        let with = |price| Prices([("m".to_owned(), price)].into());
        assert_eq!(with(list::USUAL).problem(), None);
        for bad in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
            assert!(with(Price { input: bad, ..list::USUAL }).problem().is_some(), "{bad}");
        }
        assert_eq!(with(Price { cache_read: 0.0, ..list::USUAL }).problem(), None);
        assert!(with(Price { cache_read: -1.0, ..list::USUAL }).problem().is_some());
    }

    proptest! {
        #[test]
        fn a_price_that_is_known_is_above_zero(
            model in "claude-(opus|sonnet|haiku|fable|next)-[3-9](-[0-9])?",
            tokens in 0_u64..2_000_000,
            known in proptest::option::of((0_u64..1_000_000, 0.0_f64..100.0)),
        ) {
            let before = known.map(|(input, usd)| spent(usage(input, 1, 0, 0), usd));
            if let Some((price, _)) = Prices::default().of(&model, tokens, before.as_ref(), Lifetime::Hour) {
                prop_assert!(price.is_usable() && price.cost(usage(1, 0, 0, 0), Lifetime::Hour) > 0.0);
            }
        }

        #[test]
        fn what_was_reported_is_what_the_same_costs_again(
            (input, output, write, read) in (1_u64..100_000, 0_u64..10_000, 0_u64..50_000, 0_u64..50_000),
            usd in 0.001_f64..10.0,
        ) {
            let usage = usage(input, output, write, read);
            let sent = input + write + read;
            let (price, _) =
                Prices::default().of("claude-opus-5", sent, Some(&spent(usage, usd)), Lifetime::Hour).unwrap();
            prop_assert!((price.cost(usage, Lifetime::Hour) - usd).abs() < 1e-9);
        }
    }
}
