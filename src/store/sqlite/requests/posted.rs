//! Questions that agents have posted as files.

use rusqlite::Connection;

use crate::core::events::log_entry::LogEntry;
use crate::core::id::{AttemptId, RequestId};
use crate::core::requests::question::Form;
use crate::core::requests::request::{Request, RequestKind};
use crate::store::sqlite::database::codec::{self, Id, id};
use crate::store::sqlite::tables::events;
use crate::store::sqlite::transaction::{Statements, TxResult};

/// Gives an open question the form that its file has now.
pub(super) fn reword(connection: &Connection, question: &Request, form: &Form) -> TxResult<()> {
    let kind = RequestKind::Ask(form.clone());
    connection.run("UPDATE requests SET detail = ?2 WHERE id = ?1", (Id(question.id), codec::json(&kind, &[])?))?;
    let entry = LogEntry::Reworded { request: question.id, detail: Box::new(kind) };
    events::append(connection, codec::now(), question.frame, &entry)
}

/// Records that the files of a posted question say that it is over, or never will.
pub(super) fn filed(connection: &Connection, question: &Request) -> TxResult<()> {
    connection.run("UPDATE requests SET filed = 1 WHERE id = ?1", [Id(question.id)])
}

/// The question of this attempt that was posted under the same id, if it was recorded before.
pub(super) fn recorded(connection: &Connection, attempt: AttemptId, form: &Form) -> TxResult<Option<RequestId>> {
    let Some(posted) = &form.posted else { return Ok(None) };
    let sql = "SELECT id FROM requests WHERE attempt = ?1 AND json_extract(detail, '$.ask.posted.id') = ?2";
    connection.read_first(sql, (Id(attempt), &posted.id), |row| id(row, "id"))
}
