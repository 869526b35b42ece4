//! One agent: its conversation, and everything else that is known about it.

use maud::{Markup, html};

use crate::app::App;
use crate::app::error::AppError;
use crate::app::lists::logs;
use crate::app::lists::single_agent;
use crate::app::spawn::in_background::Surroundings;
use crate::app::view::agent_detail::AgentDetailView;
use crate::core::chain::frame::Task;
use crate::core::id::FrameId;
use crate::page::views::layout::{block, button, cost, line, state, time};
use crate::page::views::{Section, Target, View, chains, conversation};

/// The events on one page. Older ones are behind a link.
const MOST: usize = 200;

pub(super) fn view(
    app: &App<'_>,
    surroundings: &impl Surroundings,
    target: &Target,
    id: FrameId,
) -> Result<View, AppError> {
    let found = single_agent::agent(app, &id.to_string(), &surroundings.run_settings(None)?)?;
    let agent = &found.agent;
    let title = match &agent.task {
        Task::File(path) => path.display().to_string(),
        task => task.title(),
    };
    let since = target.value("since").and_then(|since| since.parse().ok());
    let input = logs::Input {
        id: id.to_string(),
        with_descendants: false,
        since,
        tail: since.is_none().then_some(MOST),
        is_full: target.value("full").is_some(),
        follows: false,
    };
    let mut events = logs::logs(app, &input, |event| conversation::is_shown(&event.what))?;
    let mut shown = Vec::new();
    let mut has_later = false;
    while let Some(event) = events.next()? {
        if !conversation::is_shown(&event.what) {
            continue;
        }
        has_later = shown.len() == MOST;
        if has_later {
            break;
        }
        shown.push(event);
    }
    let earlier = shown.len() == MOST && since.is_none();
    let later = shown.last().filter(|_| has_later).map(|event| format!("/agent/{id}?since={}", event.at));
    let mut view = View::new(title, Section::Chains)
        .still(html! { p { a href={ "/chain/" (agent.chain) } { "The chain" } } })
        .live_row("agent", facts(app, agent));
    if !target.read_only {
        view = view.still(actions(agent));
    }
    view = view.still(html! {
        h2 { "Conversation" }
        nav.pages aria-label="Conversation" {
            @if earlier || since.is_some() { a href={ "/agent/" (id) "?since=" (agent.created) } { "From the beginning" } }
            @if since.is_some() { a href={ "/agent/" (id) } { "The end" } }
        }
    });
    view.follows = vec![app.store.dir().printed(id)];
    let view = view.live("conversation", "ol", conversation::rows(&shown));
    Ok(view.still(html! { @if let Some(later) = later { p { a href=(later) { "Later" } } } }))
}

fn facts(app: &App<'_>, agent: &AgentDetailView) -> Markup {
    html! {
        div #agent-row {
            p { (state(agent.state, app.now)) " since " (time(agent.since)) " · " (cost(&agent.cost)) " · " code { (agent.id.short()) } }
            @if let Some(doing) = &agent.doing { p.doing { (line(&doing.words(app.now))) } }
            @if let Some(error) = &agent.error { pre.error tabindex="0" { (block(error)) } }
            @if agent.state.actor() == crate::core::chain::waiting_on::shown_state::Actor::Asked {
                p { a href="/inbox" { "It asks: answer in the inbox" } }
            }
            @if let Some(reply) = &agent.reply {
                details open { summary { "Reply" } pre tabindex="0" { (block(reply)) } }
            }
            @if !agent.denied.is_empty() {
                details {
                    summary { (agent.denied.len()) " denied calls" }
                    ul { @for call in &agent.denied { li { code { (line(&call.denied.call())) } } } }
                }
            }
            @if !agent.messages.is_empty() {
                details {
                    summary { (agent.messages.len()) " messages" }
                    ul {
                        @for message in &agent.messages {
                            li {
                                (time(message.at)) @if !message.delivered { " not delivered yet" }
                                pre tabindex="0" { (block(&message.text)) }
                            }
                        }
                    }
                }
            }
            details {
                summary { (agent.sessions.len()) " attempts" }
                ul {
                    @for attempt in &agent.sessions {
                        li {
                            (time(attempt.began)) " "
                            @match &attempt.outcome { Some(outcome) => (line(outcome)), None => "running" }
                            " · " (cost(&attempt.cost))
                            @if let Some(model) = &attempt.model { " · " (line(model)) }
                            @if let Some(message) = &attempt.message { pre tabindex="0" { (block(message)) } }
                        }
                    }
                }
            }
        }
    }
}

fn actions(agent: &AgentDetailView) -> Markup {
    let at = format!("/agent/{}", agent.id);
    html! {
        div.actions role="group" aria-label="Actions" {
            @if chains::is_live(agent.state.actor()) {
                form method="post" action={ (at) "/tell" } {
                    input type="hidden" name="back" value=(at);
                    label { "Tell it " textarea name="text" rows="2" required {} }
                    button { "Tell" }
                }
                (button(&format!("{at}/pause"), "Pause", &at, &[]))
                (button(&format!("{at}/stop"), "Stop", &at, &[]))
            } @else {
                form method="post" action={ (at) "/resume" } {
                    input type="hidden" name="back" value=(at);
                    label { "New instruction " textarea name="text" rows="2" {} }
                    button { "Resume" }
                }
            }
        }
    }
}
