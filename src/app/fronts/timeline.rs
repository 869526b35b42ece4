//! Computes when the agents of a chain worked.

use std::collections::HashMap;

use jiff::Timestamp;

use crate::app::App;
use crate::app::error::AppError;
use crate::app::lists::first_words;
use crate::app::lists::tree::ListedTree;
use crate::app::view::agent::AgentView;
use crate::core::id::FrameId;
use crate::core::text::escape;
use crate::store::{Attempts, Extent};

/// A part of the period in which agents worked.
#[derive(Debug)]
pub(crate) struct Timeline {
    pub(crate) first: Timestamp,
    pub(crate) last: Timestamp,
    /// The agents that have worked, parents before their children.
    pub(crate) rows: Vec<Row>,
    /// Whether there are more agents.
    pub(crate) has_more: bool,
}

#[derive(Debug)]
pub(crate) struct Row {
    /// The agent's task and the first words of its instructions, escaped.
    pub(crate) label: String,
    pub(crate) bars: Vec<Bar>,
}

/// An attempt. No process runs between two attempts.
#[derive(Debug, PartialEq)]
pub(crate) struct Bar {
    /// The beginning and end within the shown part, from 0 to 1.
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) runs: bool,
}

/// The most agents in a picture. More would be unreadable.
pub(crate) const MOST: usize = 200;

/// Returns part number `part` of the period, which is divided into `parts` equal parts. `None` if no agent has worked.
pub(crate) fn read(
    app: &App<'_>,
    root: FrameId,
    listed: &ListedTree,
    (part, parts): (usize, usize),
) -> Result<Option<Timeline>, AppError> {
    let mut spans: HashMap<FrameId, Vec<(Timestamp, Option<Timestamp>)>> = HashMap::new();
    for attempt in app.store.attempts(Attempts::Of(Extent::Below(root)))? {
        spans.entry(attempt.frame).or_default().push((attempt.began, attempt.ended));
    }
    let all = || spans.values().flatten();
    let Some(first) = all().map(|(began, _)| *began).min() else { return Ok(None) };
    let runs = all().any(|(_, ended)| ended.is_none());
    // The picture ends at the last write, because it is sent again only after a write.
    let last =
        all().map(|(began, ended)| ended.unwrap_or(*began)).chain(runs.then_some(app.now)).max().unwrap_or(first);
    let bar = |(began, ended): (Timestamp, Option<Timestamp>)| {
        let whole = (last.as_millisecond() - first.as_millisecond()).max(1) as f64;
        let at = |at: Timestamp| {
            let of_whole = (at.as_millisecond() - first.as_millisecond()) as f64 / whole;
            (of_whole * parts as f64 - part as f64).clamp(0.0, 1.0)
        };
        let bar = Bar { from: at(began), to: at(ended.unwrap_or(last)), runs: ended.is_none() };
        (bar.to > 0.0 && bar.from < 1.0).then_some(bar)
    };
    let mut worked = listed.agents.iter().filter_map(|agent| Some((agent, spans.remove(&agent.id)?)));
    let row = |(agent, spans): (&AgentView, Vec<_>)| {
        let words = first_words::of_agent(app.store, agent.id)?;
        let task = escape::shortened(agent.task.trim());
        let label = if words.is_empty() { task } else { format!("{task}: {words}") };
        Ok::<_, AppError>(Row { label, bars: spans.into_iter().filter_map(bar).collect() })
    };
    let rows = worked.by_ref().take(MOST).map(row).collect::<Result<_, _>>()?;
    Ok(Some(Timeline { first, last, rows, has_more: worked.next().is_some() }))
}
