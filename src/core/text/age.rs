//! Times as people say them.

use jiff::Timestamp;

/// How long ago `then` was, in one unit: `5 s`, `3 min`, `2 h`, `9 d`.
pub(crate) fn age(then: Timestamp, now: Timestamp) -> String {
    in_one_unit(now.duration_since(then).as_secs().max(0))
}

/// How long it is until `at`, in one unit. Three days are still three days a few seconds after they were set.
pub(crate) fn time_until(at: Timestamp, now: Timestamp) -> String {
    const SLACK: i64 = 30;
    let seconds = at.duration_since(now).as_secs().max(0);
    in_one_unit(if seconds < 60 { seconds } else { seconds + SLACK })
}

fn in_one_unit(seconds: i64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}
