//! Jobs: prompts for an agent at a later time, without a call that waits for them.

use crate::core::id::FrameId;
use crate::core::requests::request::{External, Request, RequestKind};
use crate::core::waits::scheduled::{Scheduled, Scheduler};
use crate::store::records::Caller;
use crate::store::sql::database::codec::{At, Id, from_json};
use crate::store::sql::engine::{Connection, TxResult};
use crate::store::sql::requests::withdraw;
use crate::store::sql::tables::requests;

/// Records a job, unless it is recorded already.
pub(crate) fn record(connection: &Connection, now: At, caller: Caller, job: &Scheduled) -> TxResult<()> {
    if !is_recorded(connection, caller.frame, job)? {
        let kind = RequestKind::Wait(External::Scheduled(job.clone()));
        requests::insert(connection, now, caller, None, &kind)?;
    }
    Ok(())
}

/// Withdraws a job that the calling agent has removed. An unknown job changes nothing.
pub(crate) fn remove(connection: &Connection, now: At, caller: Caller, job: &str) -> TxResult<()> {
    let is_it = |request: &&Request| match request.kind.scheduled().map(|scheduled| &scheduled.by) {
        Some(Scheduler::Job { id }) => id == job,
        _ => false,
    };
    let jobs = jobs(connection, caller.frame)?;
    jobs.iter().filter(is_it).try_for_each(|job| withdraw::withdraw(connection, now, job))
}

/// Whether a job was recorded before, in any state.
fn is_recorded(connection: &Connection, frame: FrameId, wanted: &Scheduled) -> TxResult<bool> {
    let sql = "SELECT detail FROM requests WHERE frame = ?1 AND kind = 'wait' ORDER BY seq";
    let known: Vec<RequestKind> = connection.read_all(sql, [Id(frame)], |row| from_json(row, "detail"))?;
    let is_wanted = |known: &Scheduled| known.is_job() && known.by == wanted.by;
    Ok(known.iter().any(|known| known.scheduled().is_some_and(is_wanted)))
}

/// The jobs of a frame whose prompts have not been delivered.
pub(super) fn jobs(connection: &Connection, frame: FrameId) -> TxResult<Vec<Request>> {
    let mut jobs = requests::pending(connection, frame)?;
    jobs.retain(|request| request.kind.is_job());
    Ok(jobs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::PrintedRequests;
    use crate::store::testing::store;

    #[test]
    fn a_job_is_recorded_once_and_withdrawn_when_its_agent_removes_it() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let job = |id: &str| Scheduled {
            at: "2100-01-01T00:00:00Z".parse().unwrap(),
            prompt: "Look.".to_owned(),
            by: Scheduler::Job { id: id.to_owned() },
        };
        let complete = |made: &[Scheduled], removed: &[String]| {
            store.complete_requests(caller, PrintedRequests { made, removed, ..PrintedRequests::default() }).unwrap();
            jobs(&store.database().connection, caller.frame).unwrap().len()
        };
        let both = [job("a"), job("b")];
        assert_eq!(complete(&both, &[]), 2);
        assert_eq!(complete(&both, &[]), 2, "the same output is read again");
        assert_eq!(complete(&both, &["a".to_owned(), "unknown".to_owned()]), 1);
        assert_eq!(complete(&both, &[]), 1, "one that was removed does not come back");
    }
}
