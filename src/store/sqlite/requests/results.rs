//! The results of requests.

use rusqlite::Connection;

use crate::core::id::{FrameId, RequestId};
use crate::core::requests::question_form::{Batch, Form};
use crate::core::requests::request::{BatchPart, External, Request, RequestKind, RequestResult};
use crate::core::waits::scheduled::{Scheduled, Scheduler};
use crate::core::waits::words;
use crate::store::sqlite::database::codec::Id;
use crate::store::sqlite::tables::frames;
use crate::store::sqlite::tables::requests::{self, requests};
use crate::store::sqlite::transaction::{Statements, TxResult};

/// The result of a request, if it has one.
pub(crate) fn result(connection: &Connection, request: &Request) -> TxResult<Option<RequestResult>> {
    match &request.kind {
        RequestKind::Spawn { child, .. } => result_of_child(connection, *child),
        RequestKind::Ask(Form { batch: Some(batch), .. }) => result_of_batch(connection, request, batch),
        RequestKind::Ask(_) | RequestKind::Permission { .. } | RequestKind::Plan(_) => {
            let as_result = |said| match &request.kind {
                RequestKind::Ask(form) if request.state.is_expired() && form.default.is_none() => {
                    RequestResult::Unanswered { said, seconds: form.seconds_since(request.made) }
                }
                RequestKind::Ask(_) if request.state.is_expired() => RequestResult::Default(said),
                _ => RequestResult::Text(said),
            };
            Ok(answer(connection, request.id)?.map(as_result))
        }
        RequestKind::Wait(_) if !request.state.is_resolved() => Ok(None),
        RequestKind::Wait(External::Scheduled(Scheduled { by: Scheduler::Wakeup { returns }, .. })) => {
            Ok(Some(RequestResult::Text(returns.clone())))
        }
        RequestKind::Wait(External::Scheduled(job)) => Ok(Some(RequestResult::Text(job.prompt.clone()))),
        RequestKind::Wait(wait) => Ok(Some(RequestResult::Text(words::result(wait, &request.progress)))),
    }
}

/// The outcome of a question: its answer, or the text that its agent gets after it has expired.
fn answer(connection: &Connection, question: RequestId) -> TxResult<Option<String>> {
    connection.read_first("SELECT answer FROM answers WHERE question = ?1", [Id(question)], |row| row.get(0))
}

/// Each question of a batch has the joined result of all of them.
fn result_of_batch(connection: &Connection, request: &Request, batch: &Batch) -> TxResult<Option<RequestResult>> {
    let sql = requests!(
        "WHERE r.attempt = ?1 AND r.status <> 'withdrawn' AND json_extract(r.detail, '$.ask.batch.id') = ?2 ORDER BY r.seq"
    );
    let mut over = Vec::new();
    for question in requests::all(connection, sql, (Id(request.attempt), Id(batch.id)))? {
        let expired = question.state.is_expired();
        let Some(said) = answer(connection, question.id)? else { return Ok(None) };
        if let RequestKind::Ask(form) = question.kind {
            let answer = if expired { form.default.clone() } else { Some(said) };
            over.push(BatchPart { form, answer, expired });
        }
    }
    Ok(Some(RequestResult::of_batch(&over)))
}

fn result_of_child(connection: &Connection, child: FrameId) -> TxResult<Option<RequestResult>> {
    let Some(frame) = frames::load(connection, child)? else {
        return Ok(Some(RequestResult::Failed("that agent no longer exists".to_owned())));
    };
    Ok(frame.result(frames::reply(connection, child)?))
}
