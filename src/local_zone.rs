//! The time zone of this machine.

use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;

/// Where systems keep their time zone, as a file or a link to one.
const FILE: &str = "/etc/localtime";

/// How long a time zone is cached. A program that runs for weeks may travel with its user.
const TRUSTED: Duration = Duration::from_secs(60);

/// Returns the time zone in which times are shown and read: that of `TZ`, or that of the system.
///
/// jiff finds the name of the system's zone by listing the zone database, which takes a quarter of the time of a poll. The
/// zone's content is enough, as its name is never shown.
pub(crate) fn local_zone() -> TimeZone {
    static LAST: Mutex<Option<(Instant, TimeZone)>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((read, zone)) = last.as_ref()
        && read.elapsed() < TRUSTED
    {
        return zone.clone();
    }
    let zone = if std::env::var_os("TZ").is_some() { None } else { from_content(FILE) };
    #[expect(clippy::disallowed_methods, reason = "the one place that falls back to it")]
    let zone = zone.unwrap_or_else(TimeZone::system);
    *last = Some((Instant::now(), zone.clone()));
    zone
}

fn from_content(file: &str) -> Option<TimeZone> {
    TimeZone::tzif("Local", &fs::read(file).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn the_content_of_a_zone_is_enough() {
        let zones = ["/usr/share/zoneinfo", "/usr/share/lib/zoneinfo"];
        let berlin = zones.iter().find_map(|folder| from_content(&format!("{folder}/Europe/Berlin")));
        let Some(berlin) = berlin else { return };
        for (at, offset) in [("2026-01-15T12:00:00Z", 1), ("2026-07-15T12:00:00Z", 2), ("2049-07-15T12:00:00Z", 2)] {
            assert_eq!(berlin.to_offset(at.parse::<Timestamp>().unwrap()).seconds(), offset * 3600, "{at}");
        }
    }

    #[test]
    fn a_file_that_is_no_time_zone_is_ignored() {
        assert!(from_content("/dev/null").is_none());
        assert!(from_content("/no/such/file").is_none());
    }
}
