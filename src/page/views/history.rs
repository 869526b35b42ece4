//! Shows what agents asked, who answered, and what followed.

use maud::{Markup, html};

use crate::app::App;
use crate::app::error::AppError;
use crate::app::fronts::live_view::LiveView;
use crate::app::lists::history::{self, Input};
use crate::app::view::exchange::{ExchangeView, RecordKind, RecordView};
use crate::app::view::question::AskedForView;
use crate::page::views::Target;
use crate::page::views::layout::{line, quote, time};

const MOST: usize = 100;

pub(super) fn view(app: &App<'_>, target: &Target) -> Result<LiveView, AppError> {
    let input =
        Input { id: target.value("of").map(str::to_owned), all_projects: true, most: Some(MOST), ..Input::default() };
    let mut found = history::history(app, &input)?;
    found.exchanges.reverse();
    let mut rows: Vec<_> = found.exchanges.iter().map(|it| (format!("h-{}", it.id), row(it))).collect();
    if rows.is_empty() {
        rows.push(("none".into(), html! { li #none { "no questions yet" } }));
    }
    Ok(LiveView::new("History").live("history", "ul", rows))
}

fn row(exchange: &ExchangeView) -> Markup {
    let asked = match &exchange.shown {
        AskedForView::Question(form) => &form.question,
        AskedForView::Permission { question, .. } | AskedForView::Plan { question, .. } => question,
    };
    html! {
        li.item id={ "h-" (exchange.id) } {
            a.title href={ "/question/" (exchange.id) } { (line(asked)) }
            p.facts { a href={ "/chain/" (exchange.chain) } { (line(&exchange.task)) } " · asked " (time(exchange.asked)) }
            @for record in &exchange.records { (of_record(record)) }
        }
    }
}

fn of_record(record: &RecordView) -> Markup {
    let what = match record.what {
        RecordKind::Answered => "Answered",
        RecordKind::AnswerReplaced => "Replaced by a new answer",
        RecordKind::Expired => "Expired",
        RecordKind::Withdrawn => "Withdrawn",
    };
    html! {
        p { (what) " " (time(record.at)) @if let Some(by) = &record.by { " by " (line(&by.name())) } }
        @if let Some(answer) = &record.answer { (quote(answer)) }
    }
}
