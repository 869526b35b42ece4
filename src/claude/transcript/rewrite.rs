//! Copies transcripts with lines left out, replaced or added. The line after a removed one then follows the line before it;
//! otherwise Claude Code would take it for the beginning of the conversation.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead};

use serde_json::Value;

use crate::claude::transcript::ancestry::{Ancestry, Broken};
use crate::core::id::SessionId;
use crate::core::text::json;

#[derive(Clone, Debug, Default)]
pub(crate) struct Entries {
    lines: Vec<EntryLine>,
}

/// A line, raw and parsed. A line that is not JSON is null.
#[derive(Clone, Debug)]
struct EntryLine {
    text: Vec<u8>,
    entry: Value,
}

impl EntryLine {
    fn name(&self) -> &[u8] {
        self.entry["uuid"].as_str().map_or(&self.text, str::as_bytes)
    }
}

/// A change of a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    Drop,
    Replace(Value),
}

impl Entries {
    pub(crate) fn read(transcript: impl BufRead) -> io::Result<Self> {
        let mut lines = Vec::new();
        for text in transcript.split(b'\n') {
            let text = text?;
            let entry = json::read(&text).unwrap_or_default();
            lines.push(EntryLine { text, entry });
        }
        lines.retain(|line| !line.text.is_empty());
        Ok(Self { lines })
    }

    /// Checks whether the conversation reaches its beginning.
    pub(crate) fn check(&self) -> Result<(), Broken> {
        Ancestry::from_entries(self.lines.iter().map(|line| &line.entry)).chain().map(drop)
    }

    /// The lines that `other` does not have.
    pub(crate) fn beyond(&self, other: &Self) -> Self {
        let known: HashSet<&[u8]> = other.lines.iter().map(EntryLine::name).collect();
        let lines = self.lines.iter().filter(|line| !known.contains(line.name()));
        Self { lines: lines.cloned().collect() }
    }

    /// Whether there are any messages among them.
    pub(crate) fn are_words(&self) -> bool {
        self.lines.iter().any(|line| matches!(line.entry["type"].as_str(), Some("user" | "assistant")))
    }

    /// These lines, followed by those of `others`.
    pub(crate) fn followed_by(mut self, others: Self) -> Self {
        self.lines.extend(others.lines);
        self
    }

    /// The same lines as a transcript of `session`.
    pub(crate) fn of_session(&self, session: SessionId) -> Vec<u8> {
        let mut text = Vec::new();
        for line in &self.lines {
            let named = line.entry["sessionId"].as_str().map(|old| format!("\"sessionId\":\"{old}\""));
            match named.zip(std::str::from_utf8(&line.text).ok()) {
                Some((old, line)) => text.extend(line.replace(&old, &format!("\"sessionId\":\"{session}\"")).bytes()),
                None => text.extend_from_slice(&line.text),
            }
            text.push(b'\n');
        }
        text
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Value> {
        self.lines.iter().map(|line| &line.entry)
    }

    /// The conversation up to the lines in `said`, without the lines of others elsewhere. All of it if there is nothing else.
    pub(crate) fn leading_to(self, said: &Self) -> Self {
        let wanted: HashSet<&str> = said.rows().filter_map(|(_, row)| row["uuid"].as_str()).collect();
        let is_last = self
            .rows()
            .next_back()
            .is_none_or(|(_, row)| row["uuid"].as_str().is_some_and(|uuid| wanted.contains(uuid)));
        if is_last {
            return self;
        }
        let parents: HashMap<&str, Option<&str>> =
            self.rows().filter_map(|(_, row)| Some((row["uuid"].as_str()?, row["parentUuid"].as_str()))).collect();
        let mut leading = HashSet::new();
        for uuid in &wanted {
            let mut next = Some(*uuid);
            while let Some(uuid) = next.filter(|uuid| leading.insert(*uuid)) {
                next = parents.get(uuid).copied().flatten();
            }
        }
        let leads = |line: &&EntryLine| line.entry["uuid"].as_str().is_none_or(|uuid| leading.contains(uuid));
        Self { lines: self.lines.iter().filter(leads).cloned().collect() }
    }

    /// The lines that belong to the conversation, with their numbers. Other lines may repeat messages.
    pub(crate) fn rows(&self) -> impl DoubleEndedIterator<Item = (usize, &Value)> {
        self.lines.iter().map(|line| &line.entry).enumerate().filter(|(_, entry)| entry["uuid"].is_string())
    }

    /// A copy with `changes` to some lines, and the lines `added` at its end. Unchanged lines are identical to the byte.
    pub(crate) fn copy(&self, changes: &HashMap<usize, Change>, added: Vec<Value>) -> Result<Vec<u8>, Broken> {
        let mut dropped = HashMap::new();
        let mut kept = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            match changes.get(&at) {
                None => kept.push(line.clone()),
                Some(Change::Replace(entry)) => kept.push(EntryLine { text: Vec::new(), entry: entry.clone() }),
                Some(Change::Drop) => {
                    let uuid = line.entry["uuid"].as_str();
                    dropped.extend(uuid.map(|uuid| (uuid.to_owned(), line.entry["parentUuid"].clone())));
                }
            }
        }
        kept.extend(added.into_iter().map(|entry| EntryLine { text: Vec::new(), entry }));
        // A line that occurs twice is still there once.
        for line in &kept {
            line.entry["uuid"].as_str().map(|uuid| dropped.remove(uuid));
        }
        let last = kept.iter().rev().find_map(|line| line.entry["uuid"].as_str()).map(Value::from).unwrap_or_default();
        let mut text = Vec::new();
        for line in &mut kept {
            let changed = forget(&mut line.entry, &dropped, &last);
            if line.text.is_empty() || !changed.is_empty() {
                line.text = json::with_changed(&line.text, &changed, &line.entry);
            }
            text.extend_from_slice(&line.text);
            text.push(b'\n');
        }
        let dropped = changes.keys().filter_map(|at| self.lines[*at].entry["uuid"].as_str()).map(str::to_owned);
        let now = Ancestry::from_entries(kept.iter().map(|line| &line.entry));
        now.keeps(&Ancestry::from_entries(self.lines.iter().map(|line| &line.entry)), &dropped.collect())?;
        Ok(text)
    }
}

/// Replaces the ids of dropped lines that a line names. Returns the fields in which there were any.
fn forget(entry: &mut Value, dropped: &HashMap<String, Value>, last: &Value) -> Vec<String> {
    /// A message may have any content.
    const SAID: [&str; 5] = ["message", "attachment", "toolUseResult", "content", "uuid"];
    let Some(fields) = entry.as_object_mut() else { return Vec::new() };
    let mut changed = Vec::new();
    for (name, value) in fields.iter_mut().filter(|(name, _)| !SAID.contains(&name.as_str())) {
        // The line that the conversation has reached.
        let of_end = (name == "leafUuid").then_some(last);
        if replace(value, dropped, of_end) {
            changed.push(name.clone());
        }
    }
    changed
}

fn replace(value: &mut Value, dropped: &HashMap<String, Value>, instead: Option<&Value>) -> bool {
    let is_dropped = |value: &Value| value.as_str().is_some_and(|text| dropped.contains_key(text));
    match value {
        Value::String(_) if is_dropped(value) => {
            *value = instead.cloned().unwrap_or_else(|| above(value.as_str().unwrap_or_default(), dropped));
            true
        }
        Value::Array(list) => {
            let before = list.len();
            list.retain(|value| !is_dropped(value));
            let within = list.iter_mut().filter_map(|value| replace(value, dropped, instead).then_some(())).count() > 0;
            within || list.len() < before
        }
        Value::Object(fields) => {
            fields.values_mut().filter_map(|value| replace(value, dropped, instead).then_some(())).count() > 0
        }
        _ => false,
    }
}

/// The nearest ancestor of a dropped line that is not dropped.
fn above(uuid: &str, dropped: &HashMap<String, Value>) -> Value {
    let (mut seen, mut uuid) = (HashSet::new(), uuid);
    loop {
        match dropped.get(uuid) {
            Some(Value::String(parent)) if seen.insert(uuid) => uuid = parent,
            // No ancestor of a circle is outside it.
            Some(_) => return Value::Null,
            None => return Value::from(uuid),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::claude::transcript::ancestry;

    const KINDS: [&str; 5] = ["user", "assistant", "attachment", "system", "progress"];

    /// A conversation in which lines follow any earlier line, and name others in other ways.
    fn any_conversation() -> impl Strategy<Value = Vec<Value>> {
        let line = (0..KINDS.len(), any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..10_u8);
        prop::collection::vec(line, 1..24).prop_map(|lines| {
            let mut made: Vec<Value> = Vec::new();
            for (at, (kind, parent, other, chance)) in lines.into_iter().enumerate() {
                let named = |index: prop::sample::Index| (at > 0).then(|| format!("u{}", index.index(at)));
                // Most follow the line before them.
                let parent = if chance < 7 { at.checked_sub(1).map(|at| format!("u{at}")) } else { named(parent) };
                made.push(json!({
                    "uuid": format!("u{at}"), "parentUuid": parent, "type": KINDS[kind], "logicalParentUuid": named(other),
                    "compactMetadata": {"preservedMessages": {"uuids": [named(other)]}},
                    "message": {"id": format!("m{at}"), "content": "u1"},
                }));
                made.push(json!({"type": "last-prompt", "leafUuid": named(other), "lastPrompt": "u1 said"}));
            }
            made
        })
    }

    fn text(lines: &[Value]) -> Vec<u8> {
        lines.iter().map(|line| format!("{line}\n")).collect::<String>().into_bytes()
    }

    /// Every uuid that occurs in lines.
    fn named(lines: &[Value]) -> HashSet<String> {
        let of = |line: &Value| {
            let fields = ["parentUuid", "logicalParentUuid", "leafUuid"].map(|name| line[name].clone());
            let list = line["compactMetadata"]["preservedMessages"]["uuids"].as_array().cloned().unwrap_or_default();
            fields.into_iter().chain(list).filter_map(|value| value.as_str().map(str::to_owned)).collect::<Vec<_>>()
        };
        lines.iter().flat_map(of).collect()
    }

    fn there(lines: &[Value]) -> HashSet<String> {
        lines.iter().filter_map(|line| line["uuid"].as_str().map(str::to_owned)).collect()
    }

    proptest! {
        #[test]
        fn every_line_that_is_named_is_there(lines in any_conversation(), drop in prop::collection::hash_set(0..48_usize, 0..12)) {
            let transcript = Entries::read(text(&lines).as_slice()).unwrap();
            let last = lines.iter().rposition(|line| ["user", "assistant"].iter().any(|kind| line["type"] == *kind));
            let is_row = |at: &usize| Some(*at) != last && lines.get(*at).is_some_and(|line| line["uuid"].is_string());
            let changes: HashMap<_, _> = drop.into_iter().filter(is_row).map(|at| (at, Change::Drop)).collect();
            let copied = transcript.copy(&changes, Vec::new());
            prop_assert!(copied.is_ok(), "{:?}", copied);
            let copied = copied.unwrap();
            let after: Vec<Value> = copied.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
            prop_assert!(named(&after).is_subset(&there(&after)));
            prop_assert_eq!(ancestry::check(copied.as_slice()).unwrap(), Ok(()));
            let said = |lines: &[Value]| lines.iter().map(|line| line["message"].clone()).collect::<Vec<_>>();
            let kept: Vec<_> = lines.iter().enumerate().filter(|(at, _)| !changes.contains_key(at)).map(|(_, line)| line.clone()).collect();
            prop_assert_eq!(said(&after), said(&kept));
            if changes.is_empty() {
                prop_assert_eq!(copied, text(&lines));
            }
        }
    }

    #[test]
    fn what_was_said_stays_as_it_was_written_if_its_line_follows_on_another() {
        let first = r#"{"type":"user","uuid":"a","parentUuid":null,"message":"go"}"#;
        let left_out = r#"{"type":"attachment","uuid":"b","parentUuid":"a"}"#;
        let said = r#""message": {"content":"cut \ud83d","number":1.50e2,"a":1,"a":2}"#;
        let line = |parent: &str| format!(r#"{{"type":"user","uuid":"c","parentUuid":"{parent}",{said}}}"#);
        let transcript = Entries::read([first, left_out, &line("b")].join("\n").as_bytes()).unwrap();
        let copied = transcript.copy(&HashMap::from([(1, Change::Drop)]), Vec::new()).unwrap();
        let said = line("a").replace("\"message\": ", "\"message\":");
        assert_eq!(String::from_utf8(copied).unwrap(), format!("{first}\n{said}\n"));
    }

    #[test]
    fn what_was_said_beside_a_copy_becomes_a_session_of_its_own() {
        let line = |uuid: &str, kind: &str| json!({"type": kind, "uuid": uuid, "sessionId": "old", "text": "\"old\""});
        let read = |lines: &[Value]| Entries::read(text(lines).as_slice()).unwrap();
        let copy = read(&[line("a", "user")]);
        let notes = read(&[line("a", "user"), line("n", "system"), json!({"type": "mode"})]);
        assert!(!notes.beyond(&copy).are_words());
        let words = read(&[line("a", "user"), line("b", "assistant")]);
        assert!(words.beyond(&copy).are_words() && !words.beyond(&words).are_words());
        let session = SessionId::random();
        let named = copy.followed_by(words.beyond(&read(&[line("a", "user")]))).of_session(session);
        let renamed = |uuid, kind| {
            let mut line = line(uuid, kind);
            line["sessionId"] = session.to_string().into();
            line
        };
        assert_eq!(named, text(&[renamed("a", "user"), renamed("b", "assistant")]));
    }

    #[test]
    fn a_copy_that_would_lack_some_of_the_conversation_is_none() {
        let line = |uuid: &str, parent: Option<&str>| json!({"type": "user", "uuid": uuid, "parentUuid": parent});
        let transcript =
            Entries::read(text(&[line("a", None), line("b", Some("a")), line("c", Some("b"))]).as_slice()).unwrap();
        assert!(transcript.copy(&HashMap::new(), vec![line("d", Some("c"))]).is_ok());
        assert!(transcript.copy(&HashMap::new(), vec![line("d", Some("a"))]).is_err(), "b and c would be left out");
        assert!(transcript.copy(&HashMap::new(), vec![line("d", Some("x"))]).is_err(), "x is not there");
        assert!(transcript.copy(&HashMap::from([(1, Change::Drop)]), Vec::new()).is_ok());
    }
}
