//! The options that set the limits of a tree.

use clap::Args;
use jiff::SignedDuration;

use crate::cli::arguments::at_least_one;
use crate::core::chain::limits::{self, NewLimits};
use crate::core::text::time::duration;

/// Limits of a tree: set by `spawn` for a new one, changed by `resume` for an existing one.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Limits of the whole chain")]
pub(crate) struct LimitOptions {
    /// How deep agents may be nested [default: 64]
    #[arg(long, value_name = "N", value_parser = at_least_one::<u32>)]
    max_depth: Option<u32>,

    /// How many agents the chain may have [default: 256]
    ///
    /// The default is --max-depth if that is larger.
    #[arg(long, value_name = "N", value_parser = at_least_one::<u32>)]
    max_agents: Option<u32>,

    /// How many agents may run at once [default: 4]
    ///
    /// It does not matter which commands run them.
    #[arg(long, value_name = "N", value_parser = at_least_one::<u32>)]
    max_parallel: Option<u32>,

    /// Stop starting agents once this much has been spent [default: no limit]
    #[arg(long, value_name = "USD", value_parser = dollars)]
    max_budget_usd: Option<f64>,

    /// Show an agent as stalled after this long without events [default: 10m]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    stall_after: Option<SignedDuration>,
}

impl LimitOptions {
    pub(crate) fn given(self) -> NewLimits {
        let Self { max_depth, max_agents, max_parallel, max_budget_usd, stall_after } = self;
        let stall_after_s = stall_after.map(|after| after.as_secs().unsigned_abs());
        NewLimits { max_depth, max_agents, max_parallel, max_budget_usd, stall_after_s }
    }
}

fn dollars(text: &str) -> Result<f64, String> {
    limits::budget_in(text).map_err(|wanted| format!("give {wanted}"))
}
