//! The view of a call that needs an approval: all of it, line by line, beginning with what it acts on.
//!
//! Nothing in the call can pass for something else. Each line of a text is behind a bar, with a mark where a line that is wider
//! than the terminal continues; field names are before the bars.

pub(crate) mod call_place;

use serde_json::{Map, Value};

use crate::core::requests::approval::call_place::CallPlace;
use crate::core::text::bars::Bars;

/// The current content of what a call would change, a file or a cell of a notebook, as far as known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// It does not exist, or this is unknown.
    Unknown,
    /// It has this text.
    Text(String),
    /// It exists but cannot be shown, for this reason.
    Unreadable(String),
}

/// The fields that say what a call acts on, in order of importance.
const FIRST: [&str; 11] = [
    "file_path", "notebook_path", "path", "command", "url", "query", "pattern", "subagent_type", "skill", "cell_id",
    "edit_mode",
];

/// The fields with which Edit, MultiEdit, NotebookEdit and Write change a file.
const CHANGES: [&str; 5] = ["old_string", "new_string", "edits", "new_source", "content"];

/// The path of the file that a call changes.
pub(crate) fn changed_file<'a>(tool: &str, input: &'a Value) -> Option<&'a str> {
    matches!(tool, "Edit" | "MultiEdit" | "Write").then(|| input["file_path"].as_str()).flatten()
}

/// The whole call: `place` is where it acts, as far as known. `width`: the number of columns, if known.
pub(crate) fn view(
    tool: &str,
    input: &Value,
    before: &Before,
    place: Option<&CallPlace>,
    width: Option<usize>,
) -> String {
    let mut view = Bars::new(width);
    view.named("", tool);
    match input.as_object() {
        Some(fields) => of_fields(&mut view, tool, input, fields, before, place),
        None => {
            view.value("input", input);
            leads(&mut view, input, place);
        }
    }
    if let Some(CallPlace { directory, .. }) = place.filter(|_| call_place::depends_on_directory(input)) {
        view.line(WHERE_IT_RUNS);
        view.lines(' ', &directory.path);
        if directory.is_elsewhere() {
            view.named(LEADS_TO, &directory.real);
        }
    }
    view.text()
}

const WHERE_IT_RUNS: &str = "where it runs:";
const LEADS_TO: &str = "  leads to: ";

/// Where the paths in a field lead, if that differs.
fn leads(view: &mut Bars, value: &Value, place: Option<&CallPlace>) {
    match (value, place) {
        (Value::String(path), Some(place)) => {
            if let Some(real) = place.elsewhere(path) {
                view.named(LEADS_TO, real);
            }
        }
        (_, Some(place)) => {
            let below = call_place::named_paths(value);
            for path in below.iter().filter(|path| place.elsewhere(path).is_some()) {
                view.named("  a path in it: ", path);
                leads(view, &Value::String(path.clone()), Some(place));
            }
        }
        (_, None) => {}
    }
}

fn of_fields(
    view: &mut Bars,
    tool: &str,
    input: &Value,
    fields: &Map<String, Value>,
    before: &Before,
    place: Option<&CallPlace>,
) {
    let is_edit = matches!(tool, "Edit" | "MultiEdit" | NOTEBOOK_EDIT | "Write");
    let first = FIRST.iter().filter_map(|name| fields.get_key_value(*name));
    let others = fields.iter().filter(|(name, _)| !FIRST.contains(&name.as_str()));
    let (changes, others): (Vec<_>, Vec<_>) = others.partition(|(name, _)| is_edit && CHANGES.contains(&name.as_str()));
    for (name, value) in first.chain(others) {
        view.value(name, value);
        leads(view, value, place);
    }
    match (tool, &input["edits"]) {
        _ if changes.is_empty() => {}
        ("Edit", _) if changes.len() == 2 && change(view, "change", input, &mut before.clone()) => {}
        ("MultiEdit", Value::Array(edits)) => {
            let mut before = before.clone();
            for (number, edit) in (1..).zip(edits) {
                let known = ["old_string", "new_string", "replace_all"];
                let is_known =
                    edit.as_object().is_some_and(|edit| edit.keys().all(|key| known.contains(&key.as_str())));
                let has_odd_scope = !matches!(edit["replace_all"], Value::Null | Value::Bool(_));
                let name = format!("change {number} of {}", edits.len());
                if !is_known || has_odd_scope || !change(view, &name, edit, &mut before) {
                    view.value(&name, edit);
                    before = Before::Unknown;
                }
            }
            let others = changes.iter().filter(|(name, _)| *name != "edits");
            others.for_each(|(name, value)| view.value(name, value));
        }
        ("Write", _) if changes.len() == 1 && input["content"].is_string() => {
            written(view, input["content"].as_str().unwrap_or_default(), before);
        }
        (NOTEBOOK_EDIT, _) if changes.len() == 1 && input["new_source"].is_string() => of_cell(view, input, before),
        _ => changes.iter().for_each(|(name, value)| view.value(name, value)),
    }
}

/// The change of a notebook's cell. The new source of a deleted cell has no effect, but is shown if given.
fn of_cell(view: &mut Bars, input: &Value, before: &Before) {
    let new = input["new_source"].as_str().unwrap_or_default();
    let is_deleted = input["edit_mode"] == "delete";
    match before {
        Before::Unknown => {}
        Before::Text(cell) if is_deleted => {
            view.field("the cell that is deleted");
            view.diff(cell, "");
        }
        Before::Text(cell) => {
            view.field("change of the cell as it is now");
            view.diff(cell, new);
            return;
        }
        Before::Unreadable(why) => {
            let what = if is_deleted { "deletes" } else { "replaces" };
            view.field(&format!("it {what} a cell that {why}"));
        }
    }
    if !(is_deleted && new.is_empty()) {
        view.field("new_source");
        view.diff("", new);
    }
}

/// Text of others that is read, line by line behind a bar.
pub(crate) fn quoted(text: &str, width: Option<usize>) -> String {
    lines(Bars::of_prose(width), text)
}

/// The same for a text that a person approves.
pub(crate) fn quoted_exactly(text: &str, width: Option<usize>) -> String {
    lines(Bars::new(width), text)
}

fn lines(mut view: Bars, text: &str) -> String {
    view.lines(' ', text);
    view.text()
}

/// A name that others chose, behind `before`.
pub(crate) fn named(before: &str, name: &str, width: Option<usize>) -> String {
    let mut view = Bars::new(width);
    view.named(before, name);
    view.text()
}

/// A short form of the call: the tool, and the first line of what it acts on.
pub(crate) fn summary(tool: &str, input: &Value) -> String {
    let named = FIRST.iter().find_map(|name| input[*name].as_str());
    let first = named.map_or_else(|| input.to_string(), str::to_owned);
    format!("{tool}: {}", first.lines().find(|line| !line.trim().is_empty()).unwrap_or_default())
}

/// Unchanged lines of a file that are shown around a change.
const CONTEXT: usize = 3;

/// Shows a change where it is in the file, which then has it. If the text that it replaces is not in the file, or more than once,
/// only what the call says is shown. Returns whether `edit` has the shape of an edit.
fn change(view: &mut Bars, name: &str, edit: &Value, file: &mut Before) -> bool {
    let (Some(old), Some(new)) = (edit["old_string"].as_str(), edit["new_string"].as_str()) else { return false };
    let is_everywhere = edit["replace_all"] == true;
    view.field(&format!("{name}{}", if is_everywhere { ", at every place" } else { "" }));
    match std::mem::replace(file, Before::Unknown) {
        Before::Text(text) => match edited(view, &text, old, new, is_everywhere) {
            Some(changed) => *file = Before::Text(changed),
            None => view.diff(old, new),
        },
        Before::Unknown | Before::Unreadable(_) => view.diff(old, new),
    }
    true
}

/// Shows a change of `text`, and returns the changed text.
fn edited(view: &mut Bars, text: &str, old: &str, new: &str, is_everywhere: bool) -> Option<String> {
    // Claude Code compares such files without their carriage returns.
    let text = text.replace("\r\n", "\n");
    // Claude Code deletes a line with its line break.
    let line = format!("{old}\n");
    let old = if new.is_empty() && !old.ends_with('\n') && text.contains(&line) { &line } else { old };
    let mut places = text.match_indices(old);
    let at = places.next().filter(|_| !old.is_empty())?.0;
    let changed = text.replace(old, new);
    if is_everywhere {
        view.diff_of_file(&text, &changed, 1, CONTEXT);
        return Some(changed);
    }
    if places.next().is_some() {
        return None;
    }
    // All of what the call says is shown, so lines that it does not change are not left out.
    let before = text[..at].split_inclusive('\n').collect::<Vec<_>>();
    let is_inside_a_line = before.last().is_some_and(|line| !line.ends_with('\n'));
    let above = before.len().saturating_sub(CONTEXT + usize::from(is_inside_a_line));
    let begin = before[..above].iter().map(|line| line.len()).sum();
    let after = &text[at + old.len()..];
    let below = CONTEXT + usize::from(!old.ends_with('\n'));
    let end = text.len() - after.split_inclusive('\n').skip(below).map(str::len).sum::<usize>();
    let part = &text[begin..end];
    view.diff_of_file(part, &part.replacen(old, new, 1), above + 1, usize::MAX);
    Some(changed)
}

fn written(view: &mut Bars, content: &str, before: &Before) {
    match before {
        Before::Text(old) if old == content => {
            view.field("content, which is what the file has already");
            view.lines(' ', content);
        }
        Before::Text(old) => {
            view.field("change of the file as it is now");
            view.diff_of_file(old, content, 1, CONTEXT);
        }
        Before::Unknown => {
            view.field("content of a new file");
            view.diff_of_file("", content, 1, CONTEXT);
        }
        Before::Unreadable(why) => {
            view.field(&format!("content in place of a file that {why}"));
            view.diff_of_file("", content, 1, CONTEXT);
        }
    }
}

/// The tool that changes cells.
pub(crate) const NOTEBOOK_EDIT: &str = "NotebookEdit";

/// The notebook with the cell to delete, and the call's reference to that cell; `None`: no cell is deleted.
pub(crate) fn changed_notebook<'a>(tool: &str, input: &'a Value) -> Option<&'a str> {
    let goes = tool == NOTEBOOK_EDIT && input["edit_mode"] != "insert";
    goes.then(|| input["notebook_path"].as_str()).flatten()
}

/// The source of a cell. A notebook of an older format has no ids: then the cell is named by its number, as `cell-0`.
///
/// The error says why it is unknown, in words that follow "a cell that".
pub(crate) fn cell_source(notebook: &str, cell: &Value) -> Result<String, String> {
    let notebook: Value = serde_json::from_str(notebook).map_err(|_| "cannot be shown: the notebook is not JSON")?;
    let cells = notebook["cells"].as_array().ok_or("cannot be shown: the notebook has no cells")?;
    let cell = cell.as_str().ok_or("the call does not name")?;
    let number = || cells.get(cell.strip_prefix("cell-")?.parse::<usize>().ok()?);
    let found = cells.iter().find(|found| found["id"] == cell).or_else(number).ok_or("the notebook does not have")?;
    match &found["source"] {
        Value::String(text) => Ok(text.clone()),
        Value::Array(lines) => Ok(lines.iter().filter_map(Value::as_str).collect()),
        _ => Err("has no source".to_owned()),
    }
}

#[cfg(test)]
mod tests;
