//! `agent-cli metrics`: prints metrics for a monitoring system.

use std::fmt::Write;

use clap::Args;

use crate::app::lists::stats::{self, Metrics};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::print;
use crate::core::agent::usage::rounded_usd;

/// Print numbers for Prometheus: chains, questions and costs
///
/// The text exposition format. `gc` and `rm` remove chains with their costs, so every number is a gauge.
#[derive(Debug, Args)]
#[command(after_help = "Example, for the textfile collector of the node exporter, from cron:
  agent-cli metrics > /var/lib/node_exporter/agent-cli.prom")]
pub(crate) struct MetricsCommand {}

impl MetricsCommand {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        let store = context.store()?;
        let app = context.app(&store);
        let metrics = stats::metrics(&app)?;
        let age = metrics.oldest_question.map_or(0, |asked| app.now.duration_since(asked).as_secs().max(0));
        print(&exposition(&metrics, age))?;
        Ok(ExitStatus::Ok)
    }
}

/// Formats the metrics. `age` is the age of the oldest question, in seconds.
fn exposition(metrics: &Metrics, age: i64) -> String {
    let usage = metrics.spent.usage;
    let states =
        metrics.chains.iter().map(|(status, count)| (format!("{{status=\"{}\"}}", status.name()), *count as f64));
    let tokens = [
        ("input", usage.input_tokens),
        ("output", usage.output_tokens),
        ("cache_creation", usage.cache_creation_input_tokens),
        ("cache_read", usage.cache_read_input_tokens),
    ];
    let tokens = tokens.map(|(kind, count)| (format!("{{kind=\"{kind}\"}}"), count as f64));
    let mut text = String::new();
    let mut gauge = |name: &str, help: &str, values: &[(String, f64)]| {
        let _ = write!(text, "# HELP agent_cli_{name} {help}\n# TYPE agent_cli_{name} gauge\n");
        for (labels, value) in values {
            let _ = writeln!(text, "agent_cli_{name}{labels} {value}");
        }
    };
    let one = |value: f64| [(String::new(), value)];
    gauge("chains", "Chains by the state of their first agent.", &states.collect::<Vec<_>>());
    gauge("agents_running", "Agents that work now.", &one(metrics.running as f64));
    let open = metrics.open_questions as f64;
    gauge("questions_open", "Questions, approvals and plans that wait for a person.", &one(open));
    gauge("oldest_question_seconds", "How long the oldest of them has waited; 0: there is none.", &one(age as f64));
    gauge("attempts", "Recorded starts of agents.", &one(metrics.spent.attempts as f64));
    gauge("requests", "Recorded requests to the API.", &one(metrics.spent.requests as f64));
    gauge("tokens", "Recorded tokens.", &tokens);
    let cost = rounded_usd(metrics.spent.cost_usd);
    gauge("cost_usd", "What the recorded attempts cost, as far as it is known.", &one(cost));
    text
}
