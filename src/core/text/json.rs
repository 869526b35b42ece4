//! Reads JSON as programs in JavaScript write it, which strict readers refuse: halves of characters where a text was cut, and
//! any depth.
//!
//! This is the only way in which lines of Claude Code are read. A line that a strict reader refuses as a whole is repaired; every
//! other line costs nothing more.

use std::fmt;

use memchr::memmem;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// Reads a line: output of `claude`, a line of a transcript, the input of a hook, a message of a client.
///
/// If a strict reader refuses it, it is repaired: half a character, and bytes that are not UTF-8, become U+FFFD; control
/// characters count as escaped; a number that is too large is `null`, as `JSON.stringify` writes it; if a key occurs twice, the
/// last one counts; and anything nested more than [`DEEPEST`] levels deep becomes [`TOO_DEEP`].
///
/// Fails if it is not JSON (truncated, for example), or not of this shape.
pub(crate) fn read<T: DeserializeOwned>(line: &[u8]) -> Result<T, serde_json::Error> {
    // A lenient shape could skip an error in a text and continue within that text, so such a line is not even tried.
    if !may_have_half_a_character(line)
        && let Ok(read) = serde_json::from_slice(line)
    {
        return Ok(read);
    }
    T::deserialize(serde_json::from_slice::<Value>(&repaired(line))?)
}

/// A line, some fields of which are replaced by those of `now`. The others are unchanged, to the byte.
pub(crate) fn with_changed(line: &[u8], changed: &[String], now: &Value) -> Vec<u8> {
    let Ok(Fields(fields)) = serde_json::from_slice(line) else { return now.to_string().into_bytes() };
    let fields = fields.iter().map(|(name, raw)| {
        let value = if changed.contains(name) { now[name].to_string() } else { raw.get().to_owned() };
        format!("{}:{value}", Value::from(name.as_str()))
    });
    format!("{{{}}}", fields.collect::<Vec<_>>().join(",")).into_bytes()
}

/// Whether a line is nested more than [`DEEPEST`] levels deep, so that reading it leaves something out.
pub(crate) fn is_too_deep(line: &[u8]) -> bool {
    let mut depth = Depth::default();
    tokens(line).any(|token| depth.takes(token) == Level::Opens)
}

/// The `id` of a message that may not be JSON: the last one at its top level.
pub(crate) fn id_in(line: &[u8]) -> Option<Value> {
    let (mut level, mut key, mut found) = (0_usize, None, None);
    for token in tokens(line).filter(|token| !token[0].is_ascii_whitespace()) {
        match (token[0], key) {
            (b'{' | b'[', _) => level += 1,
            (b'}' | b']', _) => level = level.saturating_sub(1),
            (b':', _) => continue,
            (_, Some(true)) if level == 1 => {
                found = read(token).ok().filter(|id: &Value| id.is_string() || id.is_number()).or(found);
            }
            _ => {}
        }
        // After a comma or the beginning comes a key, after a key a value.
        key = (level == 1 && token[0] == b'"' && key.is_none()).then(|| token == b"\"id\"");
    }
    found
}

/// The levels that are read. Every JSON reader supports as many, with a few additional levels around them.
pub(crate) const DEEPEST: usize = 100;

/// Replaces values that are nested deeper.
pub(crate) const TOO_DEEP: &str = "(nested too deeply)";

/// The fields of an object as they were written. The content of values does not matter.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

fn may_have_half_a_character(line: &[u8]) -> bool {
    memmem::find_iter(line, br"\u").any(|at| line.get(at + 2).is_some_and(|digit| digit | 0x20 == b'd'))
}

fn repaired(line: &[u8]) -> Vec<u8> {
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    let line = String::from_utf8_lossy(line);
    let (mut repaired, mut depth) = (Vec::with_capacity(line.len()), Depth::default());
    for token in tokens(line.as_bytes()) {
        match depth.takes(token) {
            Level::Opens => repaired.extend(Value::from(TOO_DEEP).to_string().bytes()),
            Level::Within => {}
            Level::Read if token[0] == b'"' => repair_text(token, &mut repaired),
            Level::Read if is_too_large(token) => repaired.extend(b"null"),
            // Left by a power failure in a file.
            Level::Read if token == [0] => {}
            Level::Read => repaired.extend(token),
        }
    }
    repaired
}

/// The parts of a line: texts, numbers, and single bytes.
fn tokens(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let length = match rest.first()? {
            b'"' => {
                let mut escaped = true;
                let end = rest.iter().position(|byte| {
                    let ends = *byte == b'"' && !escaped;
                    escaped = *byte == b'\\' && !escaped;
                    ends
                });
                end.map_or(rest.len(), |end| end + 1)
            }
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
                rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len())
            }
            _ => 1,
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        Some(token)
    })
}

/// How deep the parts of a line are.
#[derive(Default)]
struct Depth {
    levels: usize,
}

#[derive(PartialEq, Eq)]
enum Level {
    Read,
    /// It begins a value that is nested too deeply.
    Opens,
    /// It is inside such a value.
    Within,
}

impl Depth {
    fn takes(&mut self, token: &[u8]) -> Level {
        let before = self.levels;
        match token[0] {
            b'{' | b'[' => self.levels += 1,
            b'}' | b']' => self.levels = self.levels.saturating_sub(1),
            _ => {}
        }
        match before.max(self.levels) {
            0..=DEEPEST => Level::Read,
            _ if before == DEEPEST => Level::Opens,
            _ => Level::Within,
        }
    }
}

fn is_too_large(token: &[u8]) -> bool {
    let number = std::str::from_utf8(token).ok().and_then(|number| number.parse::<f64>().ok());
    number.is_some_and(f64::is_infinite)
}

fn repair_text(text: &[u8], repaired: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(byte) = rest.first() {
        let length = match (byte, half(rest)) {
            (0..0x20, _) => {
                repaired.extend(format!("\\u{byte:04x}").bytes());
                rest = &rest[1..];
                continue;
            }
            (_, Some(Half::First)) if half(&rest[6..]) == Some(Half::Second) => 12,
            (_, Some(_)) => {
                repaired.extend("\u{fffd}".bytes());
                rest = &rest[6..];
                continue;
            }
            (b'\\', None) => rest.len().min(2),
            _ => 1,
        };
        let (same, after) = rest.split_at(length);
        repaired.extend(same);
        rest = after;
    }
}

#[derive(PartialEq, Eq)]
enum Half {
    First,
    Second,
}

/// Which half of a character is escaped at the beginning of `text`, if any.
fn half(text: &[u8]) -> Option<Half> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
    let value =
        std::str::from_utf8(digits).ok().filter(|_| is_hex).and_then(|digits| u16::from_str_radix(digits, 16).ok());
    match value? {
        0xd800..=0xdbff => Some(Half::First),
        0xdc00..=0xdfff => Some(Half::Second),
        _ => None,
    }
}

/// Any JSON, for tests.
#[cfg(test)]
pub(crate) fn any_json() -> impl proptest::strategy::Strategy<Value = Value> {
    use proptest::prelude::*;

    let name = "hooks|PreToolUse|SessionStart|agent_id|tool_name|[a-z]{0,4}";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn of(line: &str) -> Option<Value> {
        read(line.as_bytes()).ok()
    }

    #[test]
    fn half_a_character_is_a_replacement_character() {
        for (text, expected) in [
            (r"cut \ud83d", "cut \u{fffd}"),
            (r"\udc4d cut", "\u{fffd} cut"),
            (r"\ud83d\ud83d\udc4d", "\u{fffd}👍"),
            (r"\uD83D\uDC4D", "👍"),
            (r"\\ud83d", r"\ud83d"),
            (r"\\\ud83d\\", "\\\u{fffd}\\"),
            (r#"\ud83d\"}"#, "\u{fffd}\"}"),
            (r"\ud83d\u0041", "\u{fffd}A"),
        ] {
            assert_eq!(of(&format!(r#"{{"a":["{text}"]}}"#)), Some(json!({"a": [expected]})), "{text}");
            assert_eq!(of(&format!(r#"{{"{text}":1}}"#)), Some(json!({expected: 1})), "as a key: {text}");
        }
        assert_eq!(of(r#"{"a":"\ud83"#), None);
        assert_eq!(of(r#"{"a":"\ud8zz"}"#), None);
    }

    #[test]
    fn what_a_strict_reader_refuses_is_repaired() {
        assert_eq!(of("\u{feff}{\"a\":1}\r"), Some(json!({"a": 1})));
        assert_eq!(of("\0\0{\"a\":\"\0\u{1}\t\"}\0"), Some(json!({"a": "\0\u{1}\t"})));
        assert_eq!(of(r#"{"a":1e999,"b":[-1e999,2],"c":99999999999999999999999}"#).unwrap()["b"], json!([null, 2]));
        assert_eq!(read::<Value>(b"{\"a\":\"\xff\"}").ok(), Some(json!({"a": "\u{fffd}"})));
        #[derive(serde::Deserialize)]
        struct Shape {
            a: u8,
        }
        assert_eq!(read::<Shape>(br#"{"a":1,"a":2}"#).unwrap().a, 2, "the last of two keys counts");
        for torn in ["", "{", r#"{"a":"#, r#"{"a":"b"#, r#"{"a":"b\"#, r#"{"a":1}{"#, "[1,]", "nul"] {
            assert_eq!(of(torn), None, "{torn}");
        }
    }

    #[test]
    fn any_depth_is_read_and_what_is_too_deep_is_one_text() {
        let nested = |levels: usize| format!(r#"{{"a":{}"]"{},"b":1}}"#, "[".repeat(levels), "]".repeat(levels));
        assert!(!is_too_deep(nested(DEEPEST - 1).as_bytes()));
        assert_eq!(of(&nested(DEEPEST - 1)).unwrap().to_string(), nested(DEEPEST - 1));
        for levels in [DEEPEST, 140, 100_000] {
            let read = of(&nested(levels)).unwrap();
            assert!(is_too_deep(nested(levels).as_bytes()));
            assert_eq!(read["b"], 1);
            // The strict reader accepts a few more levels.
            assert_eq!(read.to_string().contains(TOO_DEEP), levels > 126, "{levels}");
        }
    }

    #[test]
    fn the_id_of_a_broken_message_is_found() {
        let id = |line: &str| id_in(line.as_bytes());
        assert_eq!(id(r#"{"id":7,"method":"x","params":{"id":8"#), Some(json!(7)));
        assert_eq!(id(r#"{"params":{"id":8,"a":["id",1]},"jsonrpc":"2.0", "id" : "a"}"#), Some(json!("a")));
        assert_eq!(id(r#"{"params":"id","x":1}"#), None);
        assert_eq!(id(r#"{"params":{"id":8}}"#), None);
        assert_eq!(id("garbage"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = read::<Value>(&bytes);
            let _ = (id_in(&bytes), is_too_deep(&bytes));
        }

        #[test]
        fn what_is_repaired_without_need_says_the_same(value in any_json()) {
            let line = value.to_string();
            prop_assert_eq!(serde_json::from_slice::<Value>(&repaired(line.as_bytes())).unwrap(), value);
        }
    }
}
