//! Files to which Claude Code writes a line of JSON for each event: its output, and transcripts.
//!
//! A line that is not JSON of the expected shape is skipped: garbage, or a line torn by a kill.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::core::text::json;

/// The lines of a source that have this shape.
pub(crate) fn json_lines<T: DeserializeOwned>(source: impl BufRead) -> impl Iterator<Item = io::Result<T>> {
    source.split(b'\n').filter_map(|line| line.map(|line| json::read(&line).ok()).transpose())
}

/// The lines of a file that have this shape.
pub(crate) fn json_lines_of<T: DeserializeOwned>(file: &Path) -> io::Result<impl Iterator<Item = io::Result<T>>> {
    Ok(json_lines(BufReader::new(File::open(file)?)))
}

/// The blocks of the message in a line.
pub(crate) fn blocks(line: &Value) -> impl DoubleEndedIterator<Item = &Value> {
    line["message"]["content"].as_array().into_iter().flatten()
}

/// A file whose lines are read while it grows.
#[derive(Debug, Default)]
pub(crate) struct GrowingFile {
    path: PathBuf,
    /// Offset of the first unread line.
    at: u64,
}

impl GrowingFile {
    pub(crate) fn new(path: PathBuf, at: u64) -> Self {
        Self { path, at }
    }

    /// Passes on the lines that were added since the last read. An incomplete line is read later.
    pub(crate) fn read(&mut self, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.at))?;
        let (mut reader, mut line) = (BufReader::new(file), Vec::new());
        while reader.read_until(b'\n', &mut line)? > 0 && line.last() == Some(&b'\n') {
            self.at += line.len() as u64;
            take(&line);
            line.clear();
        }
        Ok(())
    }
}
