//! Lists chains.

use maud::{Markup, html};

use crate::app::App;
use crate::app::error::AppError;
use crate::app::fronts::chain_list::{self, Show};
use crate::app::fronts::live_view::LiveView;
use crate::app::lists::board::Section;
use crate::app::view::chain::ChainView;
use crate::core::text::escape;
use crate::page::views::Target;
use crate::page::views::layout::{line, state, time};

pub(super) fn view(app: &App<'_>, target: &Target) -> Result<LiveView, AppError> {
    let wanted = target.value("show").unwrap_or_default();
    let show = Show::ALL.into_iter().find(|show| key(*show) == wanted).unwrap_or_default();
    let (q, part) = (target.value("q"), target.number("page"));
    let found = chain_list::chains(app, show, q, part)?;
    let mut rows: Vec<(String, Markup)> = Vec::new();
    let mut last = None;
    for chain in &found.chains {
        let section = Section::of(chain.state);
        if show != Show::All && last.replace(section) != Some(section) {
            let id = format!("g-{}", section.title().to_lowercase().replace(' ', "-"));
            rows.push((id.clone(), html! { li.group id=(id) { h2 { (section.title()) } } }));
        }
        rows.push((format!("c-{}", chain.id), row(app, chain)));
    }
    if rows.is_empty() {
        let what = if found.is_empty { "no chains yet" } else { "no such chain" };
        rows.push(("none".into(), html! { li #none { (what) } }));
    }
    let times = found.chains.iter().filter_map(|chain| chain.changes_at);
    let mut view = LiveView::new("Chains").still(filters(q, show)).live("chains", "ul", rows).changes_at(times);
    let doing = found.chains.iter().flat_map(|chain| chain.doing.keys());
    view.follows = doing.map(|id| app.store.dir().printed(*id)).collect();
    let q: String = q.unwrap_or_default().bytes().map(|byte| format!("%{byte:02x}")).collect();
    let link = |part: usize| format!("/?show={}&q={q}&page={part}", key(show));
    Ok(view.still(html! {
        nav.pages aria-label="More chains" {
            @if part > 0 { a rel="prev" href=(link(part - 1)) { "Newer" } }
            @if found.has_more { a rel="next" href=(link(part + 1)) { "Older" } }
        }
    }))
}

/// The name of a filter in addresses.
fn key(show: Show) -> &'static str {
    match show {
        Show::Open => "",
        Show::Section(Section::NeedsYou) => "needs",
        Show::Section(Section::Working) => "working",
        Show::Section(Section::CanContinue) => "continue",
        Show::Section(Section::Waiting) => "waiting",
        Show::Section(Section::Ended) => "ended",
        Show::Done => "done",
        Show::All => "all",
    }
}

fn name(show: Show) -> &'static str {
    match show {
        Show::Open => "All that are not done",
        Show::Section(section) => section.title(),
        Show::Done => "Done",
        Show::All => "All",
    }
}

fn row(app: &App<'_>, chain: &ChainView) -> Markup {
    html! {
        li.item id={ "c-" (chain.id) } {
            a.title href={ "/chain/" (chain.id) } { (line(chain.name.as_deref().unwrap_or(&chain.task))) }
            (state(chain.state, app.now))
            @if chain.name.is_some() { p { (line(&chain.task)) } }
            @if let Some((asked, _)) = chain.asked() { p { (line(&asked)) } }
            @if chain.open_questions > 0 { p { a href="/inbox" { (chain.open_questions) " open in the inbox" } } }
            @for doing in chain.doing.values().take(3) { p.doing { (line(&doing.words(app.now))) } }
            @if let Some(error) = &chain.error { p.error { (line(error)) } }
            p.facts {
                code { (chain.id.short()) } " · " (chain.agents) @if chain.agents == 1 { " agent" } @else { " agents" }
                " · " (chain.cost.0.in_words()) " · " (time(chain.since)) " · " (line(&chain.cwd.display().to_string()))
            }
        }
    }
}

fn filters(q: Option<&str>, show: Show) -> Markup {
    html! {
        form.filters role="search" method="get" action="/" {
            label { "Find " input type="search" name="q" value=[q.map(escape::one_line)]; }
            label {
                "Show "
                select name="show" {
                    @for other in Show::ALL { option value=(key(other)) selected[other == show] { (name(other)) } }
                }
            }
            button { "Find" }
        }
    }
}
