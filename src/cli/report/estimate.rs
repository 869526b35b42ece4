//! Formats estimates of what continuing a chain would send and cost.

use jiff::Timestamp;

use crate::app::view::estimate::{AfreshPart, AgentEstimateView, EstimateView, NextRequestView, Starts};
use crate::cli::output::format::{moment, one_line, time_since};
use crate::cli::output::{self, PrintError, print, print_json};
use crate::cli::report::costs::usd;
use crate::core::agent::usage::prices::estimate::CacheState;
use crate::core::agent::usage::prices::{LISTED_ON, PriceSource};
use crate::core::text::wrap::wrapped;
use crate::local_zone::local_zone;

/// The indentation of continuation lines.
const HANGING: usize = 4;

/// Prints the estimate as text or JSON.
pub(crate) fn print_estimate(estimate: &EstimateView, json: bool, now: Timestamp) -> Result<(), PrintError> {
    if json { print_json(estimate) } else { print(&text(estimate, now, output::width())) }
}

fn text(estimate: &EstimateView, now: Timestamp, width: Option<usize>) -> String {
    if estimate.agents.is_empty() {
        return "no agent would be started\n".to_owned();
    }
    let mut lines: Vec<String> = estimate.agents.iter().flat_map(|agent| lines_of(agent, now)).collect();
    if estimate.agents.len() > 1 {
        lines.push(format!("in all: {}, {}", tokens(estimate.tokens), total(estimate)));
    }
    lines.push("these are first requests: what agents do then costs more".to_owned());
    let wrapped = lines.into_iter().flat_map(|line| match width {
        Some(width) => wrapped(&line, width, HANGING),
        None => vec![line],
    });
    wrapped.map(|line| line + "\n").collect()
}

fn lines_of(agent: &AgentEstimateView, now: Timestamp) -> [String; 3] {
    let AgentEstimateView { id, task, starts, afresh, request } = agent;
    let part = match afresh {
        Some(AfreshPart::Summary) => " (its summary)",
        Some(AfreshPart::NewSession) => " (its new session, without the summary)",
        None => "",
    };
    let id = id.map(|id| id.short().to_string() + "  ").unwrap_or_default();
    let starts = match starts {
        Starts::Now => "now",
        Starts::Later => "later",
    };
    let (sends, cache) = (sends(request), cache(request, now));
    [format!("{id}{}{part}", one_line(task)), format!("  {starts}: {sends}"), format!("  {cache}")]
}

/// Describes what a request sends and costs.
fn sends(request: &NextRequestView) -> String {
    format!("{}, {}", tokens(request.tokens), cost(request))
}

fn tokens(known: Option<u64>) -> String {
    known.map_or_else(|| "an unknown number of tokens".to_owned(), |tokens| format!("{tokens} tokens"))
}

fn cost(request: &NextRequestView) -> String {
    let (Some(cost), Some(price)) = (request.cost_usd, request.price) else { return "price unknown".to_owned() };
    let price = match price {
        PriceSource::Configured => "as set in prices".to_owned(),
        PriceSource::Reported => "as reported before".to_owned(),
        PriceSource::Listed => format!("as listed on {LISTED_ON}"),
    };
    format!("{}, {price}", about(cost))
}

fn cache(request: &NextRequestView, now: Timestamp) -> String {
    match &request.cache {
        CacheState::Cached { until } => format!("cached until {}", moment(*until, now, &local_zone())),
        CacheState::Cold { reason } => format!("cold: {}", one_line(&reason.words(|at| time_since(at, now)))),
    }
}

/// Describes what an agent's next request sends and costs, on one line.
pub(crate) fn words(request: &NextRequestView, now: Timestamp) -> String {
    format!("{}, {}", sends(request), cache(request, now))
}

fn about(cost: f64) -> String {
    let cost = usd(cost);
    cost.strip_prefix('<').map_or_else(|| format!("about {cost}"), |cost| format!("less than {cost}"))
}

fn total(estimate: &EstimateView) -> String {
    let EstimateView { cost_usd, unpriced, .. } = estimate;
    match (cost_usd, unpriced) {
        (None, _) => "price unknown".to_owned(),
        (Some(cost), 0) => about(*cost),
        (Some(cost), unknown) => format!("at least {}: {unknown} at a price unknown", usd(*cost)),
    }
}

/// Returns a warning if agents are about to start whose conversations are no longer cached, and sending these costs more than
/// `above_usd`.
pub(crate) fn warning(cold: &EstimateView, above_usd: f64, now: Timestamp) -> Option<String> {
    let cost = cold.cost_usd.filter(|cost| *cost > above_usd)?;
    let reason = |agent: &AgentEstimateView| match &agent.request.cache {
        CacheState::Cold { reason } => Some(one_line(&reason.words(|at| time_since(at, now)))),
        CacheState::Cached { .. } => None,
    };
    let mut reasons: Vec<String> = cold.agents.iter().filter_map(reason).collect();
    reasons.dedup();
    let (tokens, cost, reasons) = (tokens(cold.tokens), usd(cost), reasons.join(", "));
    Some(format!("continuing sends {tokens} that are no longer cached, for about {cost}: {reasons}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::agent::usage::prices::estimate::ColdReason;
    use crate::core::id::FrameId;

    fn now() -> Timestamp {
        "2026-11-25T12:00:00Z".parse().unwrap()
    }

    fn agent(task: &str, cost_usd: Option<f64>, reason: ColdReason) -> AgentEstimateView {
        let price = cost_usd.map(|_| PriceSource::Reported);
        let cache = CacheState::Cold { reason };
        let model = Some("claude-opus-5".to_owned());
        let request = NextRequestView { tokens: Some(181_204), model, cache, cost_usd, price };
        AgentEstimateView { id: None, task: task.to_owned(), starts: Starts::Now, afresh: None, request }
    }

    fn idle() -> ColdReason {
        ColdReason::Idle { last_request: "2026-11-22T12:00:00Z".parse().unwrap() }
    }

    #[test]
    fn each_agent_has_its_tokens_its_cost_and_why_it_is_cold() {
        let changed = ColdReason::Version { from: "2.1.330".to_owned(), to: "2.1.334".to_owned() };
        let estimate =
            EstimateView::new(None, vec![agent("leaf.md", Some(1.1325), idle()), agent("a\tb", None, changed)]);
        insta::assert_snapshot!(text(&estimate, now(), None), @r#"
        leaf.md
          now: 181204 tokens, about $1.13, as reported before
          cold: last request 3 d ago
        a\tb
          now: 181204 tokens, price unknown
          cold: claude 2.1.330 → 2.1.334
        in all: 362408 tokens, at least $1.13: 1 at a price unknown
        these are first requests: what agents do then costs more
        "#);
        let narrow = text(&estimate, now(), Some(40));
        assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
        assert!(narrow.contains("\n    reported before\n"), "nothing is cut off: {narrow}");
    }

    #[test]
    fn nothing_that_is_unknown_costs_nothing() {
        let estimate = EstimateView::new(Some(FrameId::random()), vec![agent("x", None, ColdReason::New)]);
        assert!(!text(&estimate, now(), None).contains('$'));
        assert_eq!(total(&estimate), "price unknown");
        assert_eq!(text(&EstimateView::new(None, vec![]), now(), None), "no agent would be started\n");
    }

    #[test]
    fn a_warning_names_the_reasons_once_the_cost_is_above_the_sum() {
        let two = EstimateView::new(None, vec![agent("a", Some(0.6), idle()), agent("b", Some(0.6), idle())]);
        insta::assert_snapshot!(warning(&two, 1.0, now()).unwrap(), @"continuing sends 362408 tokens that are no longer cached, for about $1.20: last request 3 d ago");
        assert_eq!(warning(&two, 1.2, now()), None);
        assert_eq!(warning(&EstimateView::new(None, vec![agent("a", None, idle())]), 1.0, now()), None);
    }
}
