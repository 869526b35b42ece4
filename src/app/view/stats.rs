//! What agents cost, by day, model and instruction file.

use jiff::Timestamp;
use serde::Serialize;

use crate::app::view::cost::CostView;

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct StatsView {
    /// Attempts that began before are not counted.
    pub(crate) since: Timestamp,
    pub(crate) total: SumView,
    pub(crate) days: Vec<SumView>,
    pub(crate) models: Vec<SumView>,
    pub(crate) instructions: Vec<SumView>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SumView {
    /// The day, model or file; `null`: none is known, or there was a prompt instead of a file.
    pub(crate) name: Option<String>,
    pub(crate) attempts: u64,
    #[serde(flatten)]
    pub(crate) cost: CostView,
}
