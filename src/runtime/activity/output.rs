//! The output of the `claude` processes of a frame, as events.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

use jiff::Timestamp;

use crate::claude::stream::line_cutter::LineCutter;
use crate::claude::stream::translate::translate;
use crate::core::events::agent_event::{AgentEvent, AgentEventKind, VERSION};
use crate::core::id::{AttemptId, FrameId};
use crate::store::Attempt;

/// Where the output of an attempt begins, and when the attempt ran.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub attempt: AttemptId,
    /// The offset of its first line.
    pub from: u64,
    pub began: Timestamp,
    pub ended: Option<Timestamp>,
}

impl Span {
    pub(super) fn new(attempt: &Attempt) -> Self {
        Self { attempt: attempt.id, from: attempt.output_from, began: attempt.began, ended: attempt.ended }
    }
}

/// Reads a frame's output from where the last read ended.
#[derive(Debug)]
pub(super) struct Output {
    frame: FrameId,
    path: PathBuf,
    /// Opened once there is something to read. It remains the same file as long as the frame exists.
    file: Option<File>,
    /// The number of bytes that were read, and that can be read.
    read: u64,
    until: u64,
    /// The offset of the next line.
    line: u64,
    cutter: LineCutter,
    /// By offset.
    spans: Vec<Span>,
    /// The attempt of the last line.
    current: Option<AttemptId>,
    /// When its last event happened.
    last: Timestamp,
    /// Whether it has started. Claude Code reports this again after each piece of background work.
    started: bool,
    /// Where its agent works, as far as known.
    directory: Option<PathBuf>,
}

/// How much is read at once.
const PIECE: usize = 64 * 1024;

impl Output {
    /// Reads the file at `path`. `most`: how many bytes of a text are kept; `None`: all.
    pub(super) fn new(frame: FrameId, path: PathBuf, most: Option<usize>) -> Self {
        let (cutter, spans) = (LineCutter::new(most), Vec::new());
        let last = Timestamp::UNIX_EPOCH;
        Self {
            frame,
            path,
            file: None,
            read: 0,
            until: 0,
            line: 0,
            cutter,
            spans,
            current: None,
            last,
            started: false,
            directory: None,
        }
    }

    /// Where its agent works, if the beginning of the output is not read.
    pub(super) fn set_directory(&mut self, directory: PathBuf) {
        self.directory = Some(directory);
    }

    /// Begins at byte `from`, and skips an incomplete line there.
    pub(super) fn beginning_at(mut self, from: u64) -> Self {
        (self.read, self.line) = (from, from);
        self
    }

    /// Checks how much there is to read. The attempts must be looked up after this: a later one may print at any time.
    ///
    /// # Errors
    ///
    /// Fails if the file exists but cannot be read.
    pub(super) fn look(&mut self) -> io::Result<()> {
        if self.file.is_none() {
            match File::open(&self.path) {
                Ok(file) => self.file = Some(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.until = self.file.as_ref().map(File::metadata).transpose()?.map_or(0, |file| file.len());
        if self.until < self.read {
            // It was emptied, so all of its content is new.
            (self.read, self.line) = (0, 0);
        }
        Ok(())
    }

    /// Continues with the lines in the last `most` bytes. Returns whether any were skipped.
    pub(super) fn skip_to_end(&mut self, most: u64) -> io::Result<bool> {
        let Some(file) = self.file.as_mut().filter(|_| self.until.saturating_sub(self.read) > most) else {
            return Ok(false);
        };
        // Skips the line that this byte ends or is part of.
        let mut at = self.until - most - 1;
        let mut piece = vec![0; PIECE];
        while at < self.until {
            file.seek(SeekFrom::Start(at))?;
            let length = file.read(&mut piece)?;
            let end = piece[..length].iter().position(|byte| *byte == b'\n');
            at += end.map_or(length, |end| end + 1) as u64;
            if end.is_some() || length == 0 {
                break;
            }
        }
        (self.read, self.line) = (at, at);
        if let Some(span) = self.spans.iter().rev().find(|span| span.from <= at) {
            (self.current, self.last, self.started) = (Some(span.attempt), span.began, span.from < at);
        }
        Ok(true)
    }

    /// The attempts of the frame, in order.
    pub(super) fn set_spans(&mut self, spans: Vec<Span>) {
        self.spans = spans;
    }

    /// Reads the next piece of what could be read at the last look, and appends its events to `events`. Returns whether there
    /// was anything to read.
    ///
    /// Most lines do not contain a time. Output that is read as soon as it is printed happened `now`; about output that is read
    /// later (`None`) it is only known that it did not happen before the previous line.
    pub(super) fn read(&mut self, now: Option<Timestamp>, events: &mut VecDeque<AgentEvent>) -> io::Result<bool> {
        let mut piece = vec![0; PIECE];
        let length = self.read_piece(&mut piece)?;
        let Self { frame, line, cutter, spans, current, last, started, directory, .. } = self;
        cutter.push(&piece[..length], |complete| {
            let span = spans.iter().rev().find(|span| span.from <= *line).or(spans.first());
            *line += complete.length;
            let attempt = span.map(|span| span.attempt);
            if attempt != *current {
                (*current, *started) = (attempt, false);
                *last = span.map_or(*last, |span| span.began);
            }
            let translated = translate(complete.text, directory.as_deref());
            if translated.directory.is_some() {
                directory.clone_from(&translated.directory);
            }
            // If the clock was set back, an event is still not dated before its attempt.
            let live = now.map(|now| span.and_then(|span| span.ended).map_or(now, |ended| now.min(ended)));
            *last = translated.at.or(live).unwrap_or(*last).max(span.map_or(*last, |span| span.began));
            for what in translated.happenings {
                let is_start = matches!(what, AgentEventKind::Started { .. });
                if is_start && *started {
                    continue;
                }
                *started |= is_start;
                events.push_back(AgentEvent {
                    version: VERSION,
                    at: *last,
                    frame: *frame,
                    attempt,
                    parent_tool_use_id: translated.parent_tool_use_id.clone(),
                    context_tokens: translated.context_tokens,
                    cut: complete.cut,
                    what,
                });
            }
        });
        Ok(length > 0)
    }

    fn read_piece(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        let Some(file) = &mut self.file else { return Ok(0) };
        let left = usize::try_from(self.until.saturating_sub(self.read)).unwrap_or(usize::MAX);
        if left == 0 {
            return Ok(0);
        }
        file.seek(SeekFrom::Start(self.read))?;
        let most = left.min(piece.len());
        let length = file.read(&mut piece[..most])?;
        self.read += length as u64;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const INIT: &str = r#"{"type":"system","subtype":"init"}"#;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn text(text: &str, timestamp: &str) -> String {
        format!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"text","text":"{text}"}}]}},"timestamp":"{timestamp}"}}"#
        )
    }

    fn span(from: usize, began: i64, ended: Option<i64>) -> Span {
        Span { attempt: AttemptId::random(), from: from as u64, began: at(began), ended: ended.map(at) }
    }

    fn read_all(output: &mut Output, now: Option<Timestamp>) -> Vec<AgentEvent> {
        let mut events = VecDeque::new();
        output.look().unwrap();
        while output.read(now, &mut events).unwrap() {}
        events.into()
    }

    #[test]
    fn each_line_belongs_to_its_attempt_and_happened_when_it_says_or_after_the_one_before() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let first = format!("{INIT}\n{}\n{INIT}\n", text("a", "1970-01-01T00:00:15Z"));
        let second = format!("{INIT}\n{}\n", text("b", "1970-01-01T00:00:05Z"));
        file.as_file().write_all(format!("{first}{second}").as_bytes()).unwrap();
        let spans = vec![span(0, 10, Some(20)), span(first.len(), 30, None)];
        let mut output = Output::new(FrameId::random(), file.path().to_owned(), None);
        output.set_spans(spans.clone());
        let events = read_all(&mut output, None);
        let times: Vec<_> = events.iter().map(|event| (event.attempt.unwrap(), event.at.as_second())).collect();
        let [one, other] = [spans[0].attempt, spans[1].attempt];
        assert_eq!(times, [(one, 10), (one, 15), (other, 30), (other, 30)]);
    }

    #[test]
    fn what_is_read_when_it_is_printed_happened_then() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut output = Output::new(FrameId::random(), file.path().to_owned(), None);
        output.set_spans(vec![span(0, 10, None)]);
        file.as_file().write_all(&INIT.as_bytes()[..9]).unwrap();
        assert_eq!(read_all(&mut output, Some(at(40))), []);
        file.as_file().write_all(&INIT.as_bytes()[9..]).unwrap();
        file.as_file().write_all(b"\n").unwrap();
        assert_eq!(read_all(&mut output, Some(at(50)))[0].at, at(50));
        output.set_spans(vec![span(0, 10, Some(55))]);
        file.as_file().write_all(b"{\"type\":\"new\"}\n").unwrap();
        assert_eq!(read_all(&mut output, Some(at(60)))[0].at, at(55));
    }

    #[test]
    fn what_is_printed_after_the_last_look_waits_for_the_next() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut output = Output::new(FrameId::random(), file.path().to_owned(), None);
        output.look().unwrap();
        file.as_file().write_all(format!("{INIT}\n").as_bytes()).unwrap();
        assert!(!output.read(None, &mut VecDeque::new()).unwrap());
        assert_eq!(read_all(&mut output, None).len(), 1);
    }

    #[test]
    fn a_file_that_is_missing_or_was_emptied_does_no_harm() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.ndjson");
        let mut output = Output::new(FrameId::random(), path.clone(), Some(10));
        assert_eq!(read_all(&mut output, None), []);
        std::fs::write(&path, format!("{INIT}\n{INIT}\n")).unwrap();
        assert_eq!(read_all(&mut output, None).len(), 1);
        std::fs::write(&path, "{\"type\":\"new\"}\n").unwrap();
        assert_eq!(read_all(&mut output, None).len(), 1);
    }

    #[test]
    fn the_end_of_a_long_output_is_read_without_the_rest() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let lines: Vec<_> = (0..1000).map(|n| text(&n.to_string(), "1970-01-01T00:00:15Z") + "\n").collect();
        file.as_file().write_all(lines.concat().as_bytes()).unwrap();
        let length = lines[999].len() as u64;
        for (most, expected) in [(length, 1), (length + 1, 1), (2 * length, 2), (length - 1, 0), (0, 0)] {
            let mut output = Output::new(FrameId::random(), file.path().to_owned(), None);
            output.set_spans(vec![span(0, 10, None)]);
            output.look().unwrap();
            assert!(output.skip_to_end(most).unwrap());
            let left = output.until - output.read;
            assert!(left <= most, "{left}");
            assert_eq!(read_all(&mut output, None).len(), expected, "{most}");
        }
        let mut output = Output::new(FrameId::random(), file.path().to_owned(), None);
        output.look().unwrap();
        assert!(!output.skip_to_end(u64::MAX).unwrap());
        assert_eq!(read_all(&mut output, None).len(), 1000);
    }

    #[test]
    fn half_a_line_at_the_beginning_is_passed_over_by_its_name() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().write_all(format!("{INIT}\n{}\n", text("a", "")).as_bytes()).unwrap();
        let mut output = Output::new(FrameId::random(), file.path().to_owned(), None).beginning_at(5);
        let events = read_all(&mut output, None);
        assert!(matches!(&events[0].what, AgentEventKind::Other { .. }) && events.len() == 2);
    }
}
