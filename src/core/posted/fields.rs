//! Fields of JSON objects under the names that people give them.

use serde_json::{Map, Value};

/// A field under the first of these names that has a value other than null. Case, hyphens and underscores do not matter.
pub(super) fn field<'a>(object: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
    named(object, names).map(|(_, value)| value)
}

/// The same with its own name.
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

/// The same, of a field.
pub(super) fn text_of(object: &Map<String, Value>, names: &[&str]) -> Option<String> {
    field(object, names).and_then(text)
}
