//! All chains, and the form that starts one.

use maud::{Markup, html};

use crate::app::App;
use crate::app::error::AppError;
use crate::app::lists::chains::{self, Input};
use crate::app::view::chain::{ChainState, ChainView};
use crate::core::chain::frame_state::AgentStatus;
use crate::core::chain::waiting_on::shown_state::Actor;
use crate::core::text::escape;
use crate::page::views::layout::{cost, group, line, state, time};
use crate::page::views::{Section, Target, View};
use crate::store::ChainFilter;

/// The chains on one page.
const MOST: usize = 50;

const FILTERS: [(&str, &str); 7] = [
    ("", "All that are not done"),
    ("needs", "Needs you"),
    ("working", "Working"),
    ("continue", "Can continue"),
    ("waiting", "Waiting"),
    ("done", "Done"),
    ("all", "All"),
];

pub(super) fn view(app: &App<'_>, target: &Target) -> Result<View, AppError> {
    let (show, page) = (target.value("show").unwrap_or_default(), target.number("page"));
    let groups: &[&str] = match show {
        "needs" => &["Needs you"],
        "working" => &["Working"],
        "continue" => &["Can continue"],
        "waiting" => &["Waiting"],
        _ => &[],
    };
    let input = Input {
        with_done: matches!(show, "all" | "done"),
        all_projects: true,
        states: if show == "done" { vec![ChainState::Agent(AgentStatus::Done)] } else { Vec::new() },
        by_state: show != "all",
        filter: ChainFilter::default(),
        matching: target.value("q").map(str::to_owned),
        // Groups are only known after all chains were looked at.
        skip: if groups.is_empty() { page.saturating_mul(MOST) } else { 0 },
        most: groups.is_empty().then_some(MOST),
    };
    let found = chains::chains(app, &input)?;
    let is_meant = |chain: &&ChainView| groups.is_empty() || groups.contains(&group(chain.state.actor()));
    let chains: Vec<&ChainView> = found.chains.iter().filter(is_meant).collect();
    let mut rows: Vec<(String, Markup)> = Vec::new();
    let mut last = None;
    for chain in &chains {
        let heading = group(chain.state.actor());
        if show != "all" && last != Some(heading) {
            last = Some(heading);
            let id = format!("g-{}", heading.to_lowercase().replace(' ', "-"));
            rows.push((id.clone(), html! { li.group id=(id) { h2 { (heading) } } }));
        }
        rows.push((format!("c-{}", chain.id), row(app, chain)));
    }
    if chains.is_empty() {
        let what = if found.omitted.is_empty { "no chains yet" } else { "no such chain" };
        rows.push(("none".into(), html! { li #none { (what) } }));
    }
    let mut view = View::new("Chains", Section::Chains).still(filters(target, show)).live("chains", "ul", rows);
    view.follows = chains.iter().flat_map(|chain| chain.doing.keys()).map(|id| app.store.dir().printed(*id)).collect();
    Ok(view.still(pages(target, show, page, found.omitted.more)))
}

fn row(app: &App<'_>, chain: &ChainView) -> Markup {
    let name = chain.name.clone().unwrap_or_else(|| chain.task.clone());
    html! {
        li.item id={ "c-" (chain.id) } {
            a.title href={ "/chain/" (chain.id) } { (line(&name)) }
            (state(chain.state, app.now))
            @if chain.name.is_some() { p { (line(&chain.task)) } }
            @if chain.open_questions > 0 { p { a href="/inbox" { (chain.open_questions) " open in the inbox" } } }
            @for doing in chain.doing.values().take(3) { p.doing { (line(&doing.words(app.now))) } }
            @if let Some(error) = &chain.error { p.error { (line(error)) } }
            p.facts {
                code { (chain.id.short()) } " · " (chain.agents) @if chain.agents == 1 { " agent" } @else { " agents" }
                " · " (cost(&chain.cost)) " · " (time(chain.since)) " · " (line(&chain.cwd.display().to_string()))
            }
        }
    }
}

fn filters(target: &Target, show: &str) -> Markup {
    html! {
        form.filters role="search" method="get" action="/" {
            label { "Find " input type="search" name="q" value=[target.value("q").map(escape::one_line)]; }
            label {
                "Show "
                select name="show" {
                    @for (key, name) in FILTERS { option value=(key) selected[key == show] { (name) } }
                }
            }
            button { "Find" }
        }
    }
}

fn pages(target: &Target, show: &str, page: usize, more: u64) -> Markup {
    let link = |page: usize| {
        let q: String = target.value("q").unwrap_or_default().bytes().map(|byte| format!("%{byte:02x}")).collect();
        let show = show.chars().filter(char::is_ascii_lowercase).collect::<String>();
        format!("/?show={show}&q={q}&page={page}")
    };
    html! {
        @if page > 0 || more > 0 {
            nav.pages aria-label="More chains" {
                @if page > 0 { a rel="prev" href=(link(page - 1)) { "Newer" } }
                @if more > 0 { a rel="next" href=(link(page + 1)) { "Older (" (more) ")" } }
            }
        }
    }
}

/// The form that starts a chain.
pub(super) fn start_form(target: &Target) -> Markup {
    html! {
        @if target.read_only {
            p { "This page is read-only." }
        } @else {
            form.wide method="post" action="/start" {
                label { "Prompt" textarea name="prompt" rows="6" {} }
                label { "or a file with instructions" input name="file" placeholder="/path/to/task.md"; }
                label { "Directory in which the agent works" input name="directory" required placeholder="/path/to/project"; }
                label { "Name" input name="name"; }
                label { "Model" input name="model"; }
                label { "Largest cost in US dollars" input name="budget" inputmode="decimal"; }
                button { "Start" }
            }
        }
    }
}

/// Whether the chain is one that a person can stop.
pub(super) fn is_live(actor: Actor) -> bool {
    actor != Actor::Nobody
}
