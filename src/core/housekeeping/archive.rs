//! The archive that moves a chain to another machine: an uncompressed tar file that contains only regular files.
//!
//! ```text
//! manifest.json           first: what the archive is, and what can read it
//! rows/TABLE.ndjson       the rows of a table, a JSON object each
//! frames/FRAME/NAME       a file of a frame
//! SHA256SUMS              last: the sums of all entries before it, as `sha256sum --check` reads them
//! ```
//!
//! Readers trust nothing in it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::core::agent::session_file_names::BESIDE;
use crate::core::id::{FrameId, SessionId};

/// The first entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// The version of the program that wrote it, for people.
    #[serde(rename = "agent-cli")]
    pub program: String,
    pub format: u32,
    /// The version of the database that the rows are from.
    pub schema: u32,
    /// The root of the chain that the archive holds.
    pub root: FrameId,
}

/// The fields that a manifest of any version has.
#[derive(Deserialize)]
struct Versions {
    #[serde(rename = "agent-cli")]
    program: String,
    format: u32,
    #[serde(default)]
    schema: u32,
}

/// An entry between the manifest and the sums.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ArchiveMember {
    /// The rows of this table.
    Rows(String),
    /// A file of a frame.
    File {
        /// The frame.
        frame: FrameId,
        /// Its path in the frame's directory.
        name: String,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ArchiveRow {
    pub table: String,
    pub values: Map<String, Value>,
}

/// Why an archive is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadArchive {
    /// It is not an archive.
    #[error("it is not an archive of agent-cli export")]
    Foreign,
    /// A newer program wrote it.
    #[error("it was written by agent-cli {0}, which is newer than this one")]
    Newer(String),
    /// It ends too early.
    #[error("it is cut short")]
    Short,
    /// Its content is not what was written.
    #[error("it is damaged: {0}")]
    Damaged(String),
}

/// The format that this program writes, and the newest that it reads.
pub(crate) const FORMAT: u32 = 1;
/// The tables of which an archive has rows.
pub(crate) const TABLES: [&str; 9] =
    ["frames", "replies", "attempts", "answers", "requests", "stops", "messages", "events", "chains"];
/// The path of the first entry.
pub(crate) const MANIFEST: &str = "manifest.json";
/// The path of the last entry.
pub(crate) const SUMS: &str = "SHA256SUMS";
pub(crate) const LARGEST_MANIFEST: u64 = 64 << 10;
/// Larger archives are refused before they fill the disk.
pub(crate) const LARGEST_ARCHIVE: u64 = 64 << 30;
/// Archives with more entries are refused before their names fill the memory.
pub(crate) const MOST_ENTRIES: usize = 1 << 20;

impl Manifest {
    /// Reads the content of the first entry, with the newest schema that this program knows.
    pub(crate) fn parse(content: &[u8], schema: u32) -> Result<Self, BadArchive> {
        let versions: Versions = serde_json::from_slice(content).map_err(|_| BadArchive::Foreign)?;
        if versions.format > FORMAT || versions.schema > schema {
            return Err(BadArchive::Newer(versions.program));
        }
        serde_json::from_slice(content).map_err(|error| BadArchive::Damaged(format!("{MANIFEST}: {error}")))
    }
}

impl ArchiveMember {
    /// The member with this path. A file stays in its frame's directory.
    pub(crate) fn parse(path: &str) -> Option<Self> {
        if let Some(table) = path.strip_prefix("rows/") {
            let table = table.strip_suffix(".ndjson").filter(|table| is_table_name(table))?;
            return Some(Self::Rows(table.to_owned()));
        }
        let (frame, name) = path.strip_prefix("frames/")?.split_once('/')?;
        let frame = Some(frame).filter(|frame| is_id(frame))?.parse().ok()?;
        is_file_name(name).then(|| Self::File { frame, name: name.to_owned() })
    }

    pub(crate) fn path(&self) -> String {
        match self {
            Self::Rows(table) => format!("rows/{table}.ndjson"),
            Self::File { frame, name } => format!("frames/{frame}/{name}"),
        }
    }

    /// The largest size: rows are held in memory.
    pub(crate) fn limit(&self) -> u64 {
        match self {
            Self::Rows(_) => 256 << 20,
            Self::File { .. } => 4 << 30,
        }
    }
}

/// Whether a text is an id exactly as this program writes it, so that everything has only one name.
pub(crate) fn is_id(text: &str) -> bool {
    text.parse().is_ok_and(|id: SessionId| id.to_string() == text)
}

fn is_table_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

pub(crate) fn is_transcript(name: &str) -> bool {
    name.strip_suffix(".jsonl").is_some_and(is_id)
}

/// Whether a frame's file goes into an archive: transcripts, large tool results, and what an agent has besides its
/// conversation. Nothing else, and nothing that leads out of the directory.
fn is_file_name(name: &str) -> bool {
    let is_plain = |name: &&str| !["", ".", ".."].contains(name) && !name.contains(char::is_control);
    match *name.split('/').collect::<Vec<_>>() {
        [file] => is_transcript(file),
        [session, "tool-results", file] => is_id(session) && is_plain(&file),
        [kept, _, .., _] => kept.strip_suffix(BESIDE).is_some_and(is_id) && name.split('/').all(|part| is_plain(&part)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: &str = "8a6f7c1e-0000-4000-8000-000000000001";

    #[test]
    fn a_manifest_of_a_newer_program_is_refused_whatever_else_it_says() {
        let manifest = Manifest { program: "0.1.0".into(), format: FORMAT, schema: 4, root: FrameId::random() };
        let text = serde_json::to_string(&manifest).unwrap();
        assert_eq!(Manifest::parse(text.as_bytes(), 4), Ok(manifest));
        let newer = Err(BadArchive::Newer("9.0".into()));
        assert_eq!(Manifest::parse(br#"{"agent-cli":"9.0","format":2,"chains":[]}"#, 4), newer);
        assert_eq!(Manifest::parse(br#"{"agent-cli":"9.0","format":1,"schema":5}"#, 4), newer);
        let damaged = Manifest::parse(br#"{"agent-cli":"0.1.0","format":1,"schema":4,"root":"x"}"#, 4);
        assert!(matches!(damaged, Err(BadArchive::Damaged(_))), "{damaged:?}");
        for foreign in ["", "[]", "{}", "hello", r#"{"format":1}"#] {
            assert_eq!(Manifest::parse(foreign.as_bytes(), 4), Err(BadArchive::Foreign), "{foreign}");
        }
    }

    #[test]
    fn files_stay_where_they_belong() {
        let fine = [
            format!("{ID}.jsonl"),
            format!("{ID}/tool-results/b 1.txt"),
            format!("{ID}.beside/session/subagents/a.jsonl"),
            format!("{ID}.beside/tasks/.highwatermark"),
        ];
        let hostile = ["", "x", "../x.jsonl", "/etc/passwd", "out.ndjson", ".", "..", "x.jsonl"].map(str::to_owned);
        let beside = ["session", "session/../x", "session/./x", "session//x", "/x", "x/"];
        let beside = beside.map(|name| format!("{ID}.beside/{name}"));
        let results = ["..", "", "a/b", "a\0", "a\n"].map(|name| format!("{ID}/tool-results/{name}"));
        for (names, is_fine) in [(&fine[..], true), (&hostile, false), (&beside, false), (&results, false)] {
            for name in names {
                let path = format!("frames/{ID}/{name}");
                assert_eq!(ArchiveMember::parse(&path).is_some(), is_fine, "{path:?}");
            }
        }
        assert!(ArchiveMember::parse("rows/chains.ndjson").is_some());
        for path in [
            "rows/../.ndjson", "rows/.ndjson", "rows/a/b.ndjson", "frames/x/y", "frames", "rows/frames",
            "/rows/frames.ndjson", "./manifest.json", MANIFEST, SUMS,
        ] {
            assert_eq!(ArchiveMember::parse(path), None, "{path}");
        }
        let upper = ID.to_uppercase();
        assert_eq!(ArchiveMember::parse(&format!("frames/{upper}/{ID}.jsonl")), None);
        assert_eq!(ArchiveMember::parse(&format!("frames/{ID}/{upper}.jsonl")), None);
    }

    proptest! {
        #[test]
        fn a_member_has_one_path_that_leads_nowhere_else(rest in "[a-z0-9./-]{0,30}") {
            let paths = [format!("rows/{rest}.ndjson"), format!("frames/{ID}/{ID}.beside/{rest}"), rest];
            for path in paths {
                if let Some(member) = ArchiveMember::parse(&path) {
                    prop_assert!(!path.split('/').any(|part| part == ".."), "{}", path);
                    prop_assert_eq!(member.path(), path.clone());
                }
            }
        }
    }
}
