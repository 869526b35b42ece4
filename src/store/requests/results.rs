//! The results of requests.

use rusqlite::{Connection, OptionalExtension};

use crate::core::id::FrameId;
use crate::core::requests::request::{External, Request, RequestKind, RequestResult};
use crate::core::requests::scheduled::{Scheduled, Scheduler};
use crate::core::waits::words;
use crate::store::database::codec::Id;
use crate::store::error::Fault;
use crate::store::tables::frames;

/// The result of a request, if it is over.
pub(crate) fn result(connection: &Connection, request: &Request) -> Result<Option<RequestResult>, Fault> {
    match &request.kind {
        RequestKind::Spawn { child, .. } => result_of_child(connection, *child),
        RequestKind::Ask(_) | RequestKind::Permission { .. } | RequestKind::Plan(_) => {
            let mut statement = connection.prepare_cached("SELECT answer FROM answers WHERE question = ?1")?;
            let answer = statement.query_row([Id(request.id)], |row| row.get(0)).optional()?;
            Ok(answer.map(RequestResult::Text))
        }
        RequestKind::Wait(_) if !request.state.is_resolved() => Ok(None),
        RequestKind::Wait(External::Scheduled(Scheduled { by: Scheduler::Wakeup { returns }, .. })) => {
            Ok(Some(RequestResult::Text(returns.clone())))
        }
        RequestKind::Wait(External::Scheduled(job)) => Ok(Some(RequestResult::Text(job.prompt.clone()))),
        RequestKind::Wait(wait) => Ok(Some(RequestResult::Text(words::result(wait, &request.progress)))),
    }
}

fn result_of_child(connection: &Connection, child: FrameId) -> Result<Option<RequestResult>, Fault> {
    let Some(frame) = frames::load(connection, child)? else {
        return Ok(Some(RequestResult::Failed("its frame is gone".to_owned())));
    };
    Ok(frame.result(frames::reply(connection, child)?))
}
