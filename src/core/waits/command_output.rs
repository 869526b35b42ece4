//! The part of a command's output that is kept.

use std::collections::VecDeque;

/// How much of the beginning is kept, in bytes.
const BEGINNING: usize = 8_000;
/// How much of the end is kept, in bytes. Together they fit into what one call can return.
const END: usize = 16_000;

/// The beginning and the end of the output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptOutput {
    beginning: Vec<u8>,
    end: VecDeque<u8>,
    left_out: u64,
}

impl KeptOutput {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(BEGINNING - self.beginning.len()));
        self.beginning.extend(first);
        self.end.extend(rest);
        let too_much = self.end.len().saturating_sub(END);
        self.end.drain(..too_much);
        self.left_out += too_much as u64;
    }

    /// The text without line breaks at its end, if there is any. Bytes that are not UTF-8 are replaced.
    pub(crate) fn text(&self) -> Option<String> {
        let end: Vec<u8> = self.end.iter().copied().collect();
        let text = match self.left_out {
            0 => String::from_utf8_lossy(&[self.beginning.as_slice(), &end].concat()).into_owned(),
            bytes => {
                let [beginning, end] = [self.beginning.as_slice(), &end].map(String::from_utf8_lossy);
                format!("{beginning}\n[{bytes} bytes left out]\n{end}")
            }
        };
        let text = text.trim_end();
        (!text.trim().is_empty()).then(|| text.to_owned())
    }

    /// The beginning of its last line.
    pub(crate) fn last_line(&self) -> Option<String> {
        const LONG: usize = 200;
        let text = self.text()?;
        text.lines().last().map(|line| line.trim().chars().take(LONG).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_output_is_kept_whole_and_long_output_at_both_ends() {
        let mut kept = KeptOutput::default();
        assert_eq!((kept.text(), kept.last_line()), (None, None));
        kept.add(b"one\n");
        kept.add(b"two \xff\n\n");
        assert_eq!(kept.text().as_deref(), Some("one\ntwo \u{fffd}"));
        for _ in 0..100 {
            kept.add(&[b'x'; 1_000]);
        }
        kept.add(b"\nend\n");
        let text = kept.text().unwrap();
        assert!(text.starts_with("one\ntwo") && text.contains(" bytes left out]\nxx") && text.ends_with("x\nend"));
        assert_eq!(kept.last_line().as_deref(), Some("end"));
        assert!(text.len() < BEGINNING + END + 100);
    }
}
