//! The cost of a single attempt.

use crate::claude::installation::version::Version;
use crate::core::chain::frame::Frame;
use crate::store::Attempt;

/// The cost of an attempt of `frame`, in US dollars, given the `total` cost of its session. `attempts`: the frame's
/// attempts; `version`: that of its Claude Code.
///
/// Newer versions include the earlier cost of the resumed session, which belongs to earlier attempts.
pub(super) fn own(total: f64, frame: &Frame, attempts: &[Attempt], version: Option<&str>) -> f64 {
    let before = match (frame.checkpoint, frame.baseline) {
        (Some(checkpoint), _) => {
            attempts.iter().find(|attempt| attempt.id == checkpoint).map_or(0.0, |kept| kept.total_cost_usd)
        }
        (None, Some(baseline)) => baseline.cost_usd,
        (None, None) => 0.0,
    };
    without(total, before, version)
}

fn without(total: f64, before: f64, version: Option<&str>) -> f64 {
    let version = version.and_then(|version| version.parse::<Version>().ok());
    let accumulates = version.is_some_and(|version| version >= Version::TOTAL_COST_ACCUMULATES);
    if accumulates && total >= before { total - before } else { total }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_before_is_taken_off_where_it_was_counted() {
        let newer = Version::TOTAL_COST_ACCUMULATES.to_string();
        for (total, before, version, own) in [
            (0.75, 0.5, Some(newer.as_str()), 0.25),
            (0.5, 0.5, Some(&newer), 0.0),
            (0.25, 0.5, Some(&newer), 0.25),
            (0.75, 0.5, Some("2.1.89"), 0.75),
            (0.75, 0.5, Some("of next year"), 0.75),
            (0.75, 0.5, None, 0.75),
        ] {
            assert!((without(total, before, version) - own).abs() < f64::EPSILON, "{total} {before} {version:?}");
        }
    }
}
