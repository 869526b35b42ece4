//! Shows one chain: its agents as a tree, and when they worked.

use std::collections::HashMap;

use maud::{Markup, html};

use crate::app::App;
use crate::app::error::AppError;
use crate::app::fronts::live_view::LiveView;
use crate::app::lists::tree::{self, Input, ListedTree};
use crate::app::view::agent::AgentView;
use crate::core::chain::waiting_on::shown_state::Actor;
use crate::core::id::FrameId;
use crate::page::views::layout::{block, button, form, line, state, time};
use crate::page::views::{Target, timeline};
use crate::store::ChainOf;

/// The deepest indentation. Deeper agents are not indented further.
const DEEPEST: usize = 8;

pub(super) fn view(app: &App<'_>, target: &Target, id: FrameId) -> Result<LiveView, AppError> {
    let ChainOf { root, name, .. } = app.store.chain_of(id)?;
    let input = Input { id: Some(root.to_string()), ..Input::default() };
    let found = tree::tree(app, &input)?;
    let Some(listed) = found.trees.first() else { return Ok(LiveView::new("Chain")) };
    let task = listed.agents.first().map(|agent| agent.task.clone()).unwrap_or_default();
    let is_abandoned = listed.tree.all().any(|node| found.abandoned.contains_key(&node.id));
    let shown = listed.tree.shown_state(is_abandoned, app.now);
    let facts = html! {
        div #chain-row {
            p {
                (state(shown, app.now)) " " (app.store.spent(root)?.in_words()) " · " code { (root.short()) }
            }
            @if name.is_some() { p { (line(&task)) } }
        }
    };
    let mut view = LiveView::new(name.unwrap_or(task)).live_row("chain", facts).changes_at(listed.changes_at);
    if !target.read_only {
        view = view.still(actions(root, shown.actor() != Actor::Nobody));
    }
    let running = listed.agents.iter().filter(|agent| agent.doing.is_some());
    view.follows = running.map(|agent| app.store.dir().printed(agent.id)).collect();
    let timeline = timeline::markup(app, target, root, listed)?;
    let zoom = timeline::zoom(target, root);
    let view = view.still(html! { h2 { "Agents" } }).live("agents", "ul", rows(app, listed));
    Ok(view.still(html! { h2 { "Timeline" } (zoom) }).live_row("timeline", timeline))
}

fn rows(app: &App<'_>, listed: &ListedTree) -> Vec<(String, Markup)> {
    let mut depths: HashMap<FrameId, usize> = HashMap::new();
    let mut rows = Vec::new();
    for agent in &listed.agents {
        let depth = agent.parent.and_then(|parent| depths.get(&parent)).map_or(0, |depth| depth + 1);
        depths.insert(agent.id, depth);
        rows.push((format!("a-{}", agent.id), row(app, agent, depth)));
    }
    rows
}

fn row(app: &App<'_>, agent: &AgentView, depth: usize) -> Markup {
    html! {
        li id={ "a-" (agent.id) } class={ "item depth-" (depth.min(DEEPEST)) } {
            a.title href={ "/agent/" (agent.id) } { (line(&agent.task)) }
            (state(agent.state, app.now))
            span.hidden { " at depth " (depth + 1) }
            @if let Some(doing) = &agent.doing { p.doing { (line(&doing.words(app.now))) } }
            @if let Some(error) = &agent.error { p.error { (block(error)) } }
            p.facts { code { (agent.id.short()) } " · " (agent.cost.0.in_words()) " · since " (time(agent.since)) }
        }
    }
}

fn actions(root: FrameId, is_live: bool) -> Markup {
    let (at, back) = (format!("/agent/{root}"), format!("/chain/{root}"));
    html! {
        div.actions role="group" aria-label="Actions" {
            (button(&format!("{at}/resume"), "Resume", &back))
            @if is_live {
                (button(&format!("{at}/pause"), "Pause", &back))
                (button(&format!("{at}/stop"), "Stop", &back))
            }
            details {
                summary { "Name" }
                (form(&format!("/chain/{root}/name"), "Name it", &back, &html! { label { "New name " input name="name" required; } }))
            }
            details {
                summary { "Remove" }
                p { "Removes the chain with its conversations and its history." }
                (button(&format!("/chain/{root}/remove"), "Remove the chain", "/"))
            }
        }
    }
}
