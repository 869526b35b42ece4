//! The version that is imitated.

use std::env;

/// The newest version that is known here.
const NEWEST: &str = "2.1.330";
/// The first whose hooks can defer a call.
const DEFERS: [u32; 3] = [2, 1, 89];

/// The version that the environment names, or the newest.
pub(crate) fn version() -> String {
    env::var("STAND_IN_VERSION").unwrap_or_else(|_| NEWEST.to_owned())
}

/// Whether that version can defer calls. An earlier one ignores a deferral.
pub(crate) fn defers() -> bool {
    let numbers: Option<Vec<u32>> = version().splitn(3, '.').map(|number| number.parse().ok()).collect();
    numbers.is_none_or(|numbers| numbers.as_slice() >= DEFERS.as_slice())
}
