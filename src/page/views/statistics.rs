//! Shows the costs of chains, by day, model and file.

use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};

use crate::app::App;
use crate::app::error::AppError;
use crate::app::fronts::live_view::LiveView;
use crate::app::lists::stats::{self, Input};
use crate::app::view::cost::SumView;
use crate::local_zone::local_zone;
use crate::page::views::Target;
use crate::page::views::layout::{line, rounded};

/// The most bars in a picture.
const MOST: usize = 30;
const WIDTH: f64 = 600.0;

pub(super) fn view(app: &App<'_>, target: &Target) -> Result<LiveView, AppError> {
    let days = i64::try_from(target.number("days").clamp(0, 3650)).unwrap_or(30);
    let days = if days == 0 { 30 } else { days };
    let since = app.now.checked_sub(SignedDuration::from_hours(days * 24)).unwrap_or(Timestamp::MIN);
    let found = stats::stats(app, &Input { since, zone: local_zone(), running: Some("still running") })?;
    let links = html! {
        nav.pages aria-label="Time" {
            @for wanted in [7, 30, 365] {
                a href={ "/statistics?days=" (wanted) } aria-current=[(wanted == days).then_some("true")] { (wanted) " days" }
            }
        }
    };
    let row = html! {
        div #statistics-row {
            p { (found.total.attempts) " attempts, " (found.total.cost.0.in_words()) }
            (bars("By day", &found.days, ""))
            (bars("By model", &found.models, "unknown"))
            (bars("By file", &found.instructions, "prompts"))
        }
    };
    Ok(LiveView::new("Statistics").still(links).live_row("statistics", row))
}

/// `unnamed` is the name of a sum that has none, as in `stats`.
fn bars(title: &str, sums: &[SumView], unnamed: &str) -> Markup {
    let sums = &sums[..sums.len().min(MOST)];
    let dearest = sums.iter().map(|sum| sum.cost.0.cost_usd).fold(0.0, f64::max);
    let width = |usd: f64| rounded(if dearest > 0.0 { usd / dearest * WIDTH } else { 0.0 });
    html! {
        h2 { (title) }
        @if sums.is_empty() { p { "nothing yet" } } @else {
            ul.bars {
                @for sum in sums {
                    li {
                        p { (line(sum.name.as_deref().unwrap_or(unnamed))) ": " (sum.cost.0.in_words()) ", " (sum.attempts) " attempts" }
                        svg viewBox={ "0 0 " (WIDTH) " 10" } preserveAspectRatio="none" aria-hidden="true" {
                            rect.bar width={ (width(sum.cost.0.cost_usd)) } height="10" {}
                        }
                    }
                }
            }
        }
    }
}
