//! The form that starts a chain.

use maud::html;

use crate::app::fronts::live_view::LiveView;
use crate::page::views::Target;

pub(super) fn view(target: &Target) -> LiveView {
    LiveView::new("Start a chain").still(html! {
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
    })
}
