//! Questions that agents have posted as files.

use rusqlite::{Connection, OptionalExtension};
use serde_json::json;

use crate::core::id::{AttemptId, RequestId};
use crate::core::requests::question::Form;
use crate::core::requests::request::RequestKind;
use crate::core::requests::state::RequestState;
use crate::failpoint::Step;
use crate::store::database::codec::{self, Id, id};
use crate::store::database::store::Store;
use crate::store::error::{Fault, Result, StoreError};
use crate::store::tables::{events, requests};

impl Store {
    /// Gives an open question the form that its file has now. One that was answered in the meantime stays as it was asked.
    ///
    /// # Errors
    ///
    /// The question does not exist, or the database cannot be written.
    pub fn reword(&self, question: RequestId, form: &Form) -> Result<()> {
        self.write(Step::Reword, |connection| {
            let request = requests::load(connection, question)?.ok_or(StoreError::UnknownRequest(question))?;
            if request.state != RequestState::Open {
                return Ok(());
            }
            let kind = RequestKind::Ask(form.clone());
            let mut statement = connection.prepare_cached("UPDATE requests SET detail = ?2 WHERE id = ?1")?;
            statement.execute((Id(question), codec::json(&kind, &[])?))?;
            let detail = json!({"request": question, "detail": kind});
            events::append(connection, codec::now(), request.frame, "reworded", &detail)
        })
    }
}

/// The question of this attempt that was posted under the same id, if it was recorded before.
pub(super) fn recorded(
    connection: &Connection,
    attempt: AttemptId,
    form: &Form,
) -> std::result::Result<Option<RequestId>, Fault> {
    let Some(posted) = &form.posted else { return Ok(None) };
    let sql = "SELECT id FROM requests WHERE attempt = ?1 AND json_extract(detail, '$.ask.posted.id') = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_row((Id(attempt), &posted.id), |row| id(row, "id")).optional()?)
}
