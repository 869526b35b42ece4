//! Jobs that an attempt has printed and no hook has recorded: hooks may be switched off, or the hook was killed.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::RuntimeError;
use crate::claude::schedule;
use crate::core::jobs::{Jobs, Made};
use crate::core::request::{External, Wish};
use crate::core::scheduled::Scheduled;
use crate::store::{Attempt, Caller, Store};

/// Records the jobs of an attempt, so that its agent has not replied before they were due.
pub(super) fn record(store: &Store, attempt: &Attempt, jobs: &Jobs) -> Result<(), RuntimeError> {
    let caller = Caller { frame: attempt.frame, attempt: attempt.id };
    for Made { input, response } in &jobs.made {
        let job = schedule::job(input, response, Timestamp::now(), &TimeZone::system());
        if let Some(job) = job.filter(Scheduled::can_be_told) {
            store.request_job(caller, &Wish::Wait(External::Scheduled(job)))?;
        }
    }
    for job in &jobs.removed {
        store.withdraw_job(caller, job)?;
    }
    Ok(())
}
