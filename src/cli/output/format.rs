//! Formats ages, times, tables and untrusted text for people.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::cli::output::stdout::{Tone, TonedLine, width};
use crate::core::text::escape;
pub(crate) use crate::core::text::extent::bytes;
pub(crate) use crate::core::text::time::{age, time_since};
use crate::core::text::time::{on_clock, time_until};
use crate::core::text::wrap::{columns, of_each};

/// Escapes `text` on one line, without surrounding blanks and line breaks.
pub(crate) fn one_line(text: &str) -> String {
    escape::one_line(text.trim())
}

/// [`one_line`], cut to `most` columns.
pub(crate) fn cut(text: &str, most: usize) -> String {
    cut_end(text.trim(), most)
}

/// [`cut`], but keeps leading blanks.
fn cut_end(text: &str, most: usize) -> String {
    // The rest of the text may be very long, so do not examine it.
    let enough: String = text.chars().take(characters_in(most) + 2).collect();
    fitted(&escape::one_line(enough.trim_end()), most)
}

/// Cuts a line of escaped text to `most` columns of a terminal.
pub(crate) fn fitted(line: &str, most: usize) -> String {
    let (mut width, mut fits) = (0, 0);
    for (count, (at, c, columns)) in of_each(line).enumerate() {
        width += columns;
        if width > most || count >= characters_in(most) {
            return if most == 0 { String::new() } else { format!("{}…", escape::without_joiner(&line[..fits])) };
        }
        if width < most {
            fits = at + c.len_utf8();
        }
    }
    line.to_owned()
}

/// The most characters on a line with this many columns. Without this limit, a line could have any number of zero-width
/// characters.
fn characters_in(columns: usize) -> usize {
    columns.saturating_mul(4)
}

/// The maximum width of a column. It does not apply to the last column of a table of unlimited width.
const WIDEST: usize = 60;

/// Formats rows as columns. Each column is as wide as it needs to be and the terminal allows. Without a terminal, the last
/// column is not cut. The last cell of a row is not padded and does not affect the width of its column, because in a row with
/// fewer cells than others it may be a note.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    table_within(rows, None, width())
}

/// Like [`table`], but the cell in `column` of each row has the row's tone and is not cut. The cells before it are padded
/// with blanks.
pub(crate) fn toned_table(rows: &[(Vec<String>, Tone)], column: usize) -> Vec<TonedLine> {
    let (cells, tones): (Vec<_>, Vec<_>) = rows.iter().cloned().unzip();
    let text = table_within(&cells, Some(column), width());
    let toned = text.lines().zip(&cells).zip(tones).map(|((line, row), tone)| {
        let before = row.iter().take(column).map(String::len).sum();
        let cell = row.get(column).map_or("", String::as_str);
        let found = line.get(before..).and_then(|rest| rest.find(cell)).map(|at| before + at);
        let part = found.map_or(0..0, |at| at..at + cell.len());
        TonedLine { text: line.to_owned(), part, tone }
    });
    toned.collect()
}

/// `whole` is the column that keeps its width on a narrow terminal.
fn table_within(rows: &[Vec<String>], whole: Option<usize>, width: Option<usize>) -> String {
    let (padded, widths) = columns_before_last(rows, whole, width);
    let mut text = String::new();
    for (row, padded) in rows.iter().zip(&padded) {
        let mut line = String::new();
        for (cell, width) in padded.iter().zip(&widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width - columns(cell) + 2));
        }
        let last = row.last().map_or("", String::as_str);
        line = match width {
            Some(width) => fitted(&(line + &cut_end(last, width)), width),
            None => line + &escape::one_line(last.trim_end()),
        };
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The cells before the last ones, and how wide their columns are.
fn columns_before_last(
    rows: &[Vec<String>],
    whole: Option<usize>,
    width: Option<usize>,
) -> (Vec<Vec<String>>, Vec<usize>) {
    let widest = width.map_or(WIDEST, |width| (width / 5).clamp(8, WIDEST));
    let shortened = |(column, cell): (usize, &String)| cut(cell, if whole == Some(column) { WIDEST } else { widest });
    let padded: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().take(row.len().saturating_sub(1)).enumerate().map(shortened).collect())
        .collect();
    let columns_padded = padded.iter().map(Vec::len).max().unwrap_or(0);
    let needed = |column| padded.iter().filter_map(|row| row.get(column)).map(|cell: &String| columns(cell)).max();
    let widths = (0..columns_padded).map(|column| needed(column).unwrap_or(0)).collect();
    (padded, widths)
}

/// How wide the last column of [`toned_table`] can be. `None`: as wide as needed.
pub(crate) fn room_for_last(rows: &[Vec<String>], column: usize) -> Option<usize> {
    let (_, widths) = columns_before_last(rows, Some(column), width());
    width().map(|width| width.saturating_sub(widths.iter().map(|width| width + 2).sum()))
}

/// Formats a time on the clock of `zone`, with the date unless it is today, and the time until then: `11:49 (in 2 h)`.
pub(crate) fn moment(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let away = if at > now { format!(" (in {})", time_until(at, now)) } else { String::new() };
    on_clock(at, now, zone) + &away
}

/// Formats a time in the past in the same way: `11:49 (2 h ago)`.
pub(crate) fn past(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    format!("{} ({} ago)", on_clock(at, now, zone), time_since(at, now))
}

/// Says when an open question expires. An expired question still accepts an answer until its expiry is recorded.
pub(crate) fn expiry(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let verb = if at > now { "expires" } else { "expired" };
    format!("{verb} {}", moment(at, now, zone))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_size_has_one_unit() {
        let sizes = [0, 999, 1_000, 1_499, 9_999, 90_000, 999_999, 1_500_000_000].map(bytes);
        assert_eq!(sizes, ["0 B", "999 B", "1.0 kB", "1.5 kB", "10 kB", "90 kB", "1.0 MB", "1.5 GB"]);
    }

    #[test]
    fn no_text_reaches_the_terminal_as_a_command() {
        assert_eq!(one_line(" a\u{1b}[2Jb\nc "), "a\\u{1b}[2Jb⏎c");
        assert_eq!(cut("When is your birthday?", 8), "When is…");
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [vec!["a".to_owned(), "b".to_owned()], vec!["long".to_owned(), "c".to_owned()]];
        assert_eq!(table(&rows), "a     b\nlong  c\n");
        assert_eq!(table(&[]), "");
    }

    #[test]
    fn one_cell_of_a_row_has_its_tone() {
        let rows = [(vec!["4f2c1a90".to_owned(), "done".to_owned(), "done".to_owned()], Tone::Good)];
        let lines = toned_table(&rows, 1);
        assert_eq!((lines[0].text.as_str(), lines[0].part.clone()), ("4f2c1a90  done  done", 10..14));
    }

    #[test]
    fn a_row_with_fewer_cells_ends_with_a_note() {
        let cells = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
        let rows = [cells(&["a", "b", "c"]), cells(&["", "  a long note"]), cells(&["d", "e", "f"])];
        assert_eq!(table_within(&rows, None, None), "a  b  c\n     a long note\nd  e  f\n");
    }

    #[test]
    fn a_column_can_be_kept_whole_on_a_narrow_terminal() {
        let rows = [["4f2c1a90", "limit until 14:00", "a long task"].map(str::to_owned).to_vec()];
        assert_eq!(table_within(&rows, Some(1), Some(36)), "4f2c1a90  limit until 14:00  a long…\n");
        assert_eq!(table_within(&rows, None, Some(36)), "4f2c1a90  limit u…  a long task\n");
    }

    #[test]
    fn a_line_is_cut_where_the_terminal_ends() {
        for (line, most, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("漢字", 4, "漢字"),
            ("漢字", 3, "漢…"),
            ("漢字", 2, "…"),
            ("a", 0, ""),
            ("e\u{301}x", 2, "e\u{301}x"),
        ] {
            assert_eq!(fitted(line, most), expected, "{line} in {most}");
        }
        assert!(fitted(&"e\u{301}".repeat(9), 3).chars().count() < 20);
        assert!(fitted(&"\u{301}".repeat(100_000), 3).chars().count() < 20);
    }

    proptest! {
        #[test]
        fn a_cut_text_is_not_escaped_once_more(text in "(a|👨\u{200d}👩\u{200d}👧|字){0,80}", most in 0..60usize) {
            for cut in [cut(&text, most), escape::shortened(&text)] {
                prop_assert_eq!(escape::one_line(&cut), cut);
            }
        }

        #[test]
        fn no_text_is_too_long_for_a_table(
            cells in prop::collection::vec(prop::collection::vec((".{0,9}|[\u{0}-\u{300}]{0,9}", 0..3usize), 0..4), 0..4),
            whole in prop::option::of(0..3usize),
            width in prop::option::of(0..120usize),
        ) {
            let long = |(text, times): &(String, usize)| text.repeat([1, 9, 9_000][*times]);
            let rows: Vec<Vec<_>> = cells.iter().map(|row| row.iter().map(long).collect()).collect();
            let text = table_within(&rows, whole, width);
            prop_assert_eq!(text.lines().count(), rows.len());
            for line in text.lines() {
                prop_assert!(escape::is_plain(line), "{:?}", line);
                prop_assert!(columns(line) <= width.unwrap_or(usize::MAX), "{:?}", line);
            }
        }
    }

    #[test]
    fn an_expiry_is_shown_on_the_clock_of_the_reader() {
        let time = |text: &str| text.parse::<Timestamp>().unwrap();
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        let now = time("2026-10-25T00:00:00Z");
        for (at, shown) in [
            ("2026-10-25T02:00:00Z", "expires 03:00 (in 2 h)"),
            ("2026-10-25T00:30:00Z", "expires 02:30 (in 30 min)"),
            ("2026-10-25T01:30:00Z", "expires 02:30 (in 1 h 30 min)"),
            ("2026-10-25T23:30:00Z", "expires 2026-10-26 00:30 (in 23 h 30 min)"),
            ("2026-10-24T23:59:00Z", "expired 01:59"),
        ] {
            assert_eq!(expiry(time(at), now, &berlin), shown);
        }
        assert_eq!(past(time("2026-10-24T23:00:00Z"), now, &berlin), "01:00 (1 h ago)");
        assert_eq!(past(time("2026-10-04T22:00:00Z"), now, &berlin), "2026-10-05 00:00 (20 d ago)");
    }
}
