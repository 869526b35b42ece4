//! Shows one agent: its conversation, and everything else known about it.

use maud::{Markup, html};

use crate::app::App;
use crate::app::error::AppError;
use crate::app::fronts::conversation as events;
use crate::app::fronts::live_view::LiveView;
use crate::app::lists::single_agent;
use crate::app::spawn::in_background::Surroundings;
use crate::app::view::agent_detail::AgentDetailView;
use crate::core::chain::frame::Task;
use crate::core::chain::waiting_on::shown_state::Actor;
use crate::core::id::FrameId;
use crate::page::views::layout::{button, folded_list, form, line, quote, state, time};
use crate::page::views::{Target, conversation};

pub(super) fn view(
    app: &App<'_>,
    surroundings: &impl Surroundings,
    target: &Target,
    id: FrameId,
) -> Result<LiveView, AppError> {
    let found = single_agent::agent(app, &id.to_string(), &surroundings.run_settings(None)?)?;
    let agent = &found.agent;
    let title = match &agent.task {
        Task::File(path) => path.display().to_string(),
        task => task.title(),
    };
    let since = target.value("since").and_then(|since| since.parse().ok());
    let part = events::read(app, id, since, target.value("full").is_some())?;
    let mut view = LiveView::new(title)
        .still(html! { p { a href={ "/chain/" (agent.chain) } { "The chain" } } })
        .live_row("agent", facts(app, agent))
        .changes_at(agent.changes_at);
    if !target.read_only {
        view = view.still(actions(agent));
    }
    view.follows = vec![app.store.dir().printed(id)];
    let links = html! {
        h2 { "Conversation" }
        nav.pages aria-label="Conversation" {
            @if part.has_earlier { a href={ "/agent/" (id) "?since=" (agent.created) } { "From the beginning" } }
            @if since.is_some() { a href={ "/agent/" (id) } { "The end" } }
        }
    };
    let later =
        html! { @if let Some(later) = part.later { p { a href={ "/agent/" (id) "?since=" (later) } { "Later" } } } };
    Ok(view.still(links).live("conversation", "ol", part.events.iter().map(conversation::row)).still(later))
}

fn facts(app: &App<'_>, agent: &AgentDetailView) -> Markup {
    let denied = agent.denied.iter().map(|call| html! { code { (line(&call.denied.call())) } });
    let messages = agent.messages.iter().map(|message| {
        html! { (time(message.at)) @if !message.delivered { " not delivered yet" } (quote(&message.text)) }
    });
    let attempts = agent.sessions.iter().map(|attempt| {
        html! {
            (time(attempt.began)) " " (line(attempt.outcome.as_deref().unwrap_or("running"))) " · " (attempt.cost.0.in_words())
            @if let Some(model) = &attempt.model { " · " (line(model)) }
            @if let Some(message) = &attempt.message { (quote(message)) }
        }
    });
    html! {
        div #agent-row {
            p { (state(agent.state, app.now)) " since " (time(agent.since)) " · " (agent.cost.0.in_words()) " · " code { (agent.id.short()) } }
            @if let Some(doing) = &agent.doing { p.doing { (line(&doing.words(app.now))) } }
            @if let Some(error) = &agent.error { div.error { (quote(error)) } }
            @if agent.state.actor() == Actor::Asked { p { a href="/inbox" { "It asks: answer in the inbox" } } }
            @if let Some(reply) = &agent.reply { details open { summary { "Reply" } (quote(reply)) } }
            (folded_list("denied calls", denied.collect()))
            (folded_list("messages", messages.collect()))
            (folded_list("attempts", attempts.collect()))
        }
    }
}

fn actions(agent: &AgentDetailView) -> Markup {
    let at = format!("/agent/{}", agent.id);
    let text =
        |label, is_required| html! { label { (label) " " textarea name="text" rows="2" required[is_required] {} } };
    html! {
        div.actions role="group" aria-label="Actions" {
            @if agent.state.actor() == Actor::Nobody {
                (form(&format!("{at}/resume"), "Resume", &at, &text("New instruction", false)))
            } @else {
                (form(&format!("{at}/tell"), "Tell", &at, &text("Tell it", true)))
                (button(&format!("{at}/pause"), "Pause", &at))
                (button(&format!("{at}/stop"), "Stop", &at))
            }
        }
    }
}
