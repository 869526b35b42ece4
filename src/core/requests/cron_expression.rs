//! When a cron expression of five fields is due: `M H DoM Mon DoW`.

use std::str::FromStr;

use jiff::civil::Date;
use jiff::{Timestamp, ToSpan, Zoned};

/// An expression: the values that each field allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CronExpression {
    minutes: Vec<i8>,
    hours: Vec<i8>,
    days: Field,
    months: Vec<i8>,
    weekdays: Field,
}

/// The values of a field that behaves differently if it allows all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    is_any: bool,
    values: Vec<i8>,
}

/// A text that is not an expression of five fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a cron expression has five fields: minute, hour, day of the month, month, day of the week")]
pub(crate) struct NoExpression;

impl FromStr for CronExpression {
    type Err = NoExpression;

    fn from_str(text: &str) -> Result<Self, NoExpression> {
        let [minutes, hours, days, months, weekdays] =
            <[&str; 5]>::try_from(text.split_whitespace().collect::<Vec<_>>()).map_err(|_| NoExpression)?;
        let field = |text: &str, values: Vec<i8>| Field { is_any: text.starts_with('*'), values };
        // Sunday is 0 and 7.
        let mut of_week = values(weekdays, 0, 7)?;
        of_week.iter_mut().for_each(|day| *day %= 7);
        Ok(Self {
            minutes: values(minutes, 0, 59)?,
            hours: values(hours, 0, 23)?,
            days: field(days, values(days, 1, 31)?),
            months: values(months, 1, 12)?,
            weekdays: field(weekdays, of_week),
        })
    }
}

impl CronExpression {
    /// The first minute after `now` at which it is due, in the time zone of `now`. `None`: not within a year.
    pub(crate) fn next(&self, now: &Zoned) -> Option<Timestamp> {
        let zone = now.time_zone();
        let mut date = now.date();
        for _ in 0..=366 {
            if self.is_on(date) {
                for (hour, minute) in self.hours.iter().flat_map(|hour| self.minutes.iter().map(move |m| (*hour, *m))) {
                    let due = date.at(hour, minute, 0, 0).to_zoned(zone.clone()).ok()?;
                    if due > *now {
                        return Some(due.timestamp());
                    }
                }
            }
            date = date.checked_add(1.day()).ok()?;
        }
        None
    }

    /// If both kinds of day are given, one match is enough.
    fn is_on(&self, date: Date) -> bool {
        let day = self.days.values.contains(&date.day());
        let weekday = self.weekdays.values.contains(&date.weekday().to_sunday_zero_offset());
        let fits = if self.days.is_any || self.weekdays.is_any { day && weekday } else { day || weekday };
        fits && self.months.contains(&date.month())
    }
}

/// The values of a field: `*`, `5`, `1-5`, `*/15`, `1-30/2`, and lists of these.
fn values(field: &str, least: i8, most: i8) -> Result<Vec<i8>, NoExpression> {
    let number = |text: &str| {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i8>().ok().filter(|value| is_number && (least..=most).contains(value)).ok_or(NoExpression)
    };
    let mut found = Vec::new();
    for part in field.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step.parse::<u8>().map_err(|_| NoExpression)?)),
            None => (part, None),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (least, most),
            Some((from, to)) => (number(from)?, number(to)?),
            None if step.is_some() => (number(range)?, most),
            None => (number(range)?, number(range)?),
        };
        let step = usize::from(step.unwrap_or(1));
        if step == 0 || from > to {
            return Err(NoExpression);
        }
        found.extend((from..=to).step_by(step));
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn next(expression: &str, now: &str) -> Option<String> {
        let now: Zoned = now.parse().unwrap();
        let due = expression.parse::<CronExpression>().unwrap().next(&now)?;
        Some(due.to_zoned(now.time_zone().clone()).strftime("%F %H:%M").to_string())
    }

    #[test]
    fn the_next_time_is_the_first_that_fits() {
        let now = "2026-11-22T14:30:00[UTC]";
        for (expression, due) in [
            ("30 14 * * *", Some("2026-11-23 14:30")),
            ("31 14 * * *", Some("2026-11-22 14:31")),
            ("*/5 * * * *", Some("2026-11-22 14:35")),
            ("5/20 * * * *", Some("2026-11-22 14:45")),
            ("0 9 * * 1-5", Some("2026-11-23 09:00")),
            ("0 9 * * 7", Some("2026-11-29 09:00")),
            ("0 9 1 * 1", Some("2026-11-23 09:00")),
            ("0 9 1 * *", Some("2026-12-01 09:00")),
            ("59 23 31 12 *", Some("2026-12-31 23:59")),
            ("1,2 8-20/6 * * *", Some("2026-11-22 20:01")),
            ("30 14 28 2 *", Some("2027-02-28 14:30")),
            ("0 0 31 2 *", None),
        ] {
            assert_eq!(next(expression, now).as_deref(), due, "{expression}");
        }
        assert_eq!(next("0 9 * * *", "2026-11-22T08:59:59+01:00[Europe/Berlin]").as_deref(), Some("2026-11-22 09:00"));
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for text in
            ["", "* * * *", "* * * * * *", "60 * * * *", "a * * * *", "5-1 * * * *", "*/0 * * * *", "+5 * * * *"]
        {
            assert_eq!(text.parse::<CronExpression>(), Err(NoExpression), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[0-9*/,a+ -]{0,20}") {
            if let Ok(expression) = text.parse::<CronExpression>() {
                let _ = expression.next(&"2026-11-22T14:30:00[UTC]".parse().unwrap());
            }
        }
    }
}
