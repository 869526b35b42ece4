//! Shows the events of an agent as a conversation.

use maud::{Markup, html};

use crate::app::fronts::conversation::anchor;
use crate::core::events::agent_event::{AgentEvent, AgentEventKind};
use crate::core::events::event_words;
use crate::core::requests::approval::{self, Before};
use crate::local_zone::local_zone;
use crate::page::views::layout::{block, clock, line, quote, quoted};

/// An event with its id.
pub(super) fn row(event: &AgentEvent) -> (String, Markup) {
    let id = anchor(event);
    let (class, content) = content(&event.what);
    let inside = if event.parent_tool_use_id.is_some() { " inside" } else { "" };
    let row = html! {
        li id=(id) class={ (class) (inside) } {
            a.at href={ "?since=" (event.at) "#" (id) } { (clock(event.at)) }
            div {
                (content)
                @if event.cut { p { a href={ "?since=" (event.at) "&full=1#" (id) } { "Show all of it" } } }
            }
        }
    };
    (id, row)
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
            (class, folded(&html! { code { (line(shown)) } }, &quote(content)))
        }
        AgentEventKind::Message { by, text, .. } => {
            let by = if by == "person" { "Told by a person" } else { "Told by an agent" };
            ("message", html! { p { (by) } (prose(text)) })
        }
        AgentEventKind::Result { is_error: true, text, .. } => ("error", prose(text)),
        AgentEventKind::Ended { status, message: Some(message), .. } => {
            ("end", html! { p { (line(status)) } (prose(message)) })
        }
        AgentEventKind::Request { child: Some(child), .. } => {
            ("request", html! { p { (words(what)) " " a href={ "/agent/" (child) } { (child.short()) } } })
        }
        AgentEventKind::PermissionDenied { .. } => ("denied", html! { p { (words(what)) } }),
        _ => ("other", html! { p { (words(what)) } }),
    }
}

fn words(what: &AgentEventKind) -> String {
    line(&event_words::plain(what, &local_zone()).unwrap_or_default())
}

/// Shows an agent's text, with code set apart. The text never becomes markup or links.
fn prose(text: &str) -> Markup {
    let text = block(text);
    // Every second part, between two fences, is code.
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
