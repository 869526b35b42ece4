//! Lists questions, and calls and plans that need an approval.

use maud::{Markup, html};

use crate::app::App;
use crate::app::answer;
use crate::app::error::{AppError, Refusal};
use crate::app::fronts::dialog;
use crate::app::fronts::live_view::LiveView;
use crate::app::lists::questions::{self, Input};
use crate::app::lists::whole_question;
use crate::core::requests::question_form::Form;
use crate::core::requests::request::RequestKind;
use crate::core::text::escape;
use crate::page::views::Target;
use crate::page::views::layout::{block, line, quote, quoted, time};
use crate::store::Question;

const MOST: usize = 100;

pub(super) fn view(app: &App<'_>, target: &Target) -> Result<LiveView, AppError> {
    let input = Input { all_projects: true, most: Some(MOST), ..Input::default() };
    let found = questions::questions(app, &input)?;
    let mut rows: Vec<(String, Markup)> = Vec::new();
    for asked in found.questions.iter().filter(|asked| !answer::has_expired(asked, app.now)) {
        rows.push((format!("q-{}", asked.id), row(app, target, asked, "/inbox")?));
    }
    if rows.is_empty() {
        rows.push(("none".into(), html! { li #none { "nothing to answer" } }));
    }
    let expiries = found.questions.iter().filter_map(|asked| answer::expires_at(asked, app.now));
    let view = LiveView::new("Inbox").live("questions", "ul", rows).changes_at(expiries);
    Ok(view.still(html! { @if found.has_more { p { "The oldest " (MOST) " are shown." } } }))
}

/// Shows a single question. Notifications link to it.
pub(super) fn question(app: &App<'_>, target: &Target, id: &str) -> Result<LiveView, AppError> {
    let asked = questions::asked(app, id.parse().map_err(|_| Refusal::unknown("there is no such question"))?)?;
    let row = row(app, target, &asked, &format!("/question/{}", asked.id))?;
    let view = LiveView::new("Question").changes_at(answer::expires_at(&asked, app.now));
    Ok(view.live("questions", "ul", [(format!("q-{}", asked.id), row)]))
}

fn row(app: &App<'_>, target: &Target, asked: &Question, back: &str) -> Result<Markup, AppError> {
    let what = match &asked.kind {
        RequestKind::Permission { .. } => "Allow this call?",
        RequestKind::Plan(_) => "Approve this plan?",
        _ => "Question",
    };
    let body = match &asked.kind {
        RequestKind::Ask(form) => of_form(form),
        _ => quoted(&whole_question::body(app.store, asked, None)?),
    };
    let has_expired = answer::has_expired(asked, app.now);
    let is_open = asked.answered.is_none() && !has_expired;
    let form = if is_open && !target.read_only { Some(form(app, asked, back)?) } else { None };
    Ok(html! {
        li.item id={ "q-" (asked.id) } {
            h2 { (what) }
            p.facts {
                a href={ "/agent/" (asked.frame) } { (line(&asked.title)) } " · " code { (asked.id.short()) } " · asked " (time(asked.asked))
                @if let Some(together) = &asked.together { " · " (together.number) " of " (together.of) }
            }
            (body)
            @if let Some(answer) = &asked.answer { p { "Answered: " } (quote(answer)) }
            @if has_expired { p { "Expired." } }
            @if let Some(form) = form { (form) }
        }
    })
}

fn of_form(form: &Form) -> Markup {
    html! {
        p.prose { (block(&form.question)) }
        @if let Some(context) = &form.context { (quote(context)) }
        @if let Some(at) = form.expires_at { p { "Expires " (time(at)) @if let Some(default) = &form.default { ", then: " (escape::one_line(default)) } } }
    }
}

/// The form for an answer. It contains a digest of the shown question, so that a person cannot approve anything else.
fn form(app: &App<'_>, asked: &Question, back: &str) -> Result<Markup, AppError> {
    let digest = answer::digest(app.store, asked)?;
    let fields = match &asked.kind {
        RequestKind::Ask(form) => of_options(form),
        kind => html! {
            @for (answer, title) in dialog::ways_to_allow(kind) {
                button name="decision" value=(escape::one_line(&answer)) { (line(&title)) }
            }
            label { "Reason, if you deny " input name="reason"; }
            button name="decision" value="deny" { "Deny" }
        },
    };
    Ok(html! {
        form.answer method="post" action={ "/question/" (asked.id) "/answer" } {
            input type="hidden" name="back" value=(back);
            input type="hidden" name="shown" value=(digest);
            (fields)
            label.check { input type="checkbox" name="resume" value="yes" checked; " Continue the chain" }
        }
    })
}

fn of_options(form: &Form) -> Markup {
    let kind = if form.multiple { "checkbox" } else { "radio" };
    html! {
        @if !form.options.is_empty() {
            fieldset {
                legend { @if form.multiple { "Choose one or more" } @else { "Choose one" } }
                @for (at, option) in form.options.iter().enumerate() {
                    label.check {
                        input type=(kind) name="option" value=(at) checked[form.default.as_ref() == Some(&option.key)];
                        " " (escape::one_line(&option.key)) @if !option.description.is_empty() { ": " (block(&option.description)) }
                    }
                }
            }
        }
        @if form.free_text {
            label {
                @if form.options.is_empty() { "Answer" } @else { "or another answer" }
                textarea name="text" rows="3" {}
            }
        }
        button name="decision" value="answer" { "Answer" }
    }
}
