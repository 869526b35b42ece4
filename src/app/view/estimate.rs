//! The views of agents' next requests, and of their costs.

use jiff::Timestamp;
use serde::Serialize;

use crate::core::agent::usage::prices::estimate::{CacheState, ColdReason, Estimate, NextRequest};
use crate::core::agent::usage::prices::{PriceSource, Prices};
use crate::core::agent::usage::rounded_usd;
use crate::core::id::FrameId;

/// The next requests of the agents of a chain.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct EstimateView {
    /// `null`: the chain does not exist yet.
    pub(crate) chain: Option<FrameId>,
    /// Those first that start first.
    pub(crate) agents: Vec<AgentEstimateView>,
    /// The tokens of all, as far as they are known; `null`: they are not known of any.
    pub(crate) tokens: Option<u64>,
    /// What all cost, in US dollars, as far as that is known; `null`: it is not known of any.
    pub(crate) cost_usd: Option<f64>,
    /// How many of them have a cost that is not known.
    pub(crate) unpriced: usize,
}

/// An agent that continuing a chain starts.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct AgentEstimateView {
    /// `null`: it does not exist yet.
    pub(crate) id: Option<FrameId>,
    pub(crate) task: String,
    pub(crate) starts: Starts,
    /// Only for an agent that starts afresh, which makes two of these requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) afresh: Option<AfreshPart>,
    #[serde(flatten)]
    pub(crate) request: NextRequestView,
}

/// A part of a new start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) enum AfreshPart {
    /// The agent writes a summary of its conversation.
    Summary,
    /// It begins its new session, with the summary, whose length is not known yet.
    NewSession,
}

/// When an agent starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) enum Starts {
    /// At once.
    Now,
    /// When what it waits for has happened.
    Later,
}

/// The next request of an agent.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct NextRequestView {
    /// What it sends, without what is new; `null`: not known, because there was no such request yet.
    pub(crate) tokens: Option<u64>,
    /// `null`: Claude Code's default.
    pub(crate) model: Option<String>,
    pub(crate) cache: CacheState,
    /// What sending that costs, in US dollars; `null`: not known.
    pub(crate) cost_usd: Option<f64>,
    /// Where the price comes from.
    pub(crate) price: Option<PriceSource>,
}

impl EstimateView {
    pub(crate) fn new(chain: Option<FrameId>, agents: Vec<AgentEstimateView>) -> Self {
        let costs = || agents.iter().filter_map(|agent| agent.request.cost_usd);
        Self {
            chain,
            tokens: agents.iter().filter_map(|agent| agent.request.tokens).reduce(|sum, tokens| sum + tokens),
            cost_usd: costs().reduce(|sum, usd| sum + usd).map(rounded_usd),
            unpriced: agents.len() - costs().count(),
            agents,
        }
    }
}

impl NextRequestView {
    pub(crate) fn new(next: &NextRequest, prices: &Prices, now: Timestamp) -> Self {
        let model = next.full_model().map(str::to_owned);
        let Estimate { tokens, cache, price } = next.estimate(prices, now);
        let (cost_usd, price) = price.map(|(usd, source)| (rounded_usd(usd), source)).unzip();
        Self { tokens, model, cache, cost_usd, price }
    }

    /// Whether the request sends a conversation again that was cached before.
    pub(crate) fn has_gone_cold(&self) -> bool {
        match &self.cache {
            CacheState::Cached { .. } | CacheState::Cold { reason: ColdReason::New | ColdReason::Uncached } => false,
            CacheState::Cold { .. } => true,
        }
    }
}
