//! What an attempt has cost by itself.

use crate::claude::installation::version::Version;
use crate::core::chain::frame::Frame;
use crate::store::Attempt;

/// What an attempt of `frame` has cost by itself, in US dollars, of a `total` that its session has cost. `attempts`: those of the
/// frame; `version`: that of its Claude Code.
///
/// Newer versions count what the resumed session had cost before: that was paid by an earlier attempt.
pub(super) fn own(total: f64, frame: &Frame, attempts: &[Attempt], version: Option<&str>) -> f64 {
    let version = version.and_then(|version| version.parse::<Version>().ok());
    if version.is_none_or(|version| version < Version::TOTAL_COST_ACCUMULATES) {
        return total;
    }
    let before = match (frame.checkpoint, frame.baseline) {
        (Some(checkpoint), _) => {
            attempts.iter().find(|attempt| attempt.id == checkpoint).map_or(0.0, |kept| kept.total_cost_usd)
        }
        (None, Some(baseline)) => baseline.cost_usd,
        (None, None) => 0.0,
    };
    if total >= before { total - before } else { total }
}
