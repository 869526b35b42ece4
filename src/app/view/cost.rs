//! The views of costs, of single agents and in total.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::core::agent::usage::{Spending, Spent, Usage, rounded_usd};

/// What attempts cost. Its fields are merged into the object that contains it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(into = "CostFields")]
pub(crate) struct CostView(pub Spent);

#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Cost"))]
struct CostFields {
    /// Tokens.
    usage: Usage,
    /// US dollars, rounded to a millionth.
    cost_usd: f64,
    /// Whether a `claude` was killed before it reported its cost: the other figures are lower bounds then.
    estimated: bool,
    /// Responses of the API.
    requests: u64,
    /// How long `claude` ran, all processes together, rounded to a millisecond.
    seconds: f64,
}

impl From<CostView> for CostFields {
    fn from(CostView(spent): CostView) -> Self {
        let Spent { usage, cost_usd, estimated, requests, attempts: _, time } = spent;
        Self { usage, cost_usd: rounded_usd(cost_usd), estimated, requests, seconds: time.as_millis() as f64 / 1e3 }
    }
}

/// The cost of one attempt, with its duration.
pub(crate) fn of_attempt(spending: &Spending, began: Timestamp, ended: Option<Timestamp>, now: Timestamp) -> Spent {
    let Spending { usage, requests, usd, estimated } = *spending;
    let time = ended.unwrap_or(now).duration_since(began).max(SignedDuration::ZERO);
    Spent { usage, cost_usd: usd, estimated, requests, attempts: 1, time }
}

#[cfg(test)]
impl schemars::JsonSchema for CostView {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        CostFields::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        CostFields::json_schema(generator)
    }
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct StatsView {
    /// Earlier attempts are not counted.
    pub(crate) since: Timestamp,
    pub(crate) total: SumView,
    pub(crate) days: Vec<SumView>,
    pub(crate) models: Vec<SumView>,
    pub(crate) instructions: Vec<SumView>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SumView {
    /// The day, model or file; `null`: unknown, or there was a prompt instead of a file.
    pub(crate) name: Option<String>,
    pub(crate) attempts: u64,
    #[serde(flatten)]
    pub(crate) cost: CostView,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_and_time_are_rounded() {
        let spent = Spent { cost_usd: 0.1 + 0.2, time: SignedDuration::new(1, 234_567_891), ..Spent::default() };
        let json = serde_json::to_value(CostView(spent)).unwrap();
        assert_eq!((&json["cost_usd"], &json["seconds"]), (&0.3.into(), &1.234.into()));
    }
}
