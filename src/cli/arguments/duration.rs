//! Durations and times on the command line.

use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};

/// Parses a duration. A day is always 24 hours here, whatever the calendar does.
pub(crate) fn duration(text: &str) -> Result<SignedDuration, String> {
    text.parse::<Span>()
        .and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()))
        .ok()
        .filter(|duration| *duration >= SignedDuration::ZERO)
        .ok_or_else(|| "give weeks, days, hours, minutes or seconds, for example 90s, 2h or 3d".to_owned())
}

/// Parses a time.
pub(crate) fn moment(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "give the date, the time and the zone, for example 2026-12-24T18:00:00Z".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_positive_number_of_units() {
        assert_eq!(duration("1d 12h"), Ok(SignedDuration::from_hours(36)));
        assert_eq!(duration("0s"), Ok(SignedDuration::ZERO));
        for bad in ["soon", "-3d", "1mo", "7", ""] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_moment_names_its_zone() {
        assert_eq!(moment("1970-01-01T01:00:00+01:00"), Ok(Timestamp::UNIX_EPOCH));
        for bad in ["tomorrow", "2026-12-24", "2026-12-24T18:00:00", ""] {
            assert!(moment(bad).is_err(), "{bad}");
        }
    }
}
