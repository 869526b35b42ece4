//! Jobs: prompts for an agent at a later time, without a call that waits for them.

use rusqlite::Connection;

use crate::core::id::{FrameId, RequestId};
use crate::core::requests::request::{Request, RequestKind};
use crate::core::requests::scheduled::{Scheduled, Scheduler};
use crate::failpoint::Step;
use crate::store::database::codec::{self, Id, from_json, id};
use crate::store::database::store::Store;
use crate::store::error::Fault;
use crate::store::error::Result;
use crate::store::requests::withdraw;
use crate::store::tables::caller::Caller;
use crate::store::tables::requests;

impl Store {
    /// The jobs of a frame whose prompts have not been delivered.
    pub fn jobs(&self, frame: FrameId) -> Result<Vec<Request>> {
        self.query(|connection| jobs(connection, frame))
    }

    /// Withdraws a job that the calling agent has removed. One that is not known changes nothing.
    ///
    /// # Errors
    ///
    /// [`StoreError::StaleCaller`](crate::store::StoreError::StaleCaller), or a database that cannot be written.
    pub fn withdraw_job(&self, caller: Caller, job: &str) -> Result<()> {
        self.write(Step::WithdrawCalls, |connection| {
            requests::check(connection, caller)?;
            let is_it = |request: &&Request| match request.kind.scheduled().map(|scheduled| &scheduled.by) {
                Some(Scheduler::Job { id }) => id == job,
                _ => false,
            };
            let jobs = jobs(connection, caller.frame)?;
            let now = codec::now();
            jobs.iter().filter(is_it).try_for_each(|job| withdraw::withdraw(connection, now, job))
        })
    }
}

/// The request that has recorded a job, whatever became of it.
pub(super) fn recorded(
    connection: &Connection,
    frame: FrameId,
    wanted: &Scheduled,
) -> std::result::Result<Option<RequestId>, Fault> {
    let mut statement =
        connection.prepare_cached("SELECT id, detail FROM requests WHERE frame = ?1 AND kind = 'wait' ORDER BY seq")?;
    let known =
        statement.query_map([Id(frame)], |row| Ok((id(row, "id")?, from_json::<RequestKind>(row, "detail")?)))?;
    for known in known {
        let (request, kind) = known?;
        if kind.scheduled().is_some_and(|known| known.is_job() && known.by == wanted.by) {
            return Ok(Some(request));
        }
    }
    Ok(None)
}

fn jobs(connection: &Connection, frame: FrameId) -> std::result::Result<Vec<Request>, Fault> {
    let mut jobs = requests::pending(connection, frame)?;
    jobs.retain(|request| request.kind.is_job());
    Ok(jobs)
}
