//! A question in full, as a person sees it before they answer.

use std::path::Path;
use std::{fs, io};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::app::answer::{self, Approval};
use crate::cli::confirm;
use crate::cli::error::CliError;
use crate::cli::output;
use crate::cli::output::format::{self, age, bytes, cut};
use crate::core::requests::approval::call_place::CallPlace;
use crate::core::requests::approval::{self, Before};
use crate::core::requests::proposed_plan::ProposedPlan;
use crate::core::requests::question_form::{Form, QuestionOption};
use crate::core::requests::request::RequestKind;
use crate::runtime::requests::{answer_files, place};
use crate::store::{Question, Store, StoreError, Together};

/// The whole question, with who asks it.
pub(crate) fn whole(store: &Store, asked: &Question, width: Option<usize>) -> Result<String, StoreError> {
    let (id, root, task) = (asked.id.short(), asked.root.short(), cut(&asked.title, 40));
    let mut text = format!("{id} of {task} in the chain {root}, {} ago\n", age(asked.asked, Timestamp::now()));
    if let Some(others) = asked.together {
        text.push_str(&format!("{}\n", together(others)));
    }
    text.push_str(&match &asked.kind {
        RequestKind::Permission { tool, input, reason, place } => {
            let place = match place {
                Some(place) => Some(place.clone()),
                None => place::of_frame(store, asked.frame, input)?,
            };
            let mut view = approval::view(tool, input, &changed(tool, input, place.as_ref()), place.as_ref(), width);
            if let Some(moved) = place.and_then(|place| place::moved(input, &place)) {
                view.push_str("where it would act now, so that it would not be run:\n");
                view.push_str(&approval::quoted(&moved.now, width));
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
    });
    if let RequestKind::Ask(Form { expires_at: Some(at), .. }) = &asked.kind {
        text.push_str(&match (asked.answered, asked.expired) {
            (None, None) => format!("{}\n", format::expiry(*at, Timestamp::now(), &TimeZone::system())),
            (None, Some(_)) => format!("{NOBODY} ({})\n", format::expiry(*at, Timestamp::now(), &TimeZone::system())),
            (Some(_), _) => String::new(),
        });
    }
    let now = Timestamp::now();
    // If the file cannot be read, the question must still be shown.
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

/// Says how to fix a file whose answer does not count.
pub(crate) fn hint_at_file(form: &Form) {
    if let Some(file) = form.answer_file.as_ref().filter(|file| file.is_refused()) {
        output::hint(&format!("correct {}, or:", file.path.display()));
    }
}

/// Says that a question is one of several that one call has asked.
pub(crate) fn together(Together { number, of }: Together) -> String {
    format!("{number} of {of} asked together: the agent continues when all are answered")
}

/// The message about an expired question.
pub(crate) const NOBODY: &str = "no answer in time";

/// The whole question, and how it can be answered.
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

/// How many options can be chosen, in brackets, if the options do not show it.
pub(crate) fn choosing(form: &Form) -> Option<&'static str> {
    match (form.options.is_empty(), form.multiple, form.free_text) {
        (true, ..) | (false, false, false) => None,
        (false, true, false) => Some("(choose one or more)"),
        (false, true, true) => Some("(choose one or more, or answer with any text)"),
        (false, false, true) => Some("(choose one, or answer with any text)"),
    }
}

/// The whole plan, and how its agent can continue.
fn of_plan(plan: &ProposedPlan, width: Option<usize>) -> String {
    let mut text = String::from("a plan, with which the agent wants to leave plan mode\n");
    text.push_str(&match &plan.text {
        Some(plan) => approval::quoted(plan, width),
        None => "  (no plan was written)\n".to_owned(),
    });
    for (name, mode) in std::iter::once("then it continues in mode ").chain(std::iter::repeat("or ")).zip(&plan.modes) {
        text.push_str(&approval::named(name, mode, width));
    }
    text
}

/// A hint that says how to answer a question.
pub(crate) fn to_answer(kind: &RequestKind) -> String {
    match kind {
        RequestKind::Permission { .. } => "allow (or deny, with a reason)".to_owned(),
        RequestKind::Plan(plan) => to_answer_plan(plan),
        RequestKind::Ask(form) => to_answer_form(form),
        _ => "TEXT".to_owned(),
    }
}

/// The same for a plan. A shell would take more than its first word as it stands for a pipe.
pub(crate) fn to_answer_plan(plan: &ProposedPlan) -> String {
    match plan.modes.get(1..).unwrap_or_default() {
        [] => "allow (or deny, with a reason)".to_owned(),
        others => format!("allow (or with --mode {}; or deny, with a reason)", others.join(", ")),
    }
}

/// The same for a question.
pub(crate) fn to_answer_form(form: &Form) -> String {
    match form.example().zip(form.naming()) {
        Some((example, naming)) => format!("{example} ({naming})"),
        None => "TEXT".to_owned(),
    }
}

/// What a call would change now.
fn changed(tool: &str, input: &Value, place: Option<&CallPlace>) -> Before {
    let directory = place.map_or(Path::new("/"), |place| Path::new(&place.directory.path));
    match (approval::written_file(tool, input), approval::changed_notebook(tool, input)) {
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

/// The current content of the file at `path`. Does not open anything that could block or is too large to show.
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

/// Shows the whole question.
pub(crate) fn show(store: &Store, asked: &Question) -> Result<(), CliError> {
    let text = whole(store, asked, output::width_of_errors())?;
    output::ask(&text);
    // The text above has scrolled off the screen.
    if text.lines().count() > 20 {
        output::ask(&format!("({} lines in all)\n", text.lines().count()));
    }
    Ok(())
}

/// Shows a call and asks for its approval in one go, so that only what was shown at the terminal can be allowed there.
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
        .hint(format!("agent-cli answer {} \"deny REASON\" denies it", asked.id.short())))
}

/// A person's decision on a call, made at a terminal.
pub(crate) fn decide(store: &Store, asked: &Question) -> Result<String, CliError> {
    show(store, asked)?;
    let line = confirm::read_line("allow, or deny with a reason? ")?;
    Ok(answer::spelled_out(&asked.kind, &line))
}
