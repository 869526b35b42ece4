//! Times as people read them.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::core::text::age::time_until;

/// A time on the clock of `zone`, with the date unless it is today, and how far away it is: `11:49 (in 2 h)`.
pub(crate) fn moment(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let (at_zone, today) = (at.to_zoned(zone.clone()), now.to_zoned(zone.clone()).date());
    let day = if at_zone.date() == today { String::new() } else { format!("{} ", at_zone.date()) };
    let away = if at > now { format!(" (in {})", time_until(at, now)) } else { String::new() };
    format!("{day}{}{away}", at_zone.strftime("%H:%M"))
}

/// When an open question expires. One that nobody has looked at since it expired still takes an answer.
pub(crate) fn expiry(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let verb = if at > now { "expires" } else { "expired" };
    format!("{verb} {}", moment(at, now, zone))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiry_is_shown_on_the_clock_of_the_reader() {
        let time = |text: &str| text.parse::<Timestamp>().unwrap();
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        let now = time("2026-10-25T00:00:00Z");
        for (at, shown) in [
            ("2026-10-25T02:00:00Z", "expires 03:00 (in 2 h)"),
            ("2026-10-25T00:30:00Z", "expires 02:30 (in 30 min)"),
            ("2026-10-25T01:30:00Z", "expires 02:30 (in 1 h)"),
            ("2026-10-25T23:30:00Z", "expires 2026-10-26 00:30 (in 23 h)"),
            ("2026-10-24T23:59:00Z", "expired 01:59"),
        ] {
            assert_eq!(expiry(time(at), now, &berlin), shown);
        }
    }
}
