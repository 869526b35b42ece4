//! When the agents of a chain worked: a bar for each attempt, and nothing where nothing ran.

use std::collections::HashMap;

use jiff::Timestamp;
use maud::{Markup, html};

use crate::app::App;
use crate::app::error::AppError;
use crate::app::lists::first_words;
use crate::app::lists::tree::ListedTree;
use crate::core::id::FrameId;
use crate::page::views::Target;
use crate::page::views::layout::{clock, line};
use crate::store::{Attempts, Extent};

/// More agents than these are a picture that says nothing.
const MOST: usize = 200;
const WIDTH: f64 = 800.0;
const ROW: usize = 34;
/// The parts of the whole time that can be chosen.
const ZOOMS: [usize; 4] = [1, 2, 4, 16];

pub(super) fn markup(app: &App<'_>, target: &Target, root: FrameId, listed: &ListedTree) -> Result<Markup, AppError> {
    let mut bars: HashMap<FrameId, Vec<(Timestamp, Option<Timestamp>)>> = HashMap::new();
    for attempt in app.store.attempts(Attempts::Of(Extent::Below(root)))? {
        bars.entry(attempt.frame).or_default().push((attempt.began, attempt.ended));
    }
    let all = || bars.values().flatten();
    let runs = all().any(|(_, ended)| ended.is_none());
    let first = all().map(|(began, _)| *began).min();
    let last = all().map(|(began, ended)| ended.unwrap_or(*began)).max();
    let (Some(first), Some(mut last)) = (first, last) else {
        return Ok(html! { p #timeline-row { "No agent has worked yet." } });
    };
    if runs {
        // The picture is sent again only if something was written, so it ends then.
        last = last.max(app.now);
    }
    let (zoom, part) = (target.number("zoom").clamp(1, 1000), target.number("part"));
    let whole = (last.as_millisecond() - first.as_millisecond()).max(1) as f64;
    let (length, from) = (whole / zoom as f64, whole / zoom as f64 * part.min(zoom - 1) as f64);
    let x = |at: Timestamp| {
        (((at.as_millisecond() - first.as_millisecond()) as f64 - from) / length * WIDTH).clamp(0.0, WIDTH)
    };
    let shown: Vec<_> = listed.agents.iter().filter(|agent| bars.contains_key(&agent.id)).take(MOST).collect();
    let height = shown.len() * ROW;
    let words = |id| first_words::of_agent(app.store, id);
    let words = shown.iter().map(|agent| words(agent.id)).collect::<Result<Vec<_>, _>>()?;
    Ok(html! {
        figure #timeline-row {
            figcaption { "From " (clock(first)) " to " (clock(last)) ". Gaps are pauses, in which nothing runs." }
            div.scroll tabindex="0" role="region" aria-label="Timeline" {
                svg viewBox={ "0 0 " (WIDTH) " " (height) } role="img" aria-label="When each agent worked" {
                    @for (at, agent) in shown.iter().enumerate() {
                        @for (began, ended) in bars.get(&agent.id).into_iter().flatten() {
                            @let (left, right) = (x(*began), x(ended.unwrap_or(last)));
                            @if right > 0.0 && left < WIDTH {
                                rect.bar x={ (rounded(left)) } y=(at * ROW + 18) width={ (rounded((right - left).max(2.0))) } height="12"
                                    class=[ended.is_none().then_some("bar runs")] {}
                            }
                        }
                        text x="2" y=(at * ROW + 13) { (line(&agent.task)) @if !words[at].is_empty() { ": " (words[at]) } }
                    }
                }
            }
            @if listed.agents.len() > MOST { p { "The first " (MOST) " agents are shown." } }
        }
    })
}

fn rounded(x: f64) -> f64 {
    (x * 10.0).round() / 10.0
}

/// Links to parts of the time.
pub(super) fn zoom(target: &Target, root: FrameId) -> Markup {
    let (zoom, part) = (target.number("zoom").clamp(1, 1000), target.number("part"));
    let link = |zoom: usize, part: usize| format!("/chain/{root}?zoom={zoom}&part={part}#timeline");
    html! {
        nav.pages aria-label="Zoom" {
            @for wanted in ZOOMS {
                a href=(link(wanted, part * wanted / zoom)) aria-current=[(wanted == zoom).then_some("true")] { (wanted) "×" }
            }
            @if part > 0 { a href=(link(zoom, part - 1)) { "Earlier" } }
            @if part + 1 < zoom { a href=(link(zoom, part + 1)) { "Later" } }
        }
    }
}
