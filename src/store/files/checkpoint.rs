//! Copies of the sessions that frames continue from. Claude Code deletes its transcripts after some weeks, and an agent may
//! wait longer.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::de::IgnoredAny;

use crate::core::agent::session_file_names::BESIDE;
use crate::core::housekeeping::consistency::UsableLines;
use crate::core::id::{AttemptId, FrameId};
use crate::core::text::json;
use crate::failpoint::{self, Step};
use crate::store::files::durable::{Durability, TEMPORARY, replace};
use crate::store::files::entries::remove;
use crate::store::files::state_dir::{SEEN, StateDir};

/// Copies a transcript up to its last whole line. When this returns, the copy survives a power failure.
pub(crate) fn keep(dir: &StateDir, frame: FrameId, attempt: AttemptId, transcript: &Path) -> io::Result<()> {
    let mut source = File::open(transcript)?;
    let whole = whole_lines(&mut source)?;
    if whole == 0 {
        let message = format!("{} has no whole line", transcript.display());
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    copy(Step::KeepCopy, &mut source, whole, &dir.checkpoint(frame, attempt))
}

/// Stores this conversation as the copy of an attempt. When this returns, the copy survives a power failure.
pub(crate) fn keep_conversation(dir: &StateDir, frame: FrameId, attempt: AttemptId, text: &[u8]) -> io::Result<()> {
    let copy = dir.checkpoint(frame, attempt);
    replace(Step::KeepCopy, &copy, Durability::PowerFailure, |file| file.write_all(text))
}

/// Deletes the copies of a frame's attempts and the files kept with them, except those in `keep`, and files that a killed
/// process left incomplete.
pub(crate) fn prune(dir: &StateDir, frame: FrameId, keep: &[AttemptId]) -> io::Result<()> {
    let entries = match fs::read_dir(dir.frame_path(frame)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if attempt_of(name).is_some_and(|attempt| !keep.contains(&attempt)) || name.ends_with(TEMPORARY) {
            failpoint::around(Step::RemoveCopy, || remove(&path))?;
        }
    }
    Ok(())
}

/// The attempt that a file or directory of a frame belongs to.
pub(crate) fn attempt_of(name: &str) -> Option<AttemptId> {
    [".jsonl", SEEN, BESIDE].iter().find_map(|end| name.strip_suffix(end))?.parse().ok()
}

/// A transcript in Claude Code's folder, compared with its kept copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    /// There is no usable copy.
    NoCopy,
    /// It is the same as the copy.
    Same,
    /// It is missing, or incomplete.
    Less,
    /// It has other content: the session was continued outside agent-cli.
    Other,
}

/// Compares the file at `transcript` with the kept copy of the attempt.
pub(crate) fn compare(dir: &StateDir, frame: FrameId, attempt: AttemptId, transcript: &Path) -> io::Result<Compared> {
    let gone_is_none = |opened: io::Result<File>| match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    };
    let Some(copy) = gone_is_none(File::open(dir.checkpoint(frame, attempt)))? else { return Ok(Compared::NoCopy) };
    let Some(mut found) = gone_is_none(File::open(transcript))? else { return Ok(Compared::Less) };
    let (kept, length) = (copy.metadata()?.len(), found.metadata()?.len());
    let whole = whole_lines(&mut found)?;
    // It was emptied or truncated.
    if whole > 0 && lines(&dir.checkpoint(frame, attempt))? != UsableLines::Whole {
        return Ok(Compared::NoCopy);
    }
    found.rewind()?;
    let begins_alike = is_same(copy, found, kept.min(length))?;
    Ok(match begins_alike {
        true if length == kept => Compared::Same,
        // A torn last line was never whole, neither here nor in the copy.
        true if whole <= kept => Compared::Less,
        _ => Compared::Other,
    })
}

/// Whether two files begin with the same `length` bytes.
pub(crate) fn is_same(one: File, other: File, length: u64) -> io::Result<bool> {
    let (mut one, mut other) = (BufReader::new(one.take(length)), BufReader::new(other.take(length)));
    loop {
        let (left, right) = (one.fill_buf()?, other.fill_buf()?);
        let common = left.len().min(right.len());
        if common == 0 {
            return Ok(left.is_empty() && right.is_empty());
        }
        if left[..common] != right[..common] {
            return Ok(false);
        }
        one.consume(common);
        other.consume(common);
    }
}

/// Restores a session in Claude Code's folder from its copy, unless the two are the same. Returns whether it did so.
/// Without a usable copy it does nothing.
pub(crate) fn restore(dir: &StateDir, frame: FrameId, attempt: AttemptId, to: &Path) -> io::Result<bool> {
    if matches!(compare(dir, frame, attempt, to)?, Compared::NoCopy | Compared::Same) {
        return Ok(false);
    }
    put(&dir.checkpoint(frame, attempt), to)?;
    Ok(true)
}

/// Writes a conversation to Claude Code's folder as a session.
pub(crate) fn put(conversation: &Path, to: &Path) -> io::Result<()> {
    let mut conversation = File::open(conversation)?;
    let length = conversation.metadata()?.len();
    copy(Step::PutBack, &mut conversation, length, to)
}

/// Like [`put`], for a conversation in memory.
pub(crate) fn put_text(conversation: &[u8], to: &Path) -> io::Result<()> {
    replace(Step::PutBack, to, Durability::PowerFailure, |file| file.write_all(conversation))
}

/// Whether the session at `path` is whole: it consists of complete lines, and the last of them is JSON.
pub(crate) fn lines(path: &Path) -> io::Result<UsableLines> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(UsableLines::None),
        file => file?,
    };
    let (whole, length) = (whole_lines(&mut file)?, file.metadata()?.len());
    if whole == 0 {
        return Ok(UsableLines::None);
    }
    let start = whole_lines_before(&mut file, whole - 1)?;
    let mut last = Vec::new();
    file.seek(SeekFrom::Start(start))?;
    file.take(whole - start).read_to_end(&mut last)?;
    let is_json = json::read::<IgnoredAny>(&last).is_ok();
    Ok(if whole == length && is_json { UsableLines::Whole } else { UsableLines::Torn })
}

/// Copies the first `length` bytes of `source` to `to`. When this returns, they survive a power failure.
pub(crate) fn copy(step: Step, source: &mut File, length: u64, to: &Path) -> io::Result<()> {
    replace(step, to, Durability::PowerFailure, |file| {
        source.rewind()?;
        io::copy(&mut source.take(length), file).map(drop)
    })
}

/// The length of a file up to and including its last newline. Searches from the end, because transcripts are large and
/// lines are short.
fn whole_lines(file: &mut File) -> io::Result<u64> {
    let length = file.metadata()?.len();
    whole_lines_before(file, length)
}

/// Like [`whole_lines`], for the first `end` bytes.
fn whole_lines_before(file: &mut File, mut end: u64) -> io::Result<u64> {
    const BLOCK: u64 = 64 * 1024;
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        let mut block = Vec::new();
        file.seek(SeekFrom::Start(start))?;
        file.take(end - start).read_to_end(&mut block)?;
        if let Some(newline) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + newline as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tempfile::TempDir;

    use super::*;

    struct Fixture {
        temp: TempDir,
        dir: StateDir,
        frame: FrameId,
        attempt: AttemptId,
    }

    impl Fixture {
        fn new() -> Self {
            let temp = tempfile::tempdir().unwrap();
            let dir = StateDir::new(&temp.path().join("state")).unwrap();
            Self { temp, dir, frame: FrameId::random(), attempt: AttemptId::random() }
        }

        fn transcript(&self, content: &str) -> PathBuf {
            let path = self.temp.path().join("transcript.jsonl");
            fs::write(&path, content).unwrap();
            path
        }

        fn keep(&self, content: &str) -> io::Result<String> {
            keep(&self.dir, self.frame, self.attempt, &self.transcript(content))?;
            fs::read_to_string(self.dir.checkpoint(self.frame, self.attempt))
        }

        fn restore(&self, to: &Path) -> bool {
            restore(&self.dir, self.frame, self.attempt, to).unwrap()
        }
    }

    #[test]
    fn a_copy_ends_with_its_last_whole_line() {
        let fixture = Fixture::new();
        assert_eq!(fixture.keep("{}\n{}\n").unwrap(), "{}\n{}\n");
        assert_eq!(fixture.keep("{}\n{\"torn").unwrap(), "{}\n");
        let torn = format!("{{}}\n{}", "x".repeat(200_000));
        assert_eq!(fixture.keep(&torn).unwrap(), "{}\n");
        let long = format!("{}\n", "x".repeat(200_000));
        assert!(fixture.keep(&format!("{long}torn")).unwrap() == long);
    }

    #[test]
    fn what_has_no_whole_line_does_not_replace_a_copy() {
        let fixture = Fixture::new();
        fixture.keep("{}\n").unwrap();
        for content in ["", "torn"] {
            assert_eq!(fixture.keep(content).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
        let copy = fixture.dir.checkpoint(fixture.frame, fixture.attempt);
        assert_eq!(fs::read_to_string(copy).unwrap(), "{}\n");
        assert_eq!(fs::read_dir(fixture.dir.frame_path(fixture.frame)).unwrap().count(), 1);
    }

    #[test]
    fn a_transcript_that_is_not_whole_is_put_back() {
        let fixture = Fixture::new();
        fixture.keep("{}\n{}\n").unwrap();
        let to = fixture.temp.path().join("projects/-work/transcript.jsonl");
        assert!(fixture.restore(&to));
        assert!(!fixture.restore(&to));
        for content in ["", "{}\n", "{}\n{}\n{\"torn"] {
            fs::write(&to, content).unwrap();
            assert!(fixture.restore(&to), "{content}");
            assert_eq!(fs::read_to_string(&to).unwrap(), "{}\n{}\n");
        }
        assert!(!fixture.restore(&to));
        assert_eq!(fs::read_dir(to.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_transcript_that_went_on_is_another_one() {
        let fixture = Fixture::new();
        let to = fixture.temp.path().join("other.jsonl");
        let compared = |content: &str| {
            fs::write(&to, content).unwrap();
            compare(&fixture.dir, fixture.frame, fixture.attempt, &to).unwrap()
        };
        assert_eq!(compared("{}\n"), Compared::NoCopy);
        let long = format!("{{\"a\":\"{}\"}}\n", "x".repeat(100_000));
        fixture.keep(&format!("{long}{{}}\n")).unwrap();
        assert_eq!(compared(&format!("{long}{{}}\n")), Compared::Same);
        for less in ["", &long, &long[..70_000], &format!("{long}{{}}\n{{\"torn")] {
            assert_eq!(compared(less), Compared::Less);
        }
        for other in [&format!("{long}{{}}\n{{}}\n"), &format!("{long}[]\n"), "[]\n", "[]"] {
            assert_eq!(compared(other), Compared::Other);
        }
        for damaged in ["", &long[..70_000]] {
            fs::write(fixture.dir.checkpoint(fixture.frame, fixture.attempt), damaged).unwrap();
            assert_eq!(compared(&format!("{long}{{}}\n")), Compared::NoCopy);
            assert_eq!(compared(""), if damaged.is_empty() { Compared::Same } else { Compared::Less });
        }
        fs::remove_file(&to).unwrap();
        assert_eq!(compare(&fixture.dir, fixture.frame, fixture.attempt, &to).unwrap(), Compared::Less);
    }

    #[test]
    fn without_a_copy_nothing_is_put_back() {
        let fixture = Fixture::new();
        let to = fixture.temp.path().join("transcript.jsonl");
        assert!(!fixture.restore(&to));
        assert!(!to.exists());
    }

    #[test]
    fn old_copies_are_removed_only_on_request() {
        let mut fixture = Fixture::new();
        prune(&fixture.dir, fixture.frame, &[fixture.attempt]).unwrap();
        fixture.keep("{}\n").unwrap();
        let old = fixture.attempt;
        fixture.attempt = AttemptId::random();
        fixture.keep("{}\n").unwrap();
        let directory = fixture.dir.frame_path(fixture.frame);
        fs::write(directory.join("out.ndjson"), "").unwrap();
        fs::write(directory.join("prompt-x.tmp"), "").unwrap();
        assert!(fixture.dir.checkpoint(fixture.frame, old).exists());
        prune(&fixture.dir, fixture.frame, &[fixture.attempt]).unwrap();
        assert!(!fixture.dir.checkpoint(fixture.frame, old).exists());
        assert!(fixture.dir.checkpoint(fixture.frame, fixture.attempt).exists());
        assert_eq!(fs::read_dir(directory).unwrap().count(), 2);
    }
}
