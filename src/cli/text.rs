//! How things look to people: ages, tables, texts that may hold anything.

use jiff::Timestamp;

/// How long ago `then` was, in one unit: `5 s`, `3 min`, `2 h`, `9 d`.
pub(super) fn age(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(then).as_secs().max(0);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A number of bytes, in one unit: `512 B`, `90 kB`, `1.5 MB`.
pub(super) fn bytes(count: u64) -> String {
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

/// `text` without control characters, which could do anything to a terminal. Line breaks become spaces.
pub(super) fn one_line(text: &str) -> String {
    text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// [`one_line`], cut to `most` characters.
pub(super) fn cut(text: &str, most: usize) -> String {
    let line = one_line(text);
    if line.chars().count() <= most {
        return line;
    }
    line.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Rows in columns as wide as they need to be. The last column is not padded.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column| rows.iter().filter_map(|row| row.get(column)).map(|cell: &String| cell.chars().count()).max();
    let widths: Vec<_> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_one_unit() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let ages = [0, 59, 60, 3_599, 3_600, 172_799, 172_800].map(|seconds| age(at(0), at(seconds)));
        assert_eq!(ages, ["0 s", "59 s", "1 min", "59 min", "1 h", "47 h", "2 d"]);
        assert_eq!(age(at(9), at(0)), "0 s");
    }

    #[test]
    fn a_size_has_one_unit() {
        let sizes = [0, 999, 1_000, 1_499, 9_999, 90_000, 999_999, 1_500_000_000].map(bytes);
        assert_eq!(sizes, ["0 B", "999 B", "1.0 kB", "1.5 kB", "10 kB", "90 kB", "1.0 MB", "1.5 GB"]);
    }

    #[test]
    fn no_text_reaches_the_terminal_as_a_command() {
        assert_eq!(one_line(" a\u{1b}[2Jb\nc "), "a [2Jb c");
        assert_eq!(cut("When is your birthday?", 8), "When is…");
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [vec!["a".to_owned(), "b".to_owned()], vec!["long".to_owned(), "c".to_owned()]];
        assert_eq!(table(&rows), "a     b\nlong  c\n");
        assert_eq!(table(&[]), "");
    }
}
