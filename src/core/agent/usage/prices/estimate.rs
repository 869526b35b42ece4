//! What the next request of an agent sends, whether that still is in the prompt cache, and what it costs.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::core::agent::usage::Spent;
use crate::core::agent::usage::prices::{Lifetime, PriceSource, Prices};

/// What is known about the next request of an agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NextRequest {
    /// What its conversation contains, in tokens; `None`: no request has shown that.
    pub(crate) tokens: Option<u64>,
    /// The model that it goes to; `None`: Claude Code's default.
    pub(crate) model: Option<String>,
    /// The version of Claude Code that sends it, if that is known.
    pub(crate) version: Option<String>,
    /// The last request of the conversation; `None`: it is new.
    pub(crate) last: Option<LastRequest>,
    /// Whether other options that come before the conversation have changed since then.
    pub(crate) has_other_options: bool,
    /// What attempts with this model have cost.
    pub(crate) before: Option<Spent>,
    /// How long the prompt cache keeps what is sent, by the agent's login.
    pub(crate) lifetime: Option<Lifetime>,
}

/// The last request of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LastRequest {
    pub(crate) at: Timestamp,
    pub(crate) model: String,
    pub(crate) version: Option<String>,
    /// Whether the prompt cache was used.
    pub(crate) is_cached: bool,
}

/// Whether what is sent still is in the prompt cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) enum CacheState {
    /// All but what is new.
    Cached {
        /// How long that is so, unless there is another request.
        until: Timestamp,
    },
    /// It is sent, and paid, in full.
    Cold {
        #[serde(flatten)]
        reason: ColdReason,
    },
}

/// Why the prompt cache does not have what is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) enum ColdReason {
    /// The conversation has not begun.
    New,
    /// The last request was too long ago.
    Idle {
        /// When it was.
        last_request: Timestamp,
    },
    /// The cache belongs to one model.
    Model {
        /// The model of the last request.
        from: String,
        /// That of the next.
        to: String,
    },
    /// Another version has another system prompt and other tools.
    Version {
        /// The version of the last request.
        from: String,
        /// That of the next.
        to: String,
    },
    /// Other options change what comes before the conversation.
    Options,
    /// The last request did not use the prompt cache.
    Uncached,
}

/// What the next request sends, and what that costs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) tokens: Option<u64>,
    pub(crate) cache: CacheState,
    /// US dollars, with where the price comes from; `None`: not known.
    pub(crate) price: Option<(f64, PriceSource)>,
}

impl Lifetime {
    fn duration(self) -> SignedDuration {
        match self {
            Self::FiveMinutes => SignedDuration::from_mins(5),
            Self::Hour => SignedDuration::from_hours(1),
        }
    }
}

impl NextRequest {
    /// The estimate, as of `now`.
    pub(crate) fn estimate(&self, prices: &Prices, now: Timestamp) -> Estimate {
        let cache = self.cache(now);
        Estimate { tokens: self.tokens, price: self.price(prices, &cache), cache }
    }

    /// The name of its model; the full one, if the conversation shows what `sonnet` stands for.
    pub(crate) fn full_model(&self) -> Option<&str> {
        let last = self.last.as_ref().map(|last| last.model.as_str());
        let named = self.model.as_deref();
        last.filter(|last| named.is_none_or(|named| is_same_model(last, named))).or(named)
    }

    fn lifetime(&self) -> Lifetime {
        self.lifetime.unwrap_or(Lifetime::FiveMinutes)
    }

    fn cache(&self, now: Timestamp) -> CacheState {
        let cold = |reason| CacheState::Cold { reason };
        let Some(last) = &self.last else { return cold(ColdReason::New) };
        if !last.is_cached {
            return cold(ColdReason::Uncached);
        }
        if let Some(to) = self.model.as_ref().filter(|to| !is_same_model(&last.model, to)) {
            return cold(ColdReason::Model { from: last.model.clone(), to: to.clone() });
        }
        if let (Some(from), Some(to)) = (&last.version, &self.version)
            && from != to
        {
            return cold(ColdReason::Version { from: from.clone(), to: to.clone() });
        }
        if self.has_other_options {
            return cold(ColdReason::Options);
        }
        let until = last.at.saturating_add(self.lifetime().duration()).unwrap_or(last.at);
        if until <= now { cold(ColdReason::Idle { last_request: last.at }) } else { CacheState::Cached { until } }
    }

    fn price(&self, prices: &Prices, cache: &CacheState) -> Option<(f64, PriceSource)> {
        let tokens = self.tokens?;
        let (price, source) = prices.of(self.full_model()?, tokens, self.before.as_ref(), self.lifetime())?;
        let of_one = match cache {
            CacheState::Cached { .. } => price.cache_read,
            CacheState::Cold { reason: ColdReason::Uncached } => price.input,
            CacheState::Cold { .. } => price.cache_write(self.lifetime()),
        };
        Some((tokens as f64 * of_one / 1e6, source))
    }
}

/// Whether `named`, perhaps a short name such as `opus`, can stand for this model.
pub(crate) fn is_same_model(model: &str, named: &str) -> bool {
    let plain = |name: &str| name.split('[').next().unwrap_or(name).to_owned();
    let (model, named) = (plain(model), plain(named));
    named == "default" || model == named || !named.starts_with("claude-") && model.contains(&named)
}

impl ColdReason {
    /// The reason, as people read it: `last request 3 days ago`.
    pub(crate) fn words(&self, ago: impl FnOnce(Timestamp) -> String) -> String {
        match self {
            Self::New => "a new conversation".to_owned(),
            Self::Idle { last_request } => format!("last request {} ago", ago(*last_request)),
            Self::Model { from, to } => format!("model {from} → {to}"),
            Self::Version { from, to } => format!("claude {from} → {to}"),
            Self::Options => "its options have changed".to_owned(),
            Self::Uncached => "the last request was not cached".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OPUS: &str = "claude-opus-4-8";

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    /// A conversation of a million tokens whose last request was at 0.
    fn next() -> NextRequest {
        let last =
            LastRequest { at: at(0), model: OPUS.to_owned(), version: Some("2.1.330".to_owned()), is_cached: true };
        NextRequest {
            tokens: Some(1_000_000),
            model: Some(OPUS.to_owned()),
            version: Some("2.1.330".to_owned()),
            last: Some(last),
            ..NextRequest::default()
        }
    }

    fn estimated(next: &NextRequest, seconds: i64) -> (String, Option<f64>) {
        let Estimate { cache, price, .. } = next.estimate(&Prices::default(), at(seconds));
        let words = match cache {
            CacheState::Cached { until } => format!("until {}", until.as_second() - at(0).as_second()),
            CacheState::Cold { reason } => reason.words(|_| "long".to_owned()),
        };
        (words, price.map(|(usd, _)| usd))
    }

    #[test]
    fn a_cache_lives_as_long_as_the_login_gives_it() {
        assert_eq!(estimated(&next(), 299), ("until 300".to_owned(), Some(0.5)));
        assert_eq!(estimated(&next(), 300), ("last request long ago".to_owned(), Some(6.25)));
        let hour = NextRequest { lifetime: Some(Lifetime::Hour), ..next() };
        assert_eq!(estimated(&hour, 3599), ("until 3600".to_owned(), Some(0.5)));
        assert_eq!(estimated(&hour, 3600), ("last request long ago".to_owned(), Some(10.0)));
    }

    #[test]
    fn what_comes_before_the_conversation_may_not_change() {
        let other = |change: &dyn Fn(&mut NextRequest)| {
            let mut next = next();
            change(&mut next);
            estimated(&next, 1)
        };
        let sonnet = other(&|next| next.model = Some("claude-sonnet-4-6".to_owned()));
        assert_eq!(sonnet, (format!("model {OPUS} → claude-sonnet-4-6"), Some(3.75)));
        let updated = other(&|next| next.version = Some("2.1.334".to_owned()));
        assert_eq!(updated, ("claude 2.1.330 → 2.1.334".to_owned(), Some(6.25)));
        assert_eq!(other(&|next| next.has_other_options = true).0, "its options have changed");
        let uncached = other(&|next| next.last.as_mut().unwrap().is_cached = false);
        assert_eq!(uncached, ("the last request was not cached".to_owned(), Some(5.0)));
        assert_eq!(other(&|next| next.last = None), ("a new conversation".to_owned(), Some(6.25)));
        for same in [None, Some("opus"), Some("default"), Some("claude-opus-4-8[1m]")] {
            let cached = other(&|next| next.model = same.map(str::to_owned));
            assert_eq!(cached, ("until 300".to_owned(), Some(0.5)), "{same:?}");
        }
        assert_eq!(other(&|next| next.version = None).0, "until 300", "nothing says that it is another");
    }

    #[test]
    fn a_price_that_nobody_knows_is_not_nothing() {
        let unknown = NextRequest { model: Some("claude-next-9".to_owned()), ..next() };
        assert_eq!(estimated(&unknown, 1).1, None);
        assert_eq!(estimated(&NextRequest { tokens: None, ..next() }, 1).1, None);
        assert_eq!(estimated(&NextRequest { model: None, last: None, ..next() }, 1).1, None);
    }

    fn any_next() -> impl Strategy<Value = NextRequest> {
        let model =
            prop_oneof![Just(None), Just(Some(OPUS)), Just(Some("claude-haiku-5-5")), Just(Some("claude-next-9"))];
        let lifetime = prop_oneof![Just(None), Just(Some(Lifetime::FiveMinutes)), Just(Some(Lifetime::Hour))];
        (model, lifetime, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
            |(model, lifetime, cached, new, other)| {
                let mut next = next();
                next.model = model.map(str::to_owned);
                next.lifetime = lifetime;
                next.has_other_options = other;
                next.last.iter_mut().for_each(|last| last.is_cached = cached);
                next.last = next.last.filter(|_| !new);
                next
            },
        )
    }

    proptest! {
        #[test]
        fn more_tokens_are_never_cheaper(
            next in any_next(), few in 0_u64..400_000, more in 0_u64..400_000, seconds in 0_i64..10_000,
        ) {
            let usd = |tokens| estimated(&NextRequest { tokens: Some(tokens), ..next.clone() }, seconds).1;
            let (few, many) = (usd(few), usd(few + more));
            prop_assert_eq!(few.is_some(), many.is_some());
            prop_assert!(few <= many);
        }

        #[test]
        fn waiting_never_makes_it_cheaper_and_nothing_is_free(
            next in any_next(), early in 0_i64..10_000, later in 0_i64..10_000,
        ) {
            let usd = |seconds| estimated(&next, seconds).1;
            prop_assert!(usd(early) <= usd(early + later));
            prop_assert!(usd(early).is_none_or(|usd| usd > 0.0));
        }
    }
}
