//! Jobs that `claude` printed but no hook recorded: hooks may be disabled, or the hook was killed.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::claude::stream::jobs::{Jobs, Made};
use crate::claude::tools::schedule;
use crate::core::requests::request::{External, RequestKind};
use crate::core::requests::scheduled::Scheduled;
use crate::runtime::RuntimeError;
use crate::store::{Attempt, Caller, Store};

/// Records the jobs of an attempt, so that its agent's reply does not count before they are due.
pub(crate) fn record(store: &Store, attempt: &Attempt, jobs: &Jobs) -> Result<(), RuntimeError> {
    let caller = Caller { frame: attempt.frame, attempt: attempt.id };
    for Made { input, response } in &jobs.made {
        let job = schedule::job(input, response, Timestamp::now(), &TimeZone::system());
        if let Some(job) = job.filter(Scheduled::can_be_given) {
            store.request(caller, None, &RequestKind::Wait(External::Scheduled(job)))?;
        }
    }
    for job in &jobs.removed {
        store.withdraw_job(caller, job)?;
    }
    Ok(())
}
