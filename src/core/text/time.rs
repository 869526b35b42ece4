//! Times and durations, as people read and write them.

use jiff::civil;
use jiff::fmt::temporal::Pieces;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp, Zoned};

/// How long ago `then` was, in one unit, for a column of a table: `5 s`, `3 min`, `2 h`, `9 d`.
pub(crate) fn age(then: Timestamp, now: Timestamp) -> String {
    in_one_unit(now.duration_since(then).as_secs().max(0))
}

/// How long ago `then` was, in up to two units.
pub(crate) fn time_since(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(then).as_secs().max(0);
    in_two_units(seconds, seconds / 60)
}

/// How long it is until `at`, in up to two units: `25 s`, `3 min`, `1 h 57 min`, `2 d 5 h`. Three days are still three days a few
/// seconds after they were set.
pub(crate) fn time_until(at: Timestamp, now: Timestamp) -> String {
    const SLACK: i64 = 30;
    let seconds = at.duration_since(now).as_secs().max(0);
    in_two_units(seconds, (seconds + SLACK) / 60)
}

fn in_two_units(seconds: i64, minutes: i64) -> String {
    let two = |(large, of_large): (i64, &str), (small, of_small): (i64, &str)| match small {
        0 => format!("{large} {of_large}"),
        _ => format!("{large} {of_large} {small} {of_small}"),
    };
    match minutes {
        _ if seconds < 60 => in_one_unit(seconds),
        0..60 => format!("{minutes} min"),
        60..1_440 => two((minutes / 60, "h"), (minutes % 60, "min")),
        1_440..10_080 => two((minutes / 1_440, "d"), (minutes % 1_440 / 60, "h")),
        _ => format!("{} d", minutes / 1_440),
    }
}

/// A time on the clock of `zone`, with the date unless it is today: `11:49`.
pub(crate) fn on_clock(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let (at, today) = (at.to_zoned(zone.clone()), now.to_zoned(zone.clone()).date());
    let day = if at.date() == today { String::new() } else { format!("{} ", at.date()) };
    format!("{day}{}", at.strftime("%H:%M"))
}

fn in_one_unit(seconds: i64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// The message about a time out of range, given directly or by a duration.
pub(crate) const TOO_FAR: &str = "too far away: the latest time is 9999-12-30T22:00:00Z";
/// The message about such a duration.
pub(crate) const TOO_LONG: &str = "too long: the longest is 7304484d";

/// Parses a duration. A day is always 24 hours here, whatever the calendar does. Nothing needs no unit.
pub(crate) fn duration(text: &str) -> Result<SignedDuration, String> {
    if text == "0" {
        return Ok(SignedDuration::ZERO);
    }
    let parsed = |text: &str| {
        let span = text.parse::<Span>().ok()?;
        span.to_duration(SpanRelativeTo::days_are_24_hours()).ok().filter(|duration| *duration >= SignedDuration::ZERO)
    };
    // If it is valid with other numbers, only its numbers are wrong.
    let misspelt = "give weeks, days, hours, minutes or seconds, for example 90s, 2h or 3d";
    parsed(text).ok_or_else(|| if parsed(&small(text)).is_some() { TOO_LONG } else { misspelt }.to_owned())
}

/// The same with a 1 for each number.
fn small(text: &str) -> String {
    let mut small = String::new();
    for c in text.chars() {
        let is_digit = c.is_ascii_digit();
        if !is_digit || !small.ends_with('1') {
            small.push(if is_digit { '1' } else { c });
        }
    }
    small
}

/// Parses a time: with an offset from UTC, or in the zone of a place. A time that the clocks of a place skip, or show twice, needs
/// the offset, too.
pub(crate) fn moment(text: &str) -> Result<Timestamp, String> {
    const LAST_YEAR: i16 = 9999;
    let misspelt = || "give the date, the time and the zone, for example 2026-12-24T18:00:00Z".to_owned();
    let pieces = Pieces::parse(text).map_err(|_| misspelt())?;
    let is_far = pieces.date().year() == LAST_YEAR;
    let wrong = || if is_far { TOO_FAR.to_owned() } else { misspelt() };
    let zone =
        pieces.to_time_zone().map_err(|_| "its time zone is not known here: give an offset such as Z or +01:00")?;
    match (zone, pieces.time(), pieces.offset()) {
        (Some(_), Some(_), Some(_)) => {
            let zoned = text.parse::<Zoned>();
            let wrong_offset = "its offset is not that of its time zone then";
            zoned.map(|zoned| zoned.timestamp()).map_err(|_| if is_far { TOO_FAR } else { wrong_offset }.to_owned())
        }
        (Some(zone), Some(time), None) => {
            let ambiguous = zone.to_ambiguous_zoned(pieces.date().to_datetime(time));
            if ambiguous.is_ambiguous() {
                return Err("the clocks change then: add the offset, for example 2026-10-25T02:30+01:00".to_owned());
            }
            ambiguous.compatible().map(|zoned| zoned.timestamp()).map_err(|_| wrong())
        }
        // Without an offset and a zone it is misspelt, however far away it is.
        (_, _, None) => text.parse().map_err(|_| misspelt()),
        _ => text.parse().map_err(|_| wrong()),
    }
}

/// Parses a time in the past: a duration before `now`, a date, a time of day, or a date with a time. If it has no zone, it is on
/// the clocks of `zone`.
pub(crate) fn past_time(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Timestamp, String> {
    if let Ok(ago) = duration(text) {
        return Ok(now.checked_sub(ago).unwrap_or(Timestamp::MIN));
    }
    let on_clocks = |at: civil::DateTime| at.to_zoned(zone.clone()).map(|at| at.timestamp()).ok();
    let of_day = |time: civil::Time| {
        let today = now.to_zoned(zone.clone()).date();
        let at = on_clocks(today.to_datetime(time))?;
        if at <= now { Some(at) } else { on_clocks(today.yesterday().ok()?.to_datetime(time)) }
    };
    let is_bare = text.bytes().all(|byte| byte.is_ascii_digit());
    let found = match (Pieces::parse(text), text.parse::<civil::Time>()) {
        // Most readers would take 2026 for a year or a number of seconds, not for 20:26.
        _ if is_bare => None,
        (Ok(pieces), _) if pieces.offset().is_none() && pieces.time_zone_annotation().is_none() => {
            on_clocks(pieces.date().to_datetime(pieces.time().unwrap_or_default()))
        }
        (Err(_), Ok(time)) => of_day(time),
        _ => moment(text).ok(),
    };
    match found {
        Some(at) if at > now => Err(format!("{text} is in the future")),
        Some(at) => Ok(at),
        None => Err("give a duration such as 7d, a date such as 2026-11-20, or a time such as 14:00".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_in_the_past_is_a_duration_a_date_or_a_time() {
        let (berlin, now) = (TimeZone::get("Europe/Berlin").unwrap(), moment("2026-11-27T09:00:00Z").unwrap());
        let past = |text: &str| past_time(text, now, &berlin).map(|at| at.to_string());
        for (text, expected) in [
            ("90m", "2026-11-27T07:30:00Z"),
            ("0", "2026-11-27T09:00:00Z"),
            ("2026-11-20", "2026-11-19T23:00:00Z"),
            ("09:30", "2026-11-27T08:30:00Z"),
            ("14:00", "2026-11-26T13:00:00Z"),
            ("2026-11-20T14:00", "2026-11-20T13:00:00Z"),
            ("2026-11-20 14:00:30", "2026-11-20T13:00:30Z"),
            ("2026-11-20T14:00:00Z", "2026-11-20T14:00:00Z"),
            ("2026-11-20T14:00+05:00", "2026-11-20T09:00:00Z"),
            ("2026-11-20T14:00[Asia/Tokyo]", "2026-11-20T05:00:00Z"),
        ] {
            assert_eq!(past(text).as_deref(), Ok(expected), "{text}");
        }
        for bad in ["yesterday", "2026-13-01", "25:00", "-3d", "", "2026-11-20[Asia/Tokyo]", "20261120", "2026", "7"] {
            assert!(past(bad).unwrap_err().starts_with("give a duration"), "{bad}");
        }
        for later in ["2026-11-28", "2026-11-27T09:00:01Z", "2027-01-01"] {
            assert_eq!(past(later), Err(format!("{later} is in the future")));
        }
    }

    #[test]
    fn what_is_to_come_has_up_to_two_units() {
        let until = |seconds| time_until(Timestamp::from_second(seconds).unwrap(), Timestamp::UNIX_EPOCH);
        let times = [0, 59, 60, 3_599, 3_600, 7_010, 86_399, 86_400, 190_000, 2_000_000].map(until);
        insta::assert_snapshot!(times.join(", "), @"0 s, 59 s, 1 min, 1 h, 1 h, 1 h 57 min, 1 d, 1 d, 2 d 4 h, 23 d");
    }

    #[test]
    fn what_is_past_has_up_to_two_units_and_one_in_a_table() {
        let now = |seconds| Timestamp::from_second(seconds).unwrap();
        let times = [-9, 59, 60, 3_599, 3_600, 7_010, 86_399, 86_400, 190_000, 2_000_000];
        let since = times.map(|seconds| time_since(Timestamp::UNIX_EPOCH, now(seconds)));
        insta::assert_snapshot!(since.join(", "), @"0 s, 59 s, 1 min, 59 min, 1 h, 1 h 56 min, 23 h 59 min, 1 d, 2 d 4 h, 23 d");
        let ages = times.map(|seconds| age(Timestamp::UNIX_EPOCH, now(seconds)));
        insta::assert_snapshot!(ages.join(", "), @"0 s, 59 s, 1 min, 59 min, 1 h, 1 h, 23 h, 24 h, 2 d, 23 d");
    }

    #[test]
    fn a_duration_is_a_positive_number_of_units() {
        assert_eq!(duration("1d 12h"), Ok(SignedDuration::from_hours(36)));
        assert_eq!(duration("0s"), Ok(SignedDuration::ZERO));
        for bad in ["soon", "-3d", "1mo", "7", ""] {
            assert!(duration(bad).unwrap_err().starts_with("give weeks"), "{bad}");
        }
        assert_eq!(duration("7304484d"), Ok(SignedDuration::from_hours(7_304_484 * 24)));
        for long in ["7304485d", "1 d 99999999999999999999h"] {
            assert_eq!(duration(long), Err(TOO_LONG.to_owned()), "{long}");
        }
    }

    #[test]
    fn a_time_that_is_too_far_away_is_not_called_misspelt() {
        let latest = format!("too far away: the latest time is {:.0}", Timestamp::MAX);
        assert_eq!(latest, TOO_FAR);
        for far in [
            "9999-12-31T00:00:00Z", "9999-12-30T22:00:01Z", "9999-12-31T12:00:00[Asia/Tokyo]",
            "9999-12-31T22:00:00-05:00",
        ] {
            assert_eq!(moment(far), Err(TOO_FAR.to_owned()), "{far}");
        }
        assert!(moment("9999-12-30T22:00:00Z").is_ok());
        assert_ne!(moment("9999-12-30T10:00:00"), Err(TOO_FAR.to_owned()), "it has no zone");
    }

    #[test]
    fn a_place_has_its_own_clocks() {
        let seconds = |text: &str| moment(text).map(|moment| moment.to_string());
        assert_eq!(seconds("2026-12-24T18:00[Europe/Berlin]").as_deref(), Ok("2026-12-24T17:00:00Z"));
        assert_eq!(seconds("2026-07-24T18:00:30[Europe/Berlin]").as_deref(), Ok("2026-07-24T16:00:30Z"));
        assert_eq!(seconds("2026-10-25T02:30+01:00[Europe/Berlin]").as_deref(), Ok("2026-10-25T01:30:00Z"));
        for bad in ["2026-10-25T02:30[Europe/Berlin]", "2026-03-29T02:30[Europe/Berlin]"] {
            assert!(seconds(bad).unwrap_err().starts_with("the clocks change then"), "{bad}");
        }
        for bad in
            ["2026-12-24T18:00+05:00[Europe/Berlin]", "2026-12-24T18:00[Europe/Nowhere]", "2026-12-24[Europe/Berlin]"]
        {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_moment_names_its_zone() {
        assert_eq!(moment("1970-01-01T01:00:00+01:00"), Ok(Timestamp::UNIX_EPOCH));
        assert_eq!(moment("1970-01-01T01:00:00[Europe/Berlin]"), Ok(Timestamp::UNIX_EPOCH));
        for bad in ["tomorrow", "2026-12-24", "2026-12-24T18:00:00", ""] {
            assert!(moment(bad).is_err(), "{bad}");
        }
    }
}
