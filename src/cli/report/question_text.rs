//! Formats a question in full, as a person sees it before they answer.

use jiff::Timestamp;

use crate::app::answer::{self, Approval};
use crate::app::lists::whole_question;
use crate::cli::confirm;
use crate::cli::error::CliError;
use crate::cli::output;
use crate::cli::output::format::{self, cut};
use crate::core::requests::approval;
use crate::core::requests::proposed_plan::ProposedPlan;
use crate::core::requests::question_form::Form;
use crate::core::requests::request::RequestKind;
use crate::core::text::wrap::wrapped_text;
use crate::local_zone::local_zone;
use crate::runtime::requests::answer_files;
use crate::store::{Question, Store, StoreError, Together};

/// Like [`whole`], with long lines wrapped. Quoted lines (after a bar) already fit.
pub(crate) fn wrapped(store: &Store, asked: &Question, width: Option<usize>) -> Result<String, StoreError> {
    let text = whole(store, asked, width)?;
    Ok(match width {
        Some(width) => wrapped_text(&text, width),
        None => text,
    })
}

/// Formats the whole question, with the agent that asks.
pub(crate) fn whole(store: &Store, asked: &Question, width: Option<usize>) -> Result<String, StoreError> {
    let (id, root, task) = (asked.id.short(), asked.root.short(), cut(&asked.title, 40));
    let mut text =
        format!("{id} of {task} in the chain {root}, {}\n", format::past(asked.asked, Timestamp::now(), &local_zone()));
    if let Some(others) = asked.together {
        text.push_str(&format!("{}\n", together(others)));
    }
    text.push_str(&whole_question::body(store, asked, width)?);
    if let RequestKind::Ask(Form { expires_at: Some(at), .. }) = &asked.kind {
        text.push_str(&match (asked.answered, asked.expired) {
            (None, None) => format!("{}\n", format::expiry(*at, Timestamp::now(), &local_zone())),
            (None, Some(_)) => format!("{NOBODY} ({})\n", format::expiry(*at, Timestamp::now(), &local_zone())),
            (Some(_), _) => String::new(),
        });
    }
    let now = Timestamp::now();
    // The question must be shown even if the file cannot be read.
    if let Ok(Question { kind: RequestKind::Ask(Form { answer_file: Some(file), .. }), .. }) =
        answer_files::observed(store, asked.clone(), now)
    {
        text.push_str(&approval::named("  can also be answered in a file: ", &file.in_words(now), width));
    }
    if let Some(answer) = &asked.answer {
        text.push_str("answer:\n");
        text.push_str(&approval::quoted(answer, width));
    }
    Ok(text)
}

/// Says how to fix a file whose content does not count as an answer.
pub(crate) fn hint_at_file(form: &Form) {
    if let Some(file) = form.answer_file.as_ref().filter(|file| file.is_refused()) {
        output::hint(&format!("correct {}, or:", file.path.display()));
    }
}

/// Says that a call asks several questions together, and which one this is.
pub(crate) fn together(Together { number, of }: Together) -> String {
    format!("{number} of {of} asked together: the agent continues when all are answered")
}

/// The message about an expired question.
pub(crate) const NOBODY: &str = "no answer in time";

/// A hint that says how to answer a question.
pub(crate) fn to_answer(kind: &RequestKind) -> String {
    match kind {
        RequestKind::Permission { .. } => "allow (or deny, with a reason)".to_owned(),
        RequestKind::Plan(plan) => to_answer_plan(plan),
        RequestKind::Ask(form) => to_answer_form(form),
        _ => "ANSWER".to_owned(),
    }
}

/// A hint that says how to answer a plan. The modes are separated by commas, because a shell would parse `|` as a pipe.
pub(crate) fn to_answer_plan(plan: &ProposedPlan) -> String {
    match plan.modes.get(1..).unwrap_or_default() {
        [] => "allow (or deny, with a reason)".to_owned(),
        others => format!("allow (or with --mode {}; or deny, with a reason)", others.join(", ")),
    }
}

/// A hint that says how to answer a question.
pub(crate) fn to_answer_form(form: &Form) -> String {
    match form.example().zip(form.naming()) {
        Some((example, naming)) => format!("{example} ({naming})"),
        None => "ANSWER".to_owned(),
    }
}

/// Shows the whole question.
pub(crate) fn show(store: &Store, asked: &Question) -> Result<(), CliError> {
    let text = wrapped(store, asked, output::width_of_errors())?;
    output::ask(&text);
    // The beginning of the text has scrolled off the screen.
    if text.lines().count() > 20 {
        output::ask(&format!("({} lines in all)\n", text.lines().count()));
    }
    Ok(())
}

/// Shows a call or plan and asks for its approval in one step, so that a person can only approve what the terminal has shown.
pub(crate) fn confirm(store: &Store, asked: &Question, answer: &str) -> Result<(), CliError> {
    let Some(Approval { mode }) = answer::approval(&asked.kind, answer).filter(|_| confirm::is_at_a_terminal()) else {
        return Ok(());
    };
    show(store, asked)?;
    if let Some(mode) = mode {
        output::ask(&approval::named("it would continue in mode ", &mode, output::width_of_errors()));
    }
    if confirm::confirm("allow?")? {
        return Ok(());
    }
    Err(CliError::declined("not allowed, and nothing was recorded")
        .hint(format!("agent-cli answer {} deny REASON denies it", asked.id.short())))
}
