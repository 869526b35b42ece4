//! Questions that agents post as files, and answers in files: the published pattern of `pending` and `answered` folders.

pub(crate) mod answered;
pub(crate) mod pending;

use serde_json::{Map, Value};

use crate::core::text::escape::shortened;

const MARKER: &str = "QUESTION_POSTED:";

/// The ids in the last lines of a reply, in order. An agent that posts several questions writes a line for each.
pub(crate) fn announced(reply: &str) -> Vec<String> {
    const MOST: usize = 20;
    let lines = reply.lines().rev().map(|line| line.trim().trim_matches(['`', '*', '_']).trim());
    let ids = lines.filter(|line| !line.is_empty()).map_while(|line| line.strip_prefix(MARKER));
    let mut ids: Vec<String> = ids.take(MOST).map(|id| shortened(id.trim().trim_matches(['`', '*']))).collect();
    ids.reverse();
    ids.dedup();
    ids
}

/// A field under the first of these names that has a value other than null. Case, hyphens and underscores do not matter.
pub(super) fn field<'a>(object: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
    named(object, names).map(|(_, value)| value)
}

/// The same, together with its own name.
pub(super) fn named<'a>(object: &'a Map<String, Value>, names: &[&str]) -> Option<(&'a String, &'a Value)> {
    let plain = |name: &str| name.to_lowercase().replace(['_', '-'], "");
    let named = |name: &&str| object.iter().find(|(key, value)| !value.is_null() && plain(key) == plain(name));
    names.iter().find_map(named)
}

/// A value as a text: a text itself, a number, yes or no, or anything else as JSON.
pub(super) fn text(value: &Value) -> Option<String> {
    let text = match value {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Array(_) | Value::Object(_) => serde_json::to_string_pretty(value).unwrap_or_default(),
    };
    Some(text).filter(|text| !text.trim().is_empty())
}

/// The same for a field.
pub(super) fn text_of(object: &Map<String, Value>, names: &[&str]) -> Option<String> {
    field(object, names).and_then(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_count() {
        for (reply, ids) in [
            ("I wait.\n\nQUESTION_POSTED:q1\n", &["q1"][..]),
            ("QUESTION_POSTED: q1", &["q1"]),
            ("**QUESTION_POSTED:q1**", &["q1"]),
            ("`QUESTION_POSTED:q1`\n\n`QUESTION_POSTED:q2`", &["q1", "q2"]),
            ("QUESTION_POSTED:q1\nQUESTION_POSTED:q1", &["q1"]),
            ("QUESTION_POSTED:../../etc/passwd", &["../../etc/passwd"]),
            ("QUESTION_POSTED:q1\nI go on.", &[]),
            ("I would write QUESTION_POSTED:q1", &[]),
            ("", &[]),
        ] {
            assert_eq!(announced(reply), ids, "{reply:?}");
        }
    }
}
