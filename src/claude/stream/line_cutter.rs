//! Splits the output of `claude` into lines, in bounded memory: long texts in a line are truncated while it is read.
//!
//! It knows just enough of JSON to find the texts. A line that is not JSON comes out as something that is not JSON.

/// Accepts bytes in pieces of any size. An incomplete line is kept until the rest arrives.
#[derive(Debug)]
pub(crate) struct LineCutter {
    /// The most bytes of a text that are kept; `None`: all.
    most: Option<usize>,
    line: Vec<u8>,
    /// How many bytes of the line were read, excluding its end.
    read: u64,
    cut: bool,
    /// Whether the line with its texts truncated is longer than [`LONGEST`], and not kept.
    too_long: bool,
    place: ScanPosition,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CutLine<'a> {
    pub text: &'a [u8],
    /// Whether texts in it were truncated.
    pub cut: bool,
    /// Its length in the file in bytes, including its end.
    pub length: u64,
}

/// A line that is longer than this even without its long texts has more fields than can be used.
const LONGEST: usize = 8 * 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq)]
enum ScanPosition {
    Outside,
    /// In a text of which so many bytes were kept. The rest of the same character may still follow.
    Text {
        kept: usize,
        escape: Escape,
    },
    /// In the rest of a text, which is dropped.
    Cut {
        escaped: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Escape {
    None,
    /// After a backslash.
    Begun,
    /// In the digits of `\uXXXX`: those read so far, and their value.
    Digits(u8, u32),
    /// After the first half of a pair of surrogates: without the other half the text would not be valid.
    HalfPair,
}

impl LineCutter {
    pub(crate) fn new(most: Option<usize>) -> Self {
        Self { most, line: Vec::new(), read: 0, cut: false, too_long: false, place: ScanPosition::Outside }
    }

    /// Accepts the next bytes, and passes on each line that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8], mut complete: impl FnMut(&CutLine<'_>)) {
        for byte in bytes {
            if *byte == b'\n' {
                self.end(&mut complete);
            } else {
                self.read += 1;
                self.take(*byte);
            }
        }
    }

    fn end(&mut self, complete: &mut impl FnMut(&CutLine<'_>)) {
        complete(&CutLine { text: &self.line, cut: self.cut, length: self.read + 1 });
        *self = Self { line: std::mem::take(&mut self.line), ..Self::new(self.most) };
        self.line.clear();
    }

    fn take(&mut self, byte: u8) {
        self.place = match self.place {
            ScanPosition::Outside if byte == b'"' => ScanPosition::Text { kept: 0, escape: Escape::None },
            ScanPosition::Outside => ScanPosition::Outside,
            ScanPosition::Text { escape: Escape::None, .. } | ScanPosition::Cut { escaped: false } if byte == b'"' => {
                ScanPosition::Outside
            }
            ScanPosition::Text { kept, escape } => {
                // A continuation byte belongs to the character before it.
                let begins = matches!(escape, Escape::None) && byte & 0xc0 != 0x80;
                if begins && self.most.is_some_and(|most| kept >= most) {
                    self.cut = true;
                    self.keep("…".as_bytes());
                    self.place = ScanPosition::Cut { escaped: byte == b'\\' };
                    return;
                }
                ScanPosition::Text { kept: kept + 1, escape: escape.after(byte) }
            }
            ScanPosition::Cut { escaped } => {
                self.place = ScanPosition::Cut { escaped: !escaped && byte == b'\\' };
                return;
            }
        };
        self.keep(&[byte]);
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.line.len() + bytes.len() > LONGEST && self.most.is_some() {
            // A half would not be JSON either.
            self.too_long = true;
            self.line = Vec::new();
        }
        if !self.too_long {
            self.line.extend_from_slice(bytes);
        }
    }
}

impl Escape {
    fn after(self, byte: u8) -> Self {
        match self {
            Self::None | Self::HalfPair if byte == b'\\' => Self::Begun,
            Self::Begun if byte == b'u' => Self::Digits(0, 0),
            Self::None | Self::HalfPair | Self::Begun => Self::None,
            Self::Digits(read, value) => {
                let value = value * 16 + char::from(byte).to_digit(16).unwrap_or_default();
                match (read, value) {
                    (3, 0xd800..=0xdbff) => Self::HalfPair,
                    (3, _) => Self::None,
                    _ => Self::Digits(read + 1, value),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn lines(text: &[u8], most: Option<usize>, piece: usize) -> Vec<(Vec<u8>, bool, u64)> {
        let (mut cutter, mut found) = (LineCutter::new(most), Vec::new());
        let mut take = |line: &CutLine<'_>| found.push((line.text.to_vec(), line.cut, line.length));
        text.chunks(piece).for_each(|piece| cutter.push(piece, &mut take));
        cutter.push(b"\n", &mut take);
        found
    }

    #[test]
    fn texts_are_cut_and_the_rest_stays_json() {
        for (text, most, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "abc…"),
            ("a\"b\\cd\ne", 100, "a\"b\\cd\ne"),
            ("ä漢字", 2, "ä…"),
            ("ä漢字", 3, "ä漢…"),
            ("\u{1}\u{1}\u{1}", 6, "\u{1}…"),
            ("x\\\\\"", 1, "x…"),
        ] {
            let line = json!({"k": text, "n": 1}).to_string();
            let found = lines(line.as_bytes(), Some(most), 1);
            let (kept, cut, length) = &found[0];
            let value: Value = serde_json::from_slice(kept).unwrap();
            assert_eq!((value["k"].as_str().unwrap(), &value["n"]), (expected, &json!(1)), "{text}");
            assert_eq!((*cut, *length), (text != expected, line.len() as u64 + 1));
        }
        // The second half of a pair is kept with the first.
        let found = lines(br#"{"k":"\ud83d\ude42\ud83d\ude42"}"#, Some(2), 3);
        assert_eq!(serde_json::from_slice::<Value>(&found[0].0).unwrap()["k"], "🙂…");
    }

    #[test]
    fn half_a_line_waits_for_its_rest() {
        let mut cutter = LineCutter::new(None);
        let mut found = Vec::new();
        cutter.push(b"ab", |line| found.push(line.text.to_vec()));
        assert!(found.is_empty());
        cutter.push(b"c\n\nd", |line| found.push(line.text.to_vec()));
        assert_eq!(found, [b"abc".to_vec(), b"".to_vec()]);
        cutter.push(b"\n", |line| found.push(line.text.to_vec()));
        assert_eq!(found.last().unwrap(), b"d");
    }

    #[test]
    fn a_line_of_any_length_takes_bounded_memory() {
        let mut cutter = LineCutter::new(Some(10));
        let piece = vec![b'x'; 1 << 20];
        cutter.push(b"{\"k\":\"", |_| ());
        (0..50).for_each(|_| cutter.push(&piece, |_| ()));
        assert!(cutter.line.capacity() < 1_000);
        let mut found = Vec::new();
        cutter.push(b"\"}\n", |line| found.push((line.text.to_vec(), line.length)));
        assert_eq!(found, [("{\"k\":\"xxxxxxxxxx…\"}".as_bytes().to_vec(), (50 << 20) + 9)]);
        (0..50).for_each(|_| cutter.push(&piece, |_| ()));
        assert!(cutter.line.len() <= LONGEST);
    }

    proptest! {
        #[test]
        fn what_is_short_enough_stays_as_it_is(text: Vec<u8>, piece in 1usize..9) {
            let found = lines(&text, Some(10_000), piece);
            let joined: Vec<u8> = found.iter().map(|(line, ..)| line.as_slice()).collect::<Vec<_>>().join(&b'\n');
            prop_assert_eq!(&joined, &text);
            prop_assert_eq!(found.iter().map(|(.., length)| *length).sum::<u64>(), text.len() as u64 + 1);
        }

        #[test]
        fn json_stays_json(texts: Vec<String>, most in 1usize..9) {
            let found = lines(json!({"a": texts}).to_string().as_bytes(), Some(most), 7);
            let value: Value = serde_json::from_slice(&found[0].0).unwrap();
            for (kept, text) in value["a"].as_array().unwrap().iter().zip(&texts) {
                let kept = kept.as_str().unwrap();
                prop_assert!(kept == text || text.starts_with(kept.strip_suffix('…').unwrap()));
            }
        }
    }
}
