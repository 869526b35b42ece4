//! What Anthropic's API lists for its models.
//!
//! The figures are those of `genai-prices` 0.2.1, checked on [`LISTED_ON`]. The cache prices are listed for each model because
//! their ratios to the input price differ.

use crate::core::agent::usage::prices::Price;

/// When the list was last checked.
pub(crate) const LISTED_ON: &str = "2026-11-25";

/// The usual ratios of the classes, where a model's own are not known.
pub(super) const USUAL: Price = Price::new(1.0, 5.0, 1.25, 2.0, 0.1);

const OPUS: Price = Price::new(5.0, 25.0, 6.25, 10.0, 0.5);
const FIRST_OPUS: Price = Price::new(15.0, 75.0, 18.75, 30.0, 1.5);
const SONNET: Price = Price::new(3.0, 15.0, 3.75, 6.0, 0.3);

const MODELS: &[(&str, Price)] = &[
    ("claude-3-5-haiku", Price::new(0.8, 4.0, 1.0, 1.6, 0.08)),
    ("claude-3-5-sonnet", SONNET),
    ("claude-3-7-sonnet", SONNET),
    ("claude-3-haiku", Price::new(0.25, 1.25, 0.3, 0.5, 0.03)),
    ("claude-3-opus", FIRST_OPUS),
    ("claude-fable-5", Price::new(10.0, 50.0, 12.5, 20.0, 1.0)),
    ("claude-fable-5-1", Price::new(10.0, 50.0, 12.5, 20.0, 0.25)),
    ("claude-haiku-4-5", Price::new(1.0, 5.0, 1.25, 2.0, 0.1)),
    ("claude-haiku-5-5", Price::new(0.1, 0.5, 0.125, 0.2, 0.01)),
    ("claude-opus-4", FIRST_OPUS),
    ("claude-opus-4-0", FIRST_OPUS),
    ("claude-opus-4-1", FIRST_OPUS),
    ("claude-opus-4-5", OPUS),
    ("claude-opus-4-6", OPUS),
    ("claude-opus-4-7", OPUS),
    ("claude-opus-4-8", OPUS),
    ("claude-opus-5", OPUS),
    ("claude-opus-5-5", Price::new(4.0, 20.0, 5.0, 8.0, 0.2)),
    ("claude-sonnet-4", SONNET),
    ("claude-sonnet-4-0", SONNET),
    ("claude-sonnet-4-5", SONNET),
    ("claude-sonnet-4-6", SONNET),
    ("claude-sonnet-5", Price::new(2.0, 10.0, 2.5, 4.0, 0.2)),
    ("claude-sonnet-5-5", Price::new(2.0, 10.0, 2.5, 4.0, 0.1)),
];

/// The models whose requests cost more beyond so many tokens.
const LONG: &[(&str, u64, Price)] = &[
    ("claude-haiku-5-5", 100_000, Price::new(0.5, 2.5, 0.625, 1.0, 0.05)),
    ("claude-sonnet-4-5", 200_000, Price::new(6.0, 22.5, 7.5, 12.0, 0.6)),
];

/// The listed price of a request with so many tokens.
pub(super) fn listed(model: &str, tokens: u64) -> Option<Price> {
    let long = LONG.iter().find(|(name, beyond, _)| *name == model && tokens > *beyond).map(|(.., price)| *price);
    long.or_else(|| MODELS.iter().find(|(name, _)| *name == model).map(|(_, price)| *price))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_is_listed_once_in_order_and_at_a_price() {
        assert!(MODELS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(MODELS.iter().all(|(_, price)| price.is_usable()));
        assert!(LONG.iter().all(|(name, beyond, price)| {
            let below = listed(name, *beyond).unwrap();
            price.is_usable() && price.input > below.input && price.cache_read > below.cache_read
        }));
    }

    #[test]
    fn a_model_that_is_not_listed_has_no_price() {
        for name in ["claude-opus-4-9", "claude-opus-5-5-5", "claude", "", "gpt-5"] {
            assert_eq!(listed(name, 1), None, "{name}");
        }
    }
}
