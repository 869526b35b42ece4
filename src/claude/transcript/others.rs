//! Detects what other processes added to a transcript while an attempt ran: a person continued the session of a working agent.
//!
//! A line has the same `uuid` in the transcript and in the output of its `claude`. Prompts are not printed, but the answers to
//! them are.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::claude::transcript::insert_results::mark;
use crate::claude::transcript::rewrite::{Change, Entries};

/// What Claude Code records after a message, outside the conversation.
const NOTES: [&str; 3] = ["last-prompt", "mode", "cost-state"];

/// The transcript without the lines of others; `None` if there are none. `known`: what the attempt started with. `printed`: the
/// lines that its own `claude` printed.
pub(crate) fn without_others(transcript: &Entries, known: &Entries, printed: &HashSet<String>) -> Option<Vec<u8>> {
    let others = of_others(transcript, known, printed);
    if others.is_empty() {
        return None;
    }
    let mut changes = HashMap::new();
    let mut follows_others = false;
    for (at, entry) in transcript.entries().enumerate() {
        let uuid = entry["uuid"].as_str();
        follows_others = uuid.map_or(follows_others, |uuid| others.contains(uuid));
        let is_note = uuid.is_none() && entry["type"].as_str().is_some_and(|kind| NOTES.contains(&kind));
        // A truncated line was never complete.
        if entry.is_null() || follows_others && (uuid.is_some() || is_note) {
            changes.insert(at, Change::Drop);
        }
    }
    transcript.copy(&changes, Vec::new()).ok()
}

/// Whether there is a prompt that the attempt did not start with. Its own prompt counts.
pub(crate) fn has_prompts(transcript: &Entries, known: &Entries) -> bool {
    transcript.beyond(known).rows().any(|(_, row)| is_prompt(row))
}

fn is_prompt(row: &Value) -> bool {
    row["type"] == "user" && row["promptSource"].is_string()
}

/// The lines of others: their prompts, what Claude Code puts before these, and everything that follows either.
fn of_others<'a>(transcript: &'a Entries, known: &'a Entries, printed: &HashSet<String>) -> HashSet<&'a str> {
    let rows: Vec<&Value> = transcript.rows().map(|(_, entry)| entry).collect();
    let by_name: HashMap<&str, &Value> = rows.iter().map(|row| (name(row), *row)).collect();
    let above = |row: &Value| row["parentUuid"].as_str().and_then(|parent| by_name.get(parent).copied());
    let mut own: HashSet<&str> = known.rows().map(|(_, row)| name(row)).collect();
    for row in rows.iter().filter(|row| printed.contains(name(row))) {
        let mut next = Some(*row);
        while let Some(row) = next.filter(|row| own.insert(name(row))) {
            next = above(row);
        }
    }
    let prompts = rows.iter().filter(|row| is_prompt(row));
    let mut others = HashSet::new();
    for prompt in prompts.filter(|row| !own.contains(name(row))) {
        let answers = with_what_follows(&rows, HashSet::from([name(prompt)]));
        let below = rows.iter().skip_while(|row| name(row) != name(prompt));
        // A prompt without an answer, which nothing of the attempt follows, may be its own: its `claude` may have been killed.
        let is_last_word =
            |row: &&Value| row["type"] != "assistant" || !answers.contains(name(row)) && !printed.contains(name(row));
        if below.clone().all(is_last_word) {
            continue;
        }
        let is_of_turn = |row: &&&Value| row["promptId"].is_string() && row["promptId"] == prompt["promptId"];
        let mut turn: HashSet<&str> = rows.iter().filter(is_of_turn).map(|row| name(row)).collect();
        let mut next = Some(*prompt);
        while let Some(row) = next.filter(|row| !own.contains(name(row)) && mark(row).is_none()) {
            turn.insert(name(row));
            next = above(row);
        }
        let theirs = with_what_follows(&rows, turn);
        if theirs.is_disjoint(&own) {
            others.extend(theirs);
        }
    }
    others
}

/// The lines and all that follow them. A line comes after the one that it follows, so one pass is enough.
fn with_what_follows<'a>(rows: &[&'a Value], mut lines: HashSet<&'a str>) -> HashSet<&'a str> {
    for row in rows {
        if row["parentUuid"].as_str().is_some_and(|parent| lines.contains(parent)) {
            lines.insert(name(row));
        }
    }
    lines
}

fn name(row: &Value) -> &str {
    row["uuid"].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(kind: &str, uuid: &str, parent: &str) -> Value {
        let parent = if parent.is_empty() { Value::Null } else { parent.into() };
        json!({"type": kind, "uuid": uuid, "parentUuid": parent, "message": {"id": uuid, "content": []}})
    }

    fn prompt(uuid: &str, parent: &str) -> Value {
        let mut line = line("user", uuid, parent);
        line["promptSource"] = "typed".into();
        line["promptId"] = format!("turn of {uuid}").into();
        line
    }

    fn entries(lines: &[Value]) -> Entries {
        Entries::read(lines.iter().map(|line| format!("{line}\n")).collect::<String>().as_bytes()).unwrap()
    }

    /// The rest, by name, or by kind if a line has no name; `None` if there are no lines of others.
    fn left(lines: &[Value], printed: &[&str]) -> Option<String> {
        let printed = printed.iter().map(|uuid| (*uuid).to_owned()).collect();
        let text = without_others(&entries(lines), &entries(&[line("user", "k", "")]), &printed)?;
        let left = Entries::read(text.as_slice()).unwrap();
        let names = left.entries().map(|entry| entry["uuid"].as_str().or(entry["type"].as_str()).unwrap().to_owned());
        Some(names.collect::<Vec<_>>().join(" "))
    }

    fn mark_of(uuid: &str, parent: &str) -> Value {
        let mut line = line("attachment", uuid, parent);
        line["attachment"] = json!({"type": "hook_deferred_tool", "toolUseID": "toolu_1"});
        line
    }

    #[test]
    fn what_was_said_beside_the_work_of_an_agent_is_left_out() {
        let mut interrupted = line("user", "i", "b");
        interrupted["promptId"] = "turn of q".into();
        let [k, p, a, b] =
            [line("user", "k", ""), prompt("p", "k"), line("assistant", "a", "p"), line("assistant", "b", "a")];
        let words = [interrupted, line("assistant", "n", "a"), prompt("q", "n"), line("assistant", "r", "q")];
        let notes = [json!({"type": "last-prompt", "leafUuid": "r"}), json!({"type": "api-request"})];
        let rest = [line("user", "t", "b"), line("assistant", "c", "t")];
        let before = [k, p, a, b];
        let all = [&before[..], &words, &notes, &rest].concat();
        assert_eq!(left(&all, &["a", "b", "t", "c"]).unwrap(), "k p a b api-request t c");
        let at_the_end = [&before[..], &rest, &words].concat();
        assert_eq!(left(&at_the_end, &["a", "b", "t", "c"]).unwrap(), "k p a b t c");
        let unanswered = [&before[..], &words[..3], &rest].concat();
        assert_eq!(left(&unanswered, &["a", "b", "t", "c"]).unwrap(), "k p a b t c");
        let without = [&before[..], &rest].concat();
        assert_eq!(left(&without, &["a", "b", "t", "c"]), None);
    }

    #[test]
    fn a_mark_stays_though_somebody_has_spoken_behind_it() {
        let own = [line("user", "k", ""), line("assistant", "a", "k"), mark_of("m", "a")];
        let words = [line("attachment", "s", "m"), prompt("q", "s"), line("assistant", "r", "q")];
        assert_eq!(left(&[&own[..], &words].concat(), &["a"]).unwrap(), "k a m");
    }

    #[test]
    fn what_its_own_claude_had_not_printed_stays() {
        let own = [line("user", "k", ""), line("assistant", "a", "k"), prompt("p", "a"), line("attachment", "s", "p")];
        assert_eq!(left(&own, &["a"]), None);
        let notification =
            [line("user", "k", ""), line("assistant", "a", "k"), line("user", "t", "a"), line("assistant", "b", "t")];
        assert_eq!(left(&notification, &["a"]), None);
    }
}
