//! Elements that views share.

use jiff::Timestamp;
use maud::{DOCTYPE, Markup, html};

use crate::core::chain::waiting_on::shown_state::{Actor, ShownState};
use crate::core::text::bars::Changed;
use crate::core::text::escape;
use crate::local_zone::local_zone;

/// The sections of the page: address, name, and the first path segments that belong to the section.
const SECTIONS: [(&str, &str, &[&str]); 5] = [
    ("/", "Chains", &["", "chain", "agent"]),
    ("/inbox", "Inbox", &["inbox", "question"]),
    ("/history", "History", &["history"]),
    ("/statistics", "Statistics", &["statistics"]),
    ("/start", "Start", &["start"]),
];

/// A whole page. `of` is the address of the page and of its stream. `shown` is the digest of its live parts.
pub(in crate::page) fn document(title: &str, of: Option<&str>, shown: Option<&str>, body: &Markup) -> Markup {
    let place = of.map(|of| of[1..].split(['/', '?']).next().unwrap_or_default());
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(title))
            body data-live=[of] data-shown=[shown] {
                a.skip href="#main" { "Skip to content" }
                header {
                    nav aria-label="Pages" {
                        ul {
                            @for (href, name, places) in SECTIONS {
                                @let is_here = place.is_some_and(|place| places.contains(&place));
                                li { a href=(href) aria-current=[is_here.then_some("page")] { (name) } }
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

/// A page for browsers that have not logged in, or about a refused request.
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

/// An agent's text on one line.
pub(super) fn line(text: &str) -> String {
    escape::shortened(text.trim())
}

/// An agent's text with its own line breaks.
pub(super) fn block(text: &str) -> String {
    escape::block(text.trim_end())
}

/// An absolute time, which does not depend on when it is rendered. The browser shows how long ago it was.
pub(super) fn time(at: Timestamp) -> Markup {
    let zoned = at.to_zoned(local_zone());
    html! { time datetime=(at) { (zoned.strftime("%Y-%m-%d %H:%M:%S")) } }
}

/// A time of day that the browser does not change. Its title contains the date.
pub(super) fn clock(at: Timestamp) -> Markup {
    let zoned = at.to_zoned(local_zone());
    html! { time.clock datetime=(at) title=(zoned.strftime("%Y-%m-%d")) { (zoned.strftime("%H:%M:%S")) } }
}

pub(super) fn state(state: ShownState, now: Timestamp) -> Markup {
    html! { span class={ "state " (class(state.actor())) } { (state.words(now, &local_zone())) } }
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

/// A text in which lines of others are behind bars. Lines of a diff are marked.
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

/// Rounds a length in a picture.
pub(super) fn rounded(length: f64) -> f64 {
    (length * 10.0).round() / 10.0
}

/// A list that is folded under its title. Empty lists are left out.
pub(super) fn folded_list(title: &str, rows: Vec<Markup>) -> Markup {
    html! {
        @if !rows.is_empty() {
            details { summary { (rows.len()) " " (title) } ul { @for row in rows { li { (row) } } } }
        }
    }
}

/// An agent's text, which may be long.
pub(super) fn quote(text: &str) -> Markup {
    html! { pre tabindex="0" { (block(text)) } }
}

/// A form for an action. Afterwards the browser returns to `back`.
pub(super) fn form(action: &str, name: &str, back: &str, fields: &Markup) -> Markup {
    html! {
        form.action[fields.0.is_empty()] method="post" action=(action) {
            input type="hidden" name="back" value=(back);
            (fields)
            button { (name) }
        }
    }
}

pub(super) fn button(action: &str, name: &str, back: &str) -> Markup {
    form(action, name, back, &html! {})
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
