//! Jobs that `claude` printed but no hook recorded: hooks may be disabled, or the hook was killed.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::claude::stream::background_work::{Jobs, Made};
use crate::claude::tools::scheduling;
use crate::core::waits::scheduled::Scheduled;

/// The jobs that an attempt has made, so that its agent's reply does not count before they are due.
pub(super) fn made(jobs: &Jobs) -> Vec<Scheduled> {
    let job = |Made { input, response }: &Made| scheduling::job(input, response, Timestamp::now(), &TimeZone::system());
    jobs.made.iter().filter_map(job).filter(Scheduled::can_be_given).collect()
}
