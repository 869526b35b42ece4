//! A number of bytes, as people read it.

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
