//! `agent-cli stats`: shows what agents cost, by day, model and instruction file.

use clap::Args;

use crate::app::lists::stats::{self, Input};
use crate::app::view::cost::{StatsView, SumView};
use crate::cli::arguments::since::{Since, since};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::format::table;
use crate::cli::output::{self, hint, print, print_json, tell};
use crate::cli::report::costs;
use crate::core::text::time::past_time;
use crate::local_zone::local_zone;

/// Show what agents cost, by day, model and instruction file
///
/// Counts every attempt that began in this period and is still recorded, whether it was kept, discarded or killed. `gc`
/// and `rm` remove chains with their costs. `≥` marks sums that include an attempt whose cost is not known because it
/// was killed.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  agent-cli stats --since 7d --json | jq .total.cost_usd")]
pub(crate) struct Stats {
    /// Count attempts that began since this time (14:00, 2026-11-20) or this long ago (7d)
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true, default_value = "30d", value_parser = since)]
    since: Since,

    /// Print a JSON object: since, total, days, models, instructions
    #[arg(long)]
    json: bool,
}

impl Stats {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let running = if self.json { None } else { Some("(still running)") };
        let input = Input { since: self.since.time, zone: local_zone(), running };
        let store = context.store()?;
        let app = context.app(&store);
        let StatsView { since, total, days, models, instructions } = stats::stats(&app, &input)?;
        if self.json {
            print_json(&StatsView { since, total, days, models, instructions })?;
            return Ok(ExitStatus::Ok);
        }
        if days.is_empty() {
            tell("no agent has run since then");
            let earlier = Input { since: past_time(EARLIER, app.now, &input.zone).unwrap_or(input.since), ..input };
            if !stats::stats(&app, &earlier)?.days.is_empty() {
                hint(&format!("agent-cli stats --since {EARLIER} looks further back"));
            }
            return Ok(ExitStatus::Ok);
        }
        let is_wide = output::width().is_none_or(|width| width >= WIDE);
        let head = |name: &str| shown(["COST", "REQUESTS", "TIME", "TOKENS", name].map(str::to_owned), is_wide);
        let row = |sum: &SumView, none: &str| shown(cells(sum, none), is_wide);
        let mut rows = Vec::new();
        for (name, sums, none) in
            [("DAY", &days, ""), ("MODEL", &models, "unknown"), ("INSTRUCTIONS", &instructions, "prompts")]
        {
            rows.push(head(name));
            rows.extend(sums.iter().map(|sum| row(sum, none)));
            rows.push(Vec::new());
        }
        rows.push(row(&total, "total"));
        print(&table(&rows))?;
        Ok(ExitStatus::Ok)
    }
}

/// The period to suggest.
const EARLIER: &str = "365d";
/// Terminals with fewer columns only show costs and durations.
const WIDE: usize = 60;

fn shown([cost, requests, time, tokens, name]: [String; 5], is_wide: bool) -> Vec<String> {
    if is_wide { vec![cost, requests, time, tokens, name] } else { vec![cost, time, name] }
}

/// `none` names a sum that has no name.
fn cells(sum: &SumView, none: &str) -> [String; 5] {
    let (spent, usage) = (&sum.cost.0, sum.cost.0.usage);
    let sent = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens;
    let tokens = format!("{sent} → {}", usage.output_tokens);
    let name = sum.name.as_deref().unwrap_or(none).to_owned();
    [spent.dollars(), spent.requests.to_string(), costs::length(spent.time), tokens, name]
}
