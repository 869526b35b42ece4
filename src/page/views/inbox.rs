//! Questions, and calls and plans that need an approval.

use maud::{Markup, html};

use crate::app::App;
use crate::app::answer;
use crate::app::error::{AppError, Refusal};
use crate::app::lists::questions::{self, Input};
use crate::app::lists::whole_question;
use crate::core::id::RequestId;
use crate::core::requests::question_form::Form;
use crate::core::requests::request::RequestKind;
use crate::core::text::escape;
use crate::page::views::layout::{block, line, quoted, time};
use crate::page::views::{Section, Target, View};
use crate::store::Question;

const MOST: usize = 100;

pub(super) fn view(app: &App<'_>, target: &Target) -> Result<View, AppError> {
    let input = Input { all_projects: true, most: Some(MOST), ..Input::default() };
    let found = questions::questions(app, &input)?;
    let mut rows: Vec<(String, Markup)> = Vec::new();
    for asked in &found.questions {
        rows.push((format!("q-{}", asked.id), row(app, target, asked, "/inbox")?));
    }
    if rows.is_empty() {
        rows.push(("none".into(), html! { li #none { "nothing to answer" } }));
    }
    let view = View::new("Inbox", Section::Inbox).live("questions", "ul", rows);
    Ok(view.still(html! { @if found.has_more { p { "The oldest " (MOST) " are shown." } } }))
}

/// A single question, whose address a notification has.
pub(super) fn question(app: &App<'_>, target: &Target, id: &str) -> Result<View, AppError> {
    let unknown = || Refusal::unknown("there is no such question; its chain may have been removed");
    let id: RequestId = id.parse().map_err(|_| unknown())?;
    let asked = app.store.questions(id, false)?.pop().ok_or_else(unknown)?;
    let row = row(app, target, &asked, &format!("/question/{id}"))?;
    Ok(View::new("Question", Section::Inbox).live("questions", "ul", vec![(format!("q-{id}"), row)]))
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
    let is_open = asked.answered.is_none() && asked.expired.is_none();
    let form = if is_open && !target.read_only { Some(form(app, asked, back)?) } else { None };
    Ok(html! {
        li.item id={ "q-" (asked.id) } {
            h2 { (what) }
            p.facts {
                a href={ "/agent/" (asked.frame) } { (line(&asked.title)) } " · " code { (asked.id.short()) } " · asked " (time(asked.asked))
                @if let Some(together) = &asked.together { " · " (together.number) " of " (together.of) }
            }
            (body)
            @if let Some(answer) = &asked.answer { p { "Answered: " } pre tabindex="0" { (block(answer)) } }
            @if asked.expired.is_some() { p { "Expired." } }
            @if let Some(form) = form { (form) }
        }
    })
}

fn of_form(form: &Form) -> Markup {
    html! {
        p.prose { (block(&form.question)) }
        @if let Some(context) = &form.context { pre tabindex="0" { (block(context)) } }
        @if let Some(at) = form.expires_at { p { "Expires " (time(at)) @if let Some(default) = &form.default { ", then: " (escape::one_line(default)) } } }
    }
}

/// How it is answered. It says what was shown, so that nothing else is approved.
fn form(app: &App<'_>, asked: &Question, back: &str) -> Result<Markup, AppError> {
    let digest = answer::digest(app.store, asked)?;
    let fields = match &asked.kind {
        RequestKind::Ask(form) => of_options(form),
        RequestKind::Plan(plan) => html! {
            @for mode in &plan.modes {
                button name="decision" value={ "allow " (escape::one_line(mode)) } { "Allow, and continue in mode " (line(mode)) }
            }
            @if plan.modes.is_empty() { button name="decision" value="allow" { "Allow" } }
            (deny())
        },
        _ => html! { button name="decision" value="allow" { "Allow" } (deny()) },
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

fn deny() -> Markup {
    html! {
        label { "Reason, if you deny " input name="reason"; }
        button name="decision" value="deny" { "Deny" }
    }
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
