//! The events of an agent, as a conversation.

use maud::{Markup, html};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::core::events::agent_event::{AgentEvent, AgentEventKind};
use crate::core::requests::approval::{self, Before};
use crate::core::text::escape;
use crate::page::views::layout::{block, clock, line, quoted};

/// Whether an event means something to people.
pub(super) fn is_shown(what: &AgentEventKind) -> bool {
    match what {
        AgentEventKind::RequestOver { .. } | AgentEventKind::Other { .. } => false,
        AgentEventKind::Thinking { text } => !text.trim().is_empty(),
        AgentEventKind::RateLimit { status, .. } => status != "allowed",
        AgentEventKind::Task { status, .. } => status != "progress",
        _ => true,
    }
}

pub(super) fn rows(events: &[AgentEvent]) -> Vec<(String, Markup)> {
    events.iter().map(|event| (anchor(event), row(event))).collect()
}

/// Names the event for links: the same in each view of the conversation.
fn anchor(event: &AgentEvent) -> String {
    let what = serde_json::to_value(&event.what).unwrap_or_default();
    let text = |name: &str| what[name].as_str().map(|text| text.chars().take(80).collect::<String>());
    let named = ["type", "id", "tool_use_id", "text", "status"].map(text);
    let attempt = event.attempt.map(|attempt| attempt.to_string());
    let bytes = Sha256::digest(format!("{} {attempt:?} {named:?}", event.at));
    bytes[..6].iter().fold("e-".to_owned(), |id, byte| format!("{id}{byte:02x}"))
}

fn row(event: &AgentEvent) -> Markup {
    let id = anchor(event);
    let (class, content) = content(&event.what);
    let inside = if event.parent_tool_use_id.is_some() { " inside" } else { "" };
    html! {
        li id=(id) class={ (class) (inside) } {
            a.at href={ "?since=" (event.at) "#" (id) } { (clock(event.at)) }
            div {
                (content)
                @if event.cut { p { a href={ "?since=" (event.at) "&full=1#" (id) } { "Show all of it" } } }
            }
        }
    }
}

fn content(what: &AgentEventKind) -> (&'static str, Markup) {
    match what {
        AgentEventKind::Text { text } => ("text", prose(text)),
        AgentEventKind::Thinking { text } => ("thinking", folded(&html! { "Thinking" }, &prose(text))),
        AgentEventKind::ToolUse { name, summary, input, .. } => {
            let whole = approval::view(name, input, &Before::Unknown, None, None);
            ("call", folded(&html! { code { (line(summary)) } }, &quoted(&whole)))
        }
        AgentEventKind::ToolResult { is_error, summary, content, .. } => {
            let class = if *is_error { "result error" } else { "result" };
            let shown = if content.trim().is_empty() { "(no output)" } else { summary };
            (class, folded(&html! { code { (line(shown)) } }, &html! { pre tabindex="0" { (block(content)) } }))
        }
        AgentEventKind::PermissionDenied { summary, .. } => {
            ("denied", html! { p { "Denied: " code { (line(summary)) } } })
        }
        AgentEventKind::Request { kind, summary, child, .. } => (
            "request",
            html! {
                p {
                    (line(kind)) ": " (line(summary))
                    @if let Some(child) = child { " " a href={ "/agent/" (child) } { (child.short()) } }
                }
            },
        ),
        AgentEventKind::Message { by, text, .. } => {
            let by = if by == "person" { "Told by a person" } else { "Told by an agent" };
            ("message", html! { p { (by) } (prose(text)) })
        }
        AgentEventKind::Result { is_error: true, text, .. } => ("error", prose(text)),
        AgentEventKind::Ended { status, message, .. } => {
            ("end", html! { p { (line(status)) } @if let Some(message) = message { (prose(message)) } })
        }
        AgentEventKind::Paused { waits_for, message, .. } => {
            ("end", html! { p { "Paused: " (line(message.as_deref().unwrap_or(&waits_for.replace('_', " ")))) } })
        }
        other => ("other", html! { p { (line(&in_words(other))) } }),
    }
}

/// Text of an agent, in which only code is set apart. It is never markup, and its links are not followed.
fn prose(text: &str) -> Markup {
    let text = block(text);
    // Every second part between fences is code.
    let parts: Vec<&str> = text.split("\n```").collect();
    html! {
        @for (at, part) in parts.iter().enumerate() {
            @if at % 2 == 1 { pre.code tabindex="0" { (part.split_once('\n').map_or(*part, |(_, code)| code)) } }
            @else if !part.trim().is_empty() { p.prose { (part.trim_matches('\n')) } }
        }
    }
}

fn folded(summary: &Markup, content: &Markup) -> Markup {
    html! { details { summary { (summary) } (content) } }
}

fn in_words(what: &AgentEventKind) -> String {
    match what {
        AgentEventKind::Started { model, .. } => format!("started: {}", model.as_deref().unwrap_or("claude")),
        AgentEventKind::ApiRetry { error_status, retry, .. } => {
            let status = error_status.map_or("no answer".to_owned(), |status| status.to_string());
            format!("throttled: {status}, try {retry}")
        }
        AgentEventKind::RateLimit { status, .. } => format!("usage limit: {status}"),
        AgentEventKind::Task { status, summary, .. } => format!("task {status}: {summary}"),
        AgentEventKind::Compaction { .. } => "the conversation was compacted".to_owned(),
        AgentEventKind::Result { total_cost_usd, .. } => format!("turn ended, ${total_cost_usd:.4}"),
        other => match serde_json::to_value(other) {
            Ok(Value::Object(fields)) => escape::one_line(fields["type"].as_str().unwrap_or_default()),
            _ => String::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_an_agent_is_never_markup() {
        let hostile = "<script>alert(1)</script> ![x](https://evil.test/?q) [y](javascript:alert(1))\u{202e}\u{200b}\u{1b}[2J\n\
                       ```html\n<img src=x onerror=alert(1)>\n```\nafter";
        let shown = prose(hostile).into_string();
        for never in ["<script", "<img", "<a ", "href", "\u{202e}", "\u{200b}", "\u{1b}"] {
            assert!(!shown.contains(never), "{never}: {shown}");
        }
        assert!(
            shown.contains("<pre class=\"code\" tabindex=\"0\">&lt;img src=x onerror=alert(1)&gt;</pre>"),
            "{shown}"
        );
        assert!(shown.ends_with("<p class=\"prose\">after</p>"), "{shown}");
    }
}
