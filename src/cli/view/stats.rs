//! `agent-cli stats`: what agents cost, by day, model and instruction file.

use std::collections::BTreeMap;

use clap::Args;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::app::asker::PersonsTask;
use crate::app::view::cost::CostView;
use crate::app::view::stats::{StatsView, SumView};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::format::table;
use crate::cli::output::{self, hint, print, print_json, tell};
use crate::cli::report::costs;
use crate::core::agent::usage::Spent;
use crate::core::text::duration::duration;
use crate::store::{Counted, Counting};

/// Show what agents cost, by day, model and instruction file
///
/// Counts every attempt that began in this period and is still recorded, whether it was kept, discarded or killed. `gc`
/// and `rm` remove chains with their costs. `≥` marks sums that include an attempt whose cost is not known because it
/// was killed.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  agent-cli stats --since 7d --json | jq .total.cost_usd")]
pub(crate) struct Stats {
    /// Count attempts that began within this time
    #[arg(long, value_name = "DURATION", default_value = "30d", value_parser = duration)]
    since: SignedDuration,

    /// Print a JSON object: since, total, days, models, instructions
    #[arg(long)]
    json: bool,
}

/// Sums, each with what it is about.
type Sums = Vec<(Option<String>, Spent)>;

impl Stats {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        context.asker().may(PersonsTask::SeeCosts)?;
        let since = Timestamp::now().checked_sub(self.since).unwrap_or(Timestamp::MIN);
        let counted = context.store()?.counted(Counting::Since(since))?;
        let zone = TimeZone::system();
        let day = |it: &Counted| Some(it.began.to_zoned(zone.clone()).date().to_string());
        let days = sums(&counted, day, |_, _| std::cmp::Ordering::Equal);
        let dearest = |a: &Spent, b: &Spent| b.cost_usd.total_cmp(&a.cost_usd);
        // Claude Code says it in the end, and nothing before.
        let running = |it: &Counted| Some("(still running)".to_owned()).filter(|_| it.runs && !self.json);
        let models = sums(&counted, |it| it.model.clone().or_else(|| running(it)), dearest);
        let files = sums(&counted, |it| it.file.clone(), dearest);
        let total = counted.iter().fold(Spent::default(), |sum, it| sum.plus(it.spent));
        if self.json {
            let listed = |sums: Sums| sums.into_iter().map(|(name, spent)| as_json(name, spent)).collect();
            print_json(&StatsView {
                since,
                total: as_json(None, total),
                days: listed(days),
                models: listed(models),
                instructions: listed(files),
            })?;
            return Ok(ExitStatus::Ok);
        }
        if counted.is_empty() {
            tell("no agent ran in this time");
            hint("agent-cli stats --since 365d looks further back");
            return Ok(ExitStatus::Ok);
        }
        let is_wide = output::width().is_none_or(|width| width >= WIDE);
        let head = |name: &str| shown(["COST", "REQUESTS", "TIME", "TOKENS", name].map(str::to_owned), is_wide);
        let row = |spent: &Spent, name| shown(cells(spent, name), is_wide);
        let mut rows = Vec::new();
        for (name, sums, none) in [("DAY", days, ""), ("MODEL", models, "unknown"), ("INSTRUCTIONS", files, "prompts")]
        {
            rows.push(head(name));
            rows.extend(sums.into_iter().map(|(name, spent)| row(&spent, name.unwrap_or_else(|| none.to_owned()))));
            rows.push(Vec::new());
        }
        rows.push(row(&total, "total".to_owned()));
        print(&table(&rows))?;
        Ok(ExitStatus::Ok)
    }
}

/// Sums by what `name` says, in this order; those that compare as equal by name.
fn sums(
    counted: &[Counted],
    name: impl Fn(&Counted) -> Option<String>,
    order: impl Fn(&Spent, &Spent) -> std::cmp::Ordering,
) -> Sums {
    let mut sums: BTreeMap<Option<String>, Spent> = BTreeMap::new();
    for it in counted {
        let sum = sums.entry(name(it)).or_default();
        *sum = sum.plus(it.spent);
    }
    let mut sums: Sums = sums.into_iter().collect();
    sums.sort_by(|(_, a), (_, b)| order(a, b));
    sums
}

fn as_json(name: Option<String>, spent: Spent) -> SumView {
    SumView { name, attempts: spent.attempts, cost: CostView(spent) }
}

/// Terminals with fewer columns show only what something cost, and how long it took.
const WIDE: usize = 60;

fn shown([cost, requests, time, tokens, name]: [String; 5], is_wide: bool) -> Vec<String> {
    if is_wide { vec![cost, requests, time, tokens, name] } else { vec![cost, time, name] }
}

fn cells(spent: &Spent, name: String) -> [String; 5] {
    let usage = spent.usage;
    let sent = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens;
    let tokens = format!("{sent} → {}", usage.output_tokens);
    [costs::dollars(spent), spent.requests.to_string(), costs::length(spent.time), tokens, name]
}
