//! Amounts for people: of bytes, and of what a list omits of a text or a call.

use serde_json::Value;

/// A number of bytes, in one unit: `512 B`, `90 kB`, `1.5 MB`.
pub(crate) fn bytes(count: u64) -> String {
    let (mut value, mut units) = (count as f64, ["B", "kB", "MB", "GB", "TB"].iter());
    let mut unit = units.next().unwrap_or(&"");
    while value >= 999.5
        && let Some(larger) = units.next()
    {
        (value, unit) = (value / 1000.0, larger);
    }
    let digits = usize::from(value < 9.95 && count > 999);
    format!("{value:.digits$} {unit}")
}

/// How much of a text is left out if this much is shown. `None`: nothing.
pub(crate) fn hidden(lines: usize, characters: usize, shown: &str) -> Option<String> {
    let (lines, characters) = (lines.saturating_sub(1), characters.saturating_sub(shown.chars().count()));
    let some = |count, more, one| match count {
        1 => format!("1 {more}{one}"),
        count => format!("{} {more}{one}s", grouped(count)),
    };
    match (lines, characters) {
        (0, 0) => None,
        (0, characters) => Some(format!("… {}", some(characters, "more ", "character"))),
        (lines, 0) => Some(format!("… {}", some(lines, "more ", "line"))),
        (lines, characters) => {
            Some(format!("… {}, {}", some(lines, "more ", "line"), some(characters, "", "character")))
        }
    }
}

/// How many lines and characters a call's texts have.
pub(crate) fn extent(value: &Value) -> (usize, usize) {
    match value {
        Value::String(text) => (text.lines().count().max(1), text.chars().count()),
        Value::Array(list) => list.iter().map(extent).fold((0, 0), sum),
        Value::Object(fields) => fields.values().map(extent).fold((0, 0), sum),
        other => (1, other.to_string().len()),
    }
}

fn sum(one: (usize, usize), other: (usize, usize)) -> (usize, usize) {
    (one.0 + other.0, one.1 + other.1)
}

fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let parts: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|part| std::str::from_utf8(part).ok()).collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_list_hides_is_counted() {
        assert_eq!(hidden(1, 3, "abc"), None);
        assert_eq!(hidden(4, 2_193, "abc").as_deref(), Some("… 3 more lines, 2,190 characters"));
        assert_eq!(hidden(2, 4, "abc").as_deref(), Some("… 1 more line, 1 character"));
        assert_eq!(hidden(1, 1_234_570, "abc").as_deref(), Some("… 1,234,567 more characters"));
        assert_eq!(extent(&json!({"a": "x\ny", "b": ["z", 12]})), (4, 6));
    }
}
