//! Formats a question in full, without the asker and the time.

use std::path::Path;
use std::{fs, io};

use serde_json::Value;

use crate::core::requests::approval::call_place::CallPlace;
use crate::core::requests::approval::{self, Before};
use crate::core::requests::proposed_plan::ProposedPlan;
use crate::core::requests::question_form::{Form, QuestionOption};
use crate::core::requests::request::RequestKind;
use crate::core::text::extent::bytes;
use crate::runtime::requests::place;
use crate::store::{Question, Store, StoreError};

/// Formats all of a question, a call or a plan: everything that a person must have seen before they answer. The text is
/// escaped, in lines of at most `width` columns.
pub(crate) fn body(store: &Store, asked: &Question, width: Option<usize>) -> Result<String, StoreError> {
    Ok(match &asked.kind {
        RequestKind::Permission { tool, input, reason, place } => {
            let place = match place {
                Some(place) => Some(place.clone()),
                None => place::of_frame(store, asked.frame, input)?,
            };
            let mut view = approval::view(tool, input, &changed(tool, input, place.as_ref()), place.as_ref(), width);
            if let Some(moved) = place.and_then(|place| place::moved(input, &place)) {
                view.push_str("where it would act now, so that it would not be run:\n");
                view.push_str(&approval::quoted_exactly(&moved.now, width));
            }
            if let Some(reason) = reason {
                view.push_str("why a hook asks:\n");
                view.push_str(&approval::quoted(reason, width));
            }
            view
        }
        RequestKind::Plan(plan) => of_plan(plan, width),
        RequestKind::Ask(form) => of_form(form, width),
        _ => approval::quoted(&asked.question, width),
    })
}

/// Formats the whole question, and how to answer it.
pub(crate) fn of_form(form: &Form, width: Option<usize>) -> String {
    let mut text = approval::quoted(&form.question, width);
    if let Some(context) = &form.context {
        text.push_str("context:\n");
        text.push_str(&approval::quoted(context, width));
    }
    for (at, QuestionOption { key, description }) in form.options.iter().enumerate() {
        text.push_str(&approval::named(&format!("  {} ", form.mark(at)), key, width));
        if !description.is_empty() {
            text.push_str(&approval::quoted(description, width));
        }
    }
    if let Some(how) = choosing(form) {
        text.push_str(&format!("  {how}\n"));
    }
    if let Some(default) = &form.default {
        text.push_str(&approval::named("default: ", default, width));
    }
    text
}

/// How many options can be chosen, in brackets, unless the options already show it.
pub(crate) fn choosing(form: &Form) -> Option<&'static str> {
    match (form.options.is_empty(), form.multiple, form.free_text) {
        (true, ..) | (false, false, false) => None,
        (false, true, false) => Some("(choose one or more)"),
        (false, true, true) => Some("(choose one or more, or answer with any text)"),
        (false, false, true) => Some("(choose one, or answer with any text)"),
    }
}

/// Formats the whole plan, and the modes in which the agent can continue.
fn of_plan(plan: &ProposedPlan, width: Option<usize>) -> String {
    let mut text = String::from("a plan, with which the agent wants to leave plan mode\n");
    text.push_str(&match &plan.text {
        Some(plan) => approval::quoted_exactly(plan, width),
        None => "  (no plan was written)\n".to_owned(),
    });
    for (name, mode) in std::iter::once("then it continues in mode ").chain(std::iter::repeat("or ")).zip(&plan.modes) {
        text.push_str(&approval::named(name, mode, width));
    }
    text
}

/// The content that a call would change now.
fn changed(tool: &str, input: &Value, place: Option<&CallPlace>) -> Before {
    let directory = place.map_or(Path::new("/"), |place| Path::new(&place.directory.path));
    match (approval::changed_file(tool, input), approval::changed_notebook(tool, input)) {
        (Some(path), _) => before(&directory.join(path)),
        (None, Some(path)) => match before(&directory.join(path)) {
            Before::Text(text) => {
                approval::cell_source(&text, &input["cell_id"]).map_or_else(Before::Unreadable, Before::Text)
            }
            Before::Unknown => Before::Unreadable("cannot be shown: the notebook does not exist".to_owned()),
            Before::Unreadable(why) => Before::Unreadable(format!("cannot be shown: the notebook {why}")),
        },
        (None, None) => Before::Unknown,
    }
}

/// The current content of the file at `path`. Opens nothing that could block or is too large to show.
fn before(path: &Path) -> Before {
    const LARGEST: u64 = 4_000_000;
    let unreadable = |why: String| Before::Unreadable(why);
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Before::Unknown,
        Err(error) => unreadable(format!("cannot be read ({error})")),
        Ok(found) if !found.is_file() => unreadable("is not a regular file".to_owned()),
        Ok(found) if found.len() > LARGEST => unreadable(format!("has {}", bytes(found.len()))),
        Ok(_) => match fs::read(path).map(String::from_utf8) {
            Ok(Ok(text)) => Before::Text(text),
            Ok(Err(_)) => unreadable("is not text".to_owned()),
            Err(error) => unreadable(format!("cannot be read ({error})")),
        },
    }
}
