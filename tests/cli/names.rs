//! Names for values that differ between runs, so that snapshots can contain them.

use std::sync::LazyLock;

use regex::Regex;

/// The ids that were seen, in the order of their appearance.
#[derive(Default)]
pub(crate) struct Names {
    /// Their first eight characters.
    seen: Vec<String>,
}

impl Names {
    /// Replaces ids by `[ID1]`, their first eight characters by `[ID1:8]`, times by `[TIME]`, ages by `[AGE]`, the
    /// numbers of processes by `[PID]` and those of seconds in JSON by `[SECONDS]`.
    pub(crate) fn replace(&mut self, text: &str) -> String {
        let mut replaced = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
            let word = rest[..end].trim_end_matches(['-', ':', '.']);
            rest = &rest[word.len()..];
            if let Some(after) = after_unit(rest).filter(|_| is_number(word)) {
                replaced.push_str("[AGE]");
                rest = after;
            } else if is_number(word) && replaced.ends_with("process ") {
                replaced.push_str("[PID]");
            } else if word.parse::<f64>().is_ok()
                && replaced.ends_with("\"seconds\":") | replaced.ends_with("\"seconds\": ")
            {
                replaced.push_str("[SECONDS]");
            } else {
                replaced.push_str(&self.name(word));
            }
            let gap = rest.find(|c: char| c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            replaced.push_str(&rest[..gap]);
            rest = &rest[gap..];
        }
        // Shown on the clock of the person who reads it.
        static ON_A_CLOCK: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r"(\d{4}-\d\d-\d\d )?\d\d:\d\d \((in )?\[AGE\]( \[AGE\])?( ago)?\)").expect("a pattern")
        });
        ON_A_CLOCK.replace_all(&replaced, "[TIME] (${2}[AGE]${4})").into_owned()
    }

    fn name(&mut self, word: &str) -> String {
        if let Some((id, rest)) = word.split_at_checked(36).filter(|(id, _)| is_id(id)) {
            format!("[ID{}]{rest}", self.number(&id[..8]))
        } else if is_short_id(word) {
            format!("[ID{}:8]", self.number(word))
        } else if let Some((stem, id)) = word.rsplit_once('-').filter(|(_, id)| is_short_id(id)) {
            format!("{stem}-[ID{}:8]", self.number(id))
        } else if is_time(word) {
            "[TIME]".to_owned()
        } else {
            word.to_owned()
        }
    }

    fn number(&mut self, short: &str) -> usize {
        let at = self.seen.iter().position(|seen| seen == short).unwrap_or_else(|| {
            self.seen.push(short.to_owned());
            self.seen.len() - 1
        });
        at + 1
    }
}

/// The text after the unit of an age, as lists print it, if any.
fn after_unit(text: &str) -> Option<&str> {
    let after = |unit| text.strip_prefix(unit).filter(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()));
    [" s", " min", " h", " d"].into_iter().find_map(after)
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_digit())
}

/// Whether a character can occur in an id or a time.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_:.".contains(c)
}

fn is_short_id(word: &str) -> bool {
    word.len() == 8 && word.chars().all(|c| c.is_ascii_hexdigit())
}

fn is_id(word: &str) -> bool {
    uuid::Uuid::parse_str(word).is_ok()
}

/// `2026-11-21T20:53:18Z`, with or without a fraction.
fn is_time(word: &str) -> bool {
    word.len() >= 20 && word.parse::<jiff::Timestamp>().is_ok()
}

#[test]
fn what_differs_gets_a_name() {
    let text = "SGN_PEND_STARTED (4f2c1a90-0000-4000-8000-000000000001), 4f2c1a90 and 12345678 \
                since 2026-11-21T20:53:18.825Z; state.jsonl, cafe. 4f2c1a90: asked 12 s ago by process 77, until 14:00 (in 1 h 57 min).";
    let named = "SGN_PEND_STARTED ([ID1]), [ID1:8] and [ID2:8] since [TIME]; state.jsonl, cafe. [ID1:8]: asked [AGE] ago by process [PID], until [TIME] (in [AGE]).";
    assert_eq!(Names::default().replace(text), named);
}
