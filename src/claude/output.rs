//! Reads what an attempt printed.

use std::io::{self, BufRead, Read};

use crate::core::event::Event;
use crate::core::stream::Digest;

/// Reads events to the end of `stream`.
///
/// Lines are parsed as they are read and never held as a whole, so a line of any length costs only the memory of the
/// fields that matter. A broken line (garbage, a line torn by a kill) is counted and passed over.
///
/// # Errors
///
/// Those of `stream`.
pub fn read(mut stream: impl BufRead) -> io::Result<Digest> {
    let mut digest = Digest::default();
    while !stream.fill_buf()?.is_empty() {
        let mut line = Line { stream: &mut stream, ended: false, blank: true };
        match serde_json::from_reader::<_, Event>(&mut line) {
            Ok(event) => digest.absorb(event),
            Err(error) if error.is_io() => return Err(error.into()),
            Err(_) => {
                line.skip()?;
                digest.broken_lines += u64::from(!line.blank);
            }
        }
    }
    Ok(digest)
}

/// One line of a stream, as a stream of its own.
struct Line<'a, R> {
    stream: &'a mut R,
    ended: bool,
    blank: bool,
}

impl<R: BufRead> Line<'_, R> {
    fn skip(&mut self) -> io::Result<()> {
        let mut rest = [0; 4096];
        while self.read(&mut rest)? > 0 {}
        Ok(())
    }
}

impl<R: BufRead> Read for Line<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ended || buffer.is_empty() {
            return Ok(0);
        }
        let available = self.stream.fill_buf()?;
        let wanted = &available[..available.len().min(buffer.len())];
        let (text, consumed) = match wanted.iter().position(|byte| *byte == b'\n') {
            Some(end) => (&wanted[..end], end + 1),
            None => (wanted, wanted.len()),
        };
        self.ended = consumed > text.len() || consumed == 0;
        self.blank &= text.iter().all(u8::is_ascii_whitespace);
        buffer[..text.len()].copy_from_slice(text);
        let length = text.len();
        self.stream.consume(consumed);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;

    use super::*;

    const RESULT: &str = r#"{"type":"result","is_error":false,"result":"Jan 1st"}"#;

    fn reply(text: &[u8], buffer: usize) -> (Option<String>, u64) {
        let digest = read(BufReader::with_capacity(buffer, text)).unwrap();
        (digest.result.map(|result| result.text), digest.broken_lines)
    }

    #[test]
    fn broken_lines_are_passed_over() {
        let text = format!("garbage\n\n{{\"type\":\"sys\n{RESULT}\n\u{1}\u{2}\n{{\"torn\":");
        for buffer in [1, 7, 8192] {
            assert_eq!(reply(text.as_bytes(), buffer), (Some("Jan 1st".into()), 4));
        }
        assert_eq!(reply(b"", 8192), (None, 0));
    }

    #[test]
    fn a_last_line_without_its_end_is_read() {
        assert_eq!(reply(RESULT.as_bytes(), 8192), (Some("Jan 1st".into()), 0));
    }

    #[test]
    fn two_events_on_one_line_are_broken_and_do_not_reach_the_next() {
        let text = format!("{RESULT}{RESULT}\n{}\n", RESULT.replace("Jan 1st", "Feb 2nd"));
        assert_eq!(reply(text.as_bytes(), 8192), (Some("Feb 2nd".into()), 1));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(before: Vec<u8>, buffer in 1usize..64) {
            let mut text = before;
            text.extend([b"\n", RESULT.as_bytes()].concat());
            prop_assert_eq!(reply(&text, buffer).0, Some("Jan 1st".into()));
        }
    }
}
