//! Limits that apply to a whole tree, whichever process starts its agents.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// How long a running agent may be silent before a person should look, by default.
const STALL_AFTER: SignedDuration = SignedDuration::from_mins(10);

/// How far a chain may grow, and what it may use. Set when it is started, and changed for all of it at once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Limits {
    /// How deep agents may be nested, the first one included.
    pub max_depth: u32,
    /// Agents in the chain.
    pub max_agents: u32,
    /// Agents that run at the same time.
    pub max_parallel: u32,
    /// US dollars: no agent is started once this much has been spent. `None`: no limit.
    pub max_budget_usd: Option<f64>,
    /// How many seconds an agent may be silent before it is shown as stalled. `None`: ten minutes. It stops nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall_after_s: Option<u64>,
}

/// New values for some of the [`Limits`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct NewLimits {
    /// For [`Limits::max_depth`].
    pub max_depth: Option<u32>,
    /// For [`Limits::max_agents`].
    pub max_agents: Option<u32>,
    /// For [`Limits::max_parallel`].
    pub max_parallel: Option<u32>,
    /// For [`Limits::max_budget_usd`].
    pub max_budget_usd: Option<f64>,
    /// For [`Limits::stall_after_s`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall_after_s: Option<u64>,
}

/// An amount of US dollars that can be a budget: finite, and above 0.
pub(crate) fn budget(usd: f64) -> Result<f64, &'static str> {
    if usd.is_finite() && usd > 0.0 { Ok(usd) } else { Err(BUDGET) }
}

/// The budget that a text names, in US dollars.
pub(crate) fn budget_in(text: &str) -> Result<f64, &'static str> {
    text.trim().parse().map_err(|_| BUDGET).and_then(budget)
}

pub(crate) const BUDGET: &str = "an amount of US dollars above 0, such as 2.50";

/// Why a tree may not grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitReached {
    /// It would be too deep.
    #[error("the chain would be more than {0} agents deep, which is its limit")]
    Depth(u32),
    /// It would have too many frames.
    #[error("the chain would have more than {0} agents, which is its limit")]
    Agents(u32),
}

impl Limits {
    /// Whether a tree of `frames` frames may have `more` of them at `depth`. Groups are not counted.
    pub(crate) fn admit(self, depth: u32, frames: u32, more: u32) -> Result<(), LimitReached> {
        if depth > self.max_depth {
            return Err(LimitReached::Depth(self.max_depth));
        }
        if frames.saturating_add(more) > self.max_agents {
            return Err(LimitReached::Agents(self.max_agents));
        }
        Ok(())
    }

    /// The stricter of each limit.
    pub(crate) fn stricter(self, other: Self) -> Self {
        let budgets = [self.max_budget_usd, other.max_budget_usd].into_iter().flatten();
        Self {
            max_depth: self.max_depth.min(other.max_depth),
            max_agents: self.max_agents.min(other.max_agents),
            max_parallel: self.max_parallel.min(other.max_parallel),
            max_budget_usd: budgets.reduce(f64::min),
            stall_after_s: self.stall_after_s,
        }
    }

    /// How long an agent may be silent before it is shown as stalled.
    pub(crate) fn stall_after(self) -> SignedDuration {
        let given = self.stall_after_s.map(|seconds| SignedDuration::from_secs(seconds.try_into().unwrap_or(i64::MAX)));
        given.unwrap_or(STALL_AFTER)
    }

    /// These limits with the new values. A chain that may be deeper may also have as many frames.
    pub(crate) fn changed(self, new: NewLimits) -> Self {
        let max_depth = new.max_depth.unwrap_or(self.max_depth);
        Self {
            max_depth,
            max_agents: new.max_agents.unwrap_or(self.max_agents.max(max_depth)),
            max_parallel: new.max_parallel.unwrap_or(self.max_parallel),
            max_budget_usd: new.max_budget_usd.or(self.max_budget_usd),
            stall_after_s: new.stall_after_s.or(self.stall_after_s),
        }
    }
}

impl NewLimits {
    /// These, and where there is none, those of `other`.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            max_depth: self.max_depth.or(other.max_depth),
            max_agents: self.max_agents.or(other.max_agents),
            max_parallel: self.max_parallel.or(other.max_parallel),
            max_budget_usd: self.max_budget_usd.or(other.max_budget_usd),
            stall_after_s: self.stall_after_s.or(other.stall_after_s),
        }
    }

    /// Whether there is any new value.
    pub(crate) fn any(self) -> bool {
        self != Self::default()
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_depth: 64, max_agents: 256, max_parallel: 4, max_budget_usd: None, stall_after_s: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_grows_up_to_its_limits() {
        let limits = Limits { max_depth: 3, max_agents: 5, ..Limits::default() };
        assert_eq!(limits.admit(3, 4, 1), Ok(()));
        assert_eq!(limits.admit(4, 4, 1), Err(LimitReached::Depth(3)));
        assert_eq!(limits.admit(3, 5, 1), Err(LimitReached::Agents(5)));
        assert_eq!(limits.admit(3, 2, 3), Ok(()));
        assert_eq!(limits.admit(3, 3, 3), Err(LimitReached::Agents(5)));
    }

    #[test]
    fn what_is_not_changed_stays() {
        let limits = Limits { max_depth: 3, max_budget_usd: Some(1.5), ..Limits::default() };
        assert_eq!(limits.changed(NewLimits::default()), limits);
        let new = NewLimits { max_parallel: Some(1), max_budget_usd: Some(2.0), ..NewLimits::default() };
        let changed = Limits { max_parallel: 1, max_budget_usd: Some(2.0), ..limits };
        assert_eq!((new.any(), limits.changed(new)), (true, changed));
        assert!(!NewLimits::default().any());
        let deeper = NewLimits { max_depth: Some(1000), ..NewLimits::default() };
        assert_eq!(limits.changed(deeper).max_agents, 1000);
        assert_eq!(limits.changed(NewLimits { max_agents: Some(7), ..deeper }).max_agents, 7);
    }

    #[test]
    fn limits_of_older_versions_are_read() {
        let read: Limits = serde_json::from_str(r#"{"max_depth":3,"max_agents":5}"#).unwrap();
        assert_eq!(read, Limits { max_depth: 3, max_agents: 5, ..Limits::default() });
    }
}
