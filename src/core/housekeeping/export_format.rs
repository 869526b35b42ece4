//! The file that carries a tree to another machine: one JSON value a line.
//!
//! ```text
//! {"archive":{"format":1,"schema":4,"program":"0.1.0","root":"…"}}    first
//! {"row":{"table":"frames","values":{"id":"…", …}}}                   a row of the database
//! {"file":{"frame":"…","name":"….jsonl","bytes":42}}                  a file of a frame, whose content follows
//! {"text":"…"} or {"hex":"…"}                                          a piece of it
//! {"end":{"lines":17,"checksum":"…"}}                                 last
//! ```
//!
//! Whoever reads one trusts nothing in it: [`Reading`] takes line after line and refuses the first that cannot be.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::core::id::{FrameId, SessionId};

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// What this is, first.
    Archive(Header),
    /// A row.
    Row(Row),
    /// The beginning of a file.
    File(FileHeader),
    /// A piece of the file.
    Text(String),
    /// A piece of the file that is no UTF-8, in hexadecimal digits.
    Hex(String),
    /// Nothing comes after it.
    End(End),
}

/// What an archive holds, and what can read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The version of this format.
    pub format: u32,
    /// The version of the database that the rows are from.
    pub schema: u32,
    /// The version of the program that wrote it, for people.
    pub program: String,
    /// The root of the tree.
    pub root: FrameId,
}

/// A row of the database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its table.
    pub table: String,
    /// Its columns: text, numbers and null.
    pub values: Map<String, Value>,
}

/// A file of a frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHeader {
    /// Whose it is.
    pub frame: FrameId,
    /// Its path in the frame's directory.
    pub name: String,
    /// Its length.
    pub bytes: u64,
}

/// What must have come before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// The number of lines before this one.
    pub lines: u64,
    /// The [`Checksum`] of them.
    pub checksum: String,
}

/// The format that this program writes, and the newest that it reads.
pub const FORMAT: u32 = 1;
/// Longer lines are refused, before they fill the memory.
pub const LONGEST_LINE: u64 = 256 << 20;
/// Longer files are refused, before they fill the disk.
const LONGEST_FILE: u64 = 4 << 30;

/// Why an archive is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadArchive {
    /// It is something else.
    #[error("it is not a chain that agent-cli export wrote")]
    Foreign,
    /// A newer program wrote it.
    #[error("it was written by agent-cli {0}, which is newer than this one")]
    Newer(String),
    /// It ends too early.
    #[error("it is cut short")]
    Short,
    /// What it holds is not what was written.
    #[error("it is damaged: {0}")]
    Damaged(String),
}

/// Finds accidental damage. It proves nothing about who wrote the archive.
#[derive(Clone, Copy, Debug)]
pub struct Checksum(u64);

/// Takes an archive line by line.
#[derive(Debug, Default)]
pub struct Reading {
    lines: u64,
    checksum: Checksum,
    begun: bool,
    /// How much of the last file is still to come.
    left: u64,
    ended: bool,
}

impl Default for Checksum {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Checksum {
    /// FNV-1a with 64 bits.
    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    /// As it stands in an archive.
    #[must_use]
    pub fn text(self) -> String {
        format!("{:016x}", self.0)
    }
}

impl Reading {
    /// The next line, with its line break.
    ///
    /// # Errors
    ///
    /// [`BadArchive`] when it cannot stand here.
    pub fn next(&mut self, line: &[u8]) -> Result<Record, BadArchive> {
        let first = !std::mem::replace(&mut self.begun, true);
        let unreadable = |_| if first { BadArchive::Foreign } else { self.damaged("it is no record") };
        let record: Record = serde_json::from_slice(line).map_err(unreadable)?;
        if line.last() != Some(&b'\n') {
            return Err(BadArchive::Short);
        }
        match &record {
            Record::Archive(header) if first && header.format > FORMAT => {
                return Err(BadArchive::Newer(header.program.clone()));
            }
            Record::Archive(_) if first => {}
            _ if first => return Err(BadArchive::Foreign),
            Record::Archive(_) => return Err(self.damaged("it begins a second time")),
            _ if self.ended => return Err(self.damaged("something comes after the end")),
            Record::Text(_) | Record::Hex(_) => self.content(&record)?,
            _ if self.left > 0 => return Err(self.damaged("a file is cut short")),
            Record::Row(_) => {}
            Record::File(file) if !is_file_name(&file.name) => return Err(self.damaged("a file has no such name")),
            Record::File(file) if file.bytes > LONGEST_FILE => return Err(self.damaged("a file is too long")),
            Record::File(file) => self.left = file.bytes,
            Record::End(end) if end.lines != self.lines || end.checksum != self.checksum.text() => {
                return Err(self.damaged("the checksum is another one"));
            }
            Record::End(_) => self.ended = true,
        }
        self.lines += 1;
        self.checksum.add(line);
        Ok(record)
    }

    /// Nothing more comes.
    ///
    /// # Errors
    ///
    /// [`BadArchive::Short`] when the end is missing, [`BadArchive::Foreign`] when there was nothing at all.
    pub fn finish(&self) -> Result<(), BadArchive> {
        match (self.begun, self.ended) {
            (false, _) => Err(BadArchive::Foreign),
            (true, false) => Err(BadArchive::Short),
            (true, true) => Ok(()),
        }
    }

    fn content(&mut self, record: &Record) -> Result<(), BadArchive> {
        let length = piece(record).ok_or_else(|| self.damaged("a file holds no hexadecimal digits"))?.len() as u64;
        self.left = self.left.checked_sub(length).ok_or_else(|| self.damaged("a file is too long"))?;
        Ok(())
    }

    fn damaged(&self, why: &str) -> BadArchive {
        BadArchive::Damaged(format!("line {}: {why}", self.lines + 1))
    }
}

/// A piece of a file as a record.
#[must_use]
pub fn record_of(piece: &[u8]) -> Record {
    match str::from_utf8(piece) {
        Ok(text) => Record::Text(text.to_owned()),
        Err(_) => Record::Hex(piece.iter().map(|byte| format!("{byte:02x}")).collect()),
    }
}

/// The piece of a file that a record holds.
#[must_use]
pub fn piece(record: &Record) -> Option<Vec<u8>> {
    match record {
        Record::Text(text) => Some(text.clone().into_bytes()),
        Record::Hex(digits) if digits.len().is_multiple_of(2) && digits.is_ascii() => {
            let pairs = digits.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).ok());
            pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
        }
        _ => None,
    }
}

/// The session that a file is the transcript of.
#[must_use]
pub fn session_of(name: &str) -> Option<SessionId> {
    let session = name.strip_suffix(".jsonl")?;
    session.parse().ok().filter(|parsed: &SessionId| parsed.to_string() == session)
}

/// How the names of directories end that hold what an agent had besides its conversation.
pub const BESIDE: &str = ".beside";

/// Whether a file of a frame goes into an archive: transcripts, the large results of tools, and what an agent has besides its
/// conversation. Nothing else, and nothing that leads out of the directory.
#[must_use]
pub fn is_file_name(name: &str) -> bool {
    const DEEPEST: usize = 8;
    let is_id = |name: &str| session_of(&format!("{name}.jsonl")).is_some();
    let is_plain = |name: &str| {
        let fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !name.is_empty() && name.len() <= 100 && !name.starts_with('.') && name.chars().all(fine)
    };
    match *name.split('/').collect::<Vec<_>>() {
        [file] => session_of(file).is_some(),
        [session, "tool-results", file] => is_id(session) && is_plain(file),
        [kept, _, .., _] if name.split('/').count() <= DEEPEST => {
            kept.strip_suffix(BESIDE).is_some_and(is_id) && name.split('/').skip(1).all(is_plain)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(records: &[Record]) -> Vec<Vec<u8>> {
        let (mut lines, mut checksum) = (Vec::new(), Checksum::default());
        for record in records {
            let line = format!("{}\n", serde_json::to_string(record).unwrap()).into_bytes();
            checksum.add(&line);
            lines.push(line);
        }
        let end = Record::End(End { lines: lines.len() as u64, checksum: checksum.text() });
        lines.push(format!("{}\n", serde_json::to_string(&end).unwrap()).into_bytes());
        lines
    }

    fn read(lines: &[Vec<u8>]) -> Result<Vec<Record>, BadArchive> {
        let mut reading = Reading::default();
        let records = lines.iter().map(|line| reading.next(line)).collect::<Result<_, _>>()?;
        reading.finish().map(|()| records)
    }

    fn header() -> Record {
        let program = "0.1.0".to_owned();
        Record::Archive(Header { format: FORMAT, schema: 4, program, root: FrameId::random() })
    }

    fn file(name: &str, bytes: u64) -> Record {
        Record::File(FileHeader { frame: FrameId::random(), name: name.to_owned(), bytes })
    }

    const SESSION: &str = "8a6f7c1e-0000-4000-8000-000000000001";

    #[test]
    fn what_was_written_is_read() {
        let values = serde_json::json!({"id": "x", "depth": 1, "parent": null, "cost": 0.5});
        let row = Record::Row(Row { table: "frames".to_owned(), values: values.as_object().unwrap().clone() });
        let name = format!("{SESSION}.jsonl");
        let records = [header(), row, file(&name, 5), record_of("aé".as_bytes()), record_of(b"\xff\n")];
        let read = read(&written(&records)).unwrap();
        assert_eq!(read[..5], records);
        assert_eq!(piece(&read[4]).unwrap(), b"\xff\n");
    }

    #[test]
    fn what_was_changed_or_cut_is_refused() {
        let lines = written(&[header(), file(&format!("{SESSION}.jsonl"), 2), record_of(b"ab")]);
        assert!(read(&lines).is_ok());
        for cut in 1..lines.len() {
            assert_eq!(read(&lines[..cut]), Err(BadArchive::Short), "{cut}");
        }
        for at in 0..lines.len() {
            for byte in 0..lines[at].len() {
                let mut changed = lines.clone();
                changed[at][byte] ^= 1;
                assert!(read(&changed).is_err(), "byte {byte} of line {at}");
            }
        }
        assert!(read(&[&lines[..], &lines[..1]].concat()).is_err());
        assert_eq!(read(&[]), Err(BadArchive::Foreign));
        assert_eq!(read(&[b"hello\n".to_vec()]), Err(BadArchive::Foreign));
    }

    #[test]
    fn a_newer_format_is_refused() {
        let Record::Archive(header) = header() else { unreachable!() };
        let newer = Record::Archive(Header { format: FORMAT + 1, program: "9.0".to_owned(), ..header });
        assert_eq!(read(&written(&[newer])), Err(BadArchive::Newer("9.0".to_owned())));
    }

    #[test]
    fn files_stay_where_they_belong_and_have_the_length_that_they_say() {
        let fine = [
            format!("{SESSION}.jsonl"),
            format!("{SESSION}/tool-results/b1.txt"),
            format!("{SESSION}.beside/session/subagents/a.jsonl"),
        ];
        fine.iter().for_each(|name| assert!(read(&written(&[header(), file(name, 0)])).is_ok(), "{name}"));
        let hostile = ["", "x", "../x.jsonl", "/etc/passwd", "out.ndjson", ".", "..", "x.jsonl"].map(str::to_owned);
        let beside = ["session", "session/../x", "session/.x", "x/a b", "a/b/c/d/e/f/g/h"];
        let beside = beside.map(|name| format!("{SESSION}.beside/{name}"));
        let more = ["..", ".x", "", "a/b", "a\0"].map(|name| format!("{SESSION}/tool-results/{name}"));
        for name in hostile.iter().chain(&more).chain(&beside) {
            assert!(read(&written(&[header(), file(name, 0)])).is_err(), "{name:?}");
        }
        let name = &fine[0];
        assert!(read(&written(&[header(), file(name, 1)])).is_err());
        assert!(read(&written(&[header(), file(name, 1), record_of(b"ab")])).is_err());
        assert!(read(&written(&[header(), record_of(b"ab")])).is_err());
        assert!(read(&written(&[header(), file(name, u64::MAX)])).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..9)) {
            prop_assert!(read(&lines).is_err());
        }

        #[test]
        fn any_records_are_read_without_harm(names in prop::collection::vec("[a-z0-9./{}\":-]{0,60}", 0..5), bytes: u64) {
            let records: Vec<_> = names.iter().map(|name| file(name, bytes)).chain([Record::Hex("zz".into())]).collect();
            prop_assert!(read(&written(&[&[header()], &records[..]].concat())).is_err());
        }
    }
}
