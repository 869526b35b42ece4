//! Checks whether a conversation is complete: Claude Code goes from the last line of a transcript to its parent, on to that
//! line's parent and so on, and takes these lines for the conversation. A missing parent silently cuts off everything before
//! it.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::{self, BufRead};

use serde::Deserialize;
use serde_json::Value;
use serde_with::{DefaultOnError, VecSkipError, serde_as};

use crate::claude::json_lines::json_lines;

/// A line of a transcript that has a place in a conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AncestryRow {
    pub(crate) uuid: String,
    pub(crate) parent: Option<String>,
    /// The id of the message of the model that this is a part of.
    pub(crate) message: Option<String>,
    /// The line with the call whose result this is.
    pub(crate) result_of: Option<String>,
    kind: RowKind,
    /// In milliseconds.
    time: Option<i64>,
    /// It may begin a conversation even if it names a parent.
    begins: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RowKind {
    User,
    Assistant,
    /// It marks a call as suspended.
    Mark,
    #[default]
    Other,
}

/// The rows of a conversation, in file order, without those of subagents.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ancestry {
    rows: Vec<AncestryRow>,
    by_uuid: HashMap<String, usize>,
}

/// A conversation that does not reach back to its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    /// The line at which it ends.
    at: String,
    /// The missing parent; `None`: the lines form a circle, or some are left out.
    parent: Option<String>,
}

/// Claude Code replaces a missing parent by the previous line if that is no older than this. In milliseconds.
const BRIDGED: i64 = 5000;

/// Checks whether the conversation in a transcript reaches its beginning.
pub(crate) fn check(transcript: impl BufRead) -> io::Result<Result<(), Broken>> {
    let lines = json_lines(transcript).collect::<io::Result<_>>()?;
    Ok(Ancestry::new(lines).chain().map(drop))
}

impl Ancestry {
    pub(crate) fn from_entries<'a>(entries: impl IntoIterator<Item = &'a Value>) -> Self {
        let line = |entry: &Value| AncestryLine::deserialize(entry).ok();
        Self::new(entries.into_iter().filter_map(line).collect())
    }

    fn new(lines: Vec<AncestryLine>) -> Self {
        // After a summary Claude Code links the preserved messages in order, whatever parents they name.
        let preserved: HashSet<String> = lines.iter().flat_map(AncestryLine::preserved).collect();
        let mut ancestry = Self::default();
        for mut row in lines.into_iter().filter_map(AncestryLine::row) {
            row.begins |= preserved.contains(&row.uuid);
            ancestry.by_uuid.insert(row.uuid.clone(), ancestry.rows.len());
            ancestry.rows.push(row);
        }
        ancestry
    }

    /// The rows from the last one to the first one.
    pub(crate) fn chain(&self) -> Result<Vec<&AncestryRow>, Broken> {
        let mut chain: Vec<&AncestryRow> = Vec::new();
        let mut seen = HashSet::new();
        let mut next = self.rows.iter().rposition(|row| row.kind != RowKind::Other);
        while let Some(at) = next {
            let row = &self.rows[at];
            chain.push(row);
            seen.insert(at);
            next = match &row.parent {
                None => None,
                Some(parent) => match self.by_uuid.get(parent) {
                    Some(parent) if !seen.contains(parent) => Some(*parent),
                    _ if self.is_beginning(at) => None,
                    found => {
                        let parent = found.is_none().then(|| parent.clone());
                        let broken = || Broken { at: row.uuid.clone(), parent };
                        Some(self.before(row, &seen).ok_or_else(broken)?)
                    }
                },
            };
        }
        Ok(chain)
    }

    /// Whether a conversation that begins here is complete.
    fn is_beginning(&self, at: usize) -> bool {
        let spoken = |row: &AncestryRow| matches!(row.kind, RowKind::User | RowKind::Assistant);
        self.rows[at].begins || !self.rows[..at].iter().any(spoken)
    }

    /// The row that Claude Code takes for the parent of a row whose parent is missing.
    fn before(&self, row: &AncestryRow, seen: &HashSet<usize>) -> Option<usize> {
        let time = row.time?;
        let earlier = self.rows.iter().enumerate().filter(|(at, _)| !seen.contains(at));
        let earlier = earlier.filter_map(|(at, row)| Some((row.time.filter(|other| *other <= time)?, at)));
        earlier.max().filter(|(earlier, _)| time - earlier <= BRIDGED).map(|(_, at)| at)
    }

    /// Checks whether this contains the whole conversation of `original`, apart from the lines in `dropped`.
    pub(crate) fn keeps(&self, original: &Self, dropped: &HashSet<String>) -> Result<(), Broken> {
        let Ok(before) = original.chain() else { return Ok(()) };
        let now = self.chain()?;
        let rows: HashSet<&str> = now.iter().map(|row| row.uuid.as_str()).collect();
        let messages: HashSet<&str> = now.iter().filter_map(|row| row.message.as_deref()).collect();
        // The calls of a message are found with their results if one of them is.
        let is_reached = |row: &AncestryRow| {
            rows.contains(row.uuid.as_str()) || row.message.as_deref().is_some_and(|id| messages.contains(id))
        };
        let is_there = |row: &&&AncestryRow| {
            let source = row.result_of.as_ref().and_then(|uuid| original.by_uuid.get(uuid));
            is_reached(row) || source.is_some_and(|at| is_reached(&original.rows[*at]))
        };
        let spoken = before.iter().filter(|row| matches!(row.kind, RowKind::User | RowKind::Assistant));
        let mut lost = spoken.filter(|row| !dropped.contains(&row.uuid) && !is_there(row));
        lost.next().map_or(Ok(()), |row| Err(Broken { at: row.uuid.clone(), parent: None }))
    }
}

impl std::error::Error for Broken {}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.parent {
            Some(parent) => write!(f, "its line {} follows on {parent}, which is not there", self.at),
            None => write!(f, "its line {} is not connected with its beginning", self.at),
        }
    }
}

/// The relevant fields of a line. Any field may have any shape.
#[serde_as]
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AncestryLine {
    uuid: Value,
    parent_uuid: Value,
    r#type: Value,
    subtype: Value,
    is_sidechain: Value,
    is_compact_summary: Value,
    timestamp: Value,
    #[serde(rename = "sourceToolAssistantUUID")]
    source: Value,
    compact_metadata: Value,
    #[serde_as(deserialize_as = "DefaultOnError")]
    message: AncestryMessage,
    #[serde_as(deserialize_as = "DefaultOnError")]
    attachment: Attachment,
}

#[serde_as]
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AncestryMessage {
    id: Value,
    #[serde_as(deserialize_as = "DefaultOnError<VecSkipError<_>>")]
    content: Vec<AncestryBlock>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AncestryBlock {
    r#type: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Attachment {
    r#type: Value,
}

impl AncestryLine {
    fn row(self) -> Option<AncestryRow> {
        let text = |value: Value| match value {
            Value::String(text) => Some(text),
            _ => None,
        };
        if self.is_sidechain == true {
            return None;
        }
        let kind = match self.r#type.as_str() {
            Some("user") => RowKind::User,
            Some("assistant") => RowKind::Assistant,
            Some("attachment") if self.attachment.r#type == "hook_deferred_tool" => RowKind::Mark,
            _ => RowKind::Other,
        };
        let parent = text(self.parent_uuid);
        let is_result = self.message.content.iter().any(|block| block.r#type == "tool_result");
        // If the line with its call is not named, that line is the parent of the result.
        let result_of = text(self.source).or_else(|| parent.clone().filter(|_| is_result));
        let time = self.timestamp.as_str().and_then(|time| time.parse::<jiff::Timestamp>().ok());
        Some(AncestryRow {
            uuid: text(self.uuid)?,
            parent,
            message: text(self.message.id).filter(|_| kind == RowKind::Assistant),
            result_of,
            kind,
            time: time.map(jiff::Timestamp::as_millisecond),
            begins: self.is_compact_summary == true || self.subtype == "compact_boundary",
        })
    }

    /// The messages that a summary preserved.
    fn preserved(&self) -> Vec<String> {
        let metadata = &self.compact_metadata;
        let (messages, segment) = (&metadata["preservedMessages"], &metadata["preservedSegment"]);
        let listed = ["uuids", "allUuids"].into_iter().flat_map(|name| messages[name].as_array().into_iter().flatten());
        listed.chain([&segment["headUuid"]]).filter_map(Value::as_str).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn checked(lines: &[Value]) -> Result<(), Broken> {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        check(text.as_bytes()).unwrap()
    }

    fn line(kind: &str, uuid: &str, parent: Option<&str>) -> Value {
        json!({"type": kind, "uuid": uuid, "parentUuid": parent, "timestamp": "2026-01-01T00:00:00.000Z"})
    }

    fn later(mut line: Value, time: &str) -> Value {
        line["timestamp"] = time.into();
        line
    }

    #[test]
    fn a_parent_that_is_not_there_breaks_a_conversation() {
        let whole = [line("user", "a", None), line("system", "s", Some("a")), line("assistant", "b", Some("s"))];
        assert_eq!(checked(&whole), Ok(()));
        let broken = [line("user", "a", None), later(line("assistant", "b", Some("s")), "2026-01-01T00:00:07.000Z")];
        let found = checked(&broken).unwrap_err();
        assert_eq!(found.to_string(), "its line b follows on s, which is not there");
        // A subagent's lines are another conversation, and lines outside the conversation cut nothing off.
        let mut side = line("user", "c", Some("x"));
        side["isSidechain"] = true.into();
        let system = later(line("system", "d", Some("x")), "2026-01-01T01:00:00.000Z");
        assert_eq!(checked(&[&whole[..], &[side, system]].concat()), Ok(()));
        let late = |line: Value| later(line, "2026-01-01T01:00:00.000Z");
        let circle = [late(line("user", "e", Some("b"))), late(line("assistant", "b", Some("e")))];
        assert!(checked(&[&whole[..1], &circle].concat()).is_err() && checked(&circle).is_ok());
    }

    #[test]
    fn a_gap_of_a_few_seconds_is_one_that_claude_code_closes() {
        let after = |time: &str| checked(&[line("user", "a", None), later(line("user", "b", Some("x")), time)]);
        assert_eq!(after("2026-01-01T00:00:05.000Z"), Ok(()));
        assert!(after("2026-01-01T00:00:05.001Z").is_err());
        assert!(after("no time").is_err());
    }

    #[test]
    fn a_conversation_may_begin_in_the_middle() {
        let later = |line: Value| later(line, "2026-01-01T01:00:00.000Z");
        let earlier = line("user", "a", None);
        // With a summary, or with preserved messages next to one.
        let mut boundary = line("system", "c", None);
        boundary["subtype"] = "compact_boundary".into();
        boundary["logicalParentUuid"] = "x".into();
        boundary["compactMetadata"] = json!({"preservedMessages": {"anchorUuid": "s", "uuids": ["p"]}});
        let mut summary = later(line("user", "s", Some("x")));
        summary["isCompactSummary"] = true.into();
        let preserved = later(line("assistant", "p", Some("x")));
        for last in [&summary, &preserved] {
            assert_eq!(checked(&[earlier.clone(), boundary.clone(), last.clone()]), Ok(()));
        }
        assert_eq!(checked(&[boundary, later(line("user", "d", Some("c")))]), Ok(()));
        // With its first line, whose parent the file lacks, or without any parents, as very old versions wrote it.
        assert_eq!(checked(&[json!({"type": "summary", "leafUuid": "y"}), line("user", "a", Some("x"))]), Ok(()));
        assert_eq!(checked(&[earlier, json!({"type": "user", "uuid": "b"})]), Ok(()));
        assert_eq!(checked(&[]), Ok(()));
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_checked(bytes: Vec<u8>, parents in prop::collection::vec(prop::option::of(0..8_usize), 0..8)) {
            let _ = check(bytes.as_slice()).unwrap();
            let lines = parents.iter().enumerate().map(|(at, parent)| {
                line("user", &at.to_string(), parent.map(|parent| parent.to_string()).as_deref())
            });
            // Any parents, including circles, must lead to an end.
            let _ = checked(&lines.collect::<Vec<_>>());
        }
    }
}
