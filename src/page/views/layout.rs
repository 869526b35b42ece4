//! What views have in common.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{DOCTYPE, Markup, html};

use crate::app::view::cost::CostView;
use crate::core::chain::waiting_on::shown_state::{Actor, ShownState};
use crate::core::text::bars::Changed;
use crate::core::text::escape;
use crate::page::views::Section;

/// A whole page. `live`: the address of its stream, and the digest of what it shows.
pub(in crate::page) fn document(title: &str, section: Section, live: Option<(&str, &str)>, body: &Markup) -> Markup {
    let sections = [
        (Section::Chains, "/", "Chains"),
        (Section::Inbox, "/inbox", "Inbox"),
        (Section::History, "/history", "History"),
        (Section::Statistics, "/statistics", "Statistics"),
        (Section::Start, "/start", "Start"),
    ];
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(title))
            body data-live=[live.map(|(of, _)| of)] data-shown=[live.map(|(_, shown)| shown)] {
                a.skip href="#main" { "Skip to content" }
                header {
                    nav aria-label="Pages" {
                        ul {
                            @for (of, href, name) in sections {
                                li { a href=(href) aria-current=[(of == section).then_some("page")] { (name) } }
                            }
                        }
                    }
                }
                p #note role="status" {}
                main #main tabindex="-1" { h1 { (escape::one_line(title)) } (body) }
            }
        }
    }
}

/// A page for browsers that have not logged in, or about something that was not done.
pub(in crate::page) fn plain(title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" { (head(title)) body { main #main { h1 { (escape::one_line(title)) } (body) } } }
    }
}

fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (escape::one_line(title)) " · agent-cli" }
            link rel="stylesheet" href="/page.css";
            link rel="icon" href="/icon.svg" type="image/svg+xml";
            link rel="manifest" href="/manifest.webmanifest" crossorigin="use-credentials";
            script src="/page.js" defer {}
        }
    }
}

/// A text of an agent in one line.
pub(super) fn line(text: &str) -> String {
    escape::shortened(text.trim())
}

/// A text of an agent with its own line breaks.
pub(super) fn block(text: &str) -> String {
    escape::block(text.trim_end())
}

/// A time that means the same whenever it is rendered. The browser shows how long ago it was.
pub(super) fn time(at: Timestamp) -> Markup {
    let zoned = at.to_zoned(TimeZone::system());
    html! { time datetime=(at) { (zoned.strftime("%Y-%m-%d %H:%M:%S")) } }
}

/// A time that the browser leaves as it is: the day is only its title.
pub(super) fn clock(at: Timestamp) -> Markup {
    let zoned = at.to_zoned(TimeZone::system());
    html! { time.clock datetime=(at) title=(zoned.strftime("%Y-%m-%d")) { (zoned.strftime("%H:%M:%S")) } }
}

pub(super) fn state(state: ShownState, now: Timestamp) -> Markup {
    html! { span class={ "state " (class(state.actor())) } { (state.words(now, &TimeZone::system())) } }
}

fn class(actor: Actor) -> &'static str {
    match actor {
        Actor::Asked => "asked",
        Actor::Resumer | Actor::Repairer => "resumer",
        Actor::Runner => "runner",
        Actor::Others => "others",
        Actor::Nobody => "nobody",
    }
}

/// The heading above agents or chains for which the same one must act.
pub(super) fn group(actor: Actor) -> &'static str {
    match actor {
        Actor::Asked => "Needs you",
        Actor::Runner => "Working",
        Actor::Resumer | Actor::Repairer => "Can continue",
        Actor::Others => "Waiting",
        Actor::Nobody => "Ended or paused",
    }
}

pub(super) fn cost(CostView(spent): &CostView) -> String {
    let usage = &spent.usage;
    let input = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens;
    let about = if spent.estimated { "at least " } else { "" };
    format!("{about}${:.4}, {} tokens in, {} out", spent.cost_usd, short(input), short(usage.output_tokens))
}

fn short(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{:.1} k", count as f64 / 1e3),
        _ => format!("{:.1} M", count as f64 / 1e6),
    }
}

/// A text in which others' lines are behind bars, with the lines of a diff as such.
pub(super) fn quoted(text: &str) -> Markup {
    html! {
        pre.quoted tabindex="0" {
            @for line in text.lines() {
                @match Changed::of_line(line) {
                    Some(Changed::Added) => ins { (line) "\n" },
                    Some(Changed::Removed) => del { (line) "\n" },
                    None => { (line) "\n" },
                }
            }
        }
    }
}

/// A button that does something, and comes back here. `fields`: what it sends.
pub(super) fn button(action: &str, name: &str, back: &str, fields: &[(&str, &str)]) -> Markup {
    html! {
        form.action method="post" action=(action) {
            input type="hidden" name="back" value=(back);
            @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
            button { (name) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lines_are_marked_as_such() {
        let shown = quoted("Edit\n  \u{2502} -old\n  \u{2502} +new\n  \u{2502}  -same\n+x <b>\n").into_string();
        let expected = "<pre class=\"quoted\" tabindex=\"0\">Edit\n<del>  \u{2502} -old\n</del><ins>  \u{2502} +new\n\
                        </ins>  \u{2502}  -same\n+x &lt;b&gt;\n</pre>";
        assert_eq!(shown, expected);
    }
}
