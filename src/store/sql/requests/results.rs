//! The results of requests.

use std::collections::HashSet;

use crate::core::chain::frame::Frame;
use crate::core::chain::group::{self, GroupMember};
use crate::core::id::{FrameId, RequestId};
use crate::core::requests::question_form::{Batch, Form};
use crate::core::requests::request::{BatchPart, External, Request, RequestKind, RequestResult};
use crate::core::requests::spawn_result::{ChildResult, SpawnResult};
use crate::core::waits::scheduled::{Scheduled, Scheduler};
use crate::core::waits::words;
use crate::store::sql::database::codec::{Id, path};
use crate::store::sql::engine::{Connection, TxResult};
use crate::store::sql::requests::groups;
use crate::store::sql::tables::frames;
use crate::store::sql::tables::requests::{self, requests};

/// The result of a request, if it has one.
pub(crate) fn result(connection: &Connection, request: &Request) -> TxResult<Option<RequestResult>> {
    match &request.kind {
        RequestKind::Spawn { child, json, .. } => {
            let joined = match request.kind.is_background() {
                true => requests::joined_members(connection, request.frame, *child)?,
                false => HashSet::new(),
            };
            result_of_child(connection, *child, *json, &joined)
        }
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
    let sql = requests!("WHERE r.attempt = ?1 AND r.status <> 'withdrawn' AND r.batch = ?2 ORDER BY r.seq");
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

/// `joined`: members of a group whose results its caller has.
fn result_of_child(
    connection: &Connection,
    child: FrameId,
    json: bool,
    joined: &HashSet<FrameId>,
) -> TxResult<Option<RequestResult>> {
    let Some(frame) = frames::load(connection, child)? else {
        return Ok(Some(RequestResult::Failed("that agent no longer exists".to_owned())));
    };
    // The stop of a caller also stops its groups, before they can say what each member has done.
    let was_cut_short = frame.task.is_group() && frame.for_its_parent().was_stopped();
    let result = if joined.is_empty() && !was_cut_short {
        frame.result(frames::reply(connection, child)?)
    } else {
        let members = members(connection, &frame, joined)?;
        match frame.result(Some(group::text(&members))) {
            // Those that failed were joined.
            Some(RequestResult::PartlyFailed(text)) if members.iter().all(|member| member.failure().is_none()) => {
                Some(RequestResult::Text(text))
            }
            result => result,
        }
    };
    match result {
        Some(result) if json => Ok(Some(spawn_result(connection, &frame, joined)?.in_place_of(&result))),
        result => Ok(result),
    }
}

/// The members of a group without those that were joined.
fn members(connection: &Connection, group: &Frame, joined: &HashSet<FrameId>) -> TxResult<Vec<GroupMember>> {
    let mut members = groups::members(connection, group.id, &group.task)?;
    members.retain(|member| !joined.contains(&member.id));
    Ok(members)
}

fn spawn_result(connection: &Connection, frame: &Frame, joined: &HashSet<FrameId>) -> TxResult<SpawnResult> {
    if !frame.task.is_group() {
        return Ok(SpawnResult::One(Box::new(child_result(connection, frame)?)));
    }
    let members = members(connection, frame, joined)?.into_iter();
    let of_member = |member: GroupMember| child_result(connection, &frames::existing(connection, member.id)?);
    Ok(SpawnResult::Several(members.map(of_member).collect::<TxResult<_>>()?))
}

fn child_result(connection: &Connection, frame: &Frame) -> TxResult<ChildResult> {
    let sql = "SELECT transcript FROM attempts WHERE frame = ?1 AND transcript IS NOT NULL ORDER BY seq DESC LIMIT 1";
    let transcript = connection.read_first(sql, [Id(frame.id)], |row| path(row, "transcript"))?;
    Ok(ChildResult::new(frame, frames::reply(connection, frame.id)?, transcript))
}
