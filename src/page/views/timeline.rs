//! Shows when the agents of a chain worked: a bar for each attempt, and gaps while nothing ran.

use maud::{Markup, html};

use crate::app::App;
use crate::app::error::AppError;
use crate::app::fronts::timeline::{self, MOST};
use crate::app::lists::tree::ListedTree;
use crate::core::id::FrameId;
use crate::page::views::Target;
use crate::page::views::layout::{clock, rounded};

const WIDTH: f64 = 800.0;
const ROW: usize = 34;
/// The numbers of parts into which the whole period can be divided.
const ZOOMS: [usize; 4] = [1, 2, 4, 16];

pub(super) fn markup(app: &App<'_>, target: &Target, root: FrameId, listed: &ListedTree) -> Result<Markup, AppError> {
    let Some(timeline) = timeline::read(app, root, listed, part(target))? else {
        return Ok(html! { p #timeline-row { "No agent has worked yet." } });
    };
    Ok(html! {
        figure #timeline-row {
            figcaption { "From " (clock(timeline.first)) " to " (clock(timeline.last)) ". Gaps are pauses, in which nothing runs." }
            div.scroll tabindex="0" role="region" aria-label="Timeline" {
                svg viewBox={ "0 0 " (WIDTH) " " (timeline.rows.len() * ROW) } role="img" aria-label="When each agent worked" {
                    @for (at, row) in timeline.rows.iter().enumerate() {
                        @for bar in &row.bars {
                            rect.bar.runs[bar.runs] x=(rounded(bar.from * WIDTH)) y=(at * ROW + 18) height="12"
                                width=(rounded(((bar.to - bar.from) * WIDTH).max(2.0))) {}
                        }
                        text x="2" y=(at * ROW + 13) { (row.label) }
                    }
                }
            }
            @if timeline.has_more { p { "The first " (MOST) " agents are shown." } }
        }
    })
}

/// The shown part of the period, and the number of parts.
fn part(target: &Target) -> (usize, usize) {
    let parts = target.number("zoom").clamp(1, 1000);
    (target.number("part").min(parts - 1), parts)
}

/// Links to other parts of the period.
pub(super) fn zoom(target: &Target, root: FrameId) -> Markup {
    let (part, parts) = part(target);
    let link = |parts: usize, part: usize| format!("/chain/{root}?zoom={parts}&part={part}#timeline");
    html! {
        nav.pages aria-label="Zoom" {
            @for wanted in ZOOMS {
                a href=(link(wanted, part * wanted / parts)) aria-current=[(wanted == parts).then_some("true")] { (wanted) "×" }
            }
            @if part > 0 { a href=(link(parts, part - 1)) { "Earlier" } }
            @if part + 1 < parts { a href=(link(parts, part + 1)) { "Later" } }
        }
    }
}
