//! Reads the rows of attempts.

use std::path::PathBuf;
use std::time::Duration;

use crate::core::agent::usage::context_size::Context;
use crate::core::agent::usage::{Spending, Totals, Usage};
use crate::store::records::Attempt;
use crate::store::sql::database::codec::{count, id, maybe_id, maybe_json, maybe_time, time};
use crate::store::sql::engine::Row;

pub(crate) fn from_row(row: &Row<'_>) -> rusqlite::Result<Attempt> {
    Ok(Attempt {
        id: id(row, "id")?,
        session: id(row, "session")?,
        frame: id(row, "frame")?,
        resumed: maybe_id(row, "resumed")?,
        waited: maybe_json(row, "waited")?,
        output_from: count(row, "output_from")?,
        errors_from: count(row, "errors_from")?,
        runner: row.get("runner")?,
        began: time(row, "began")?,
        ended: maybe_time(row, "ended")?,
        ran: row.get::<_, Option<i64>>("ran")?.map(|ran| Duration::from_millis(ran.unsigned_abs())),
        lingered: row.get("lingered")?,
        lingered_for: Duration::from_millis(count(row, "lingered_for")?),
        lingers: maybe_time(row, "lingers")?.zip(maybe_time(row, "lingers_until")?),
        outcome: row.get("outcome")?,
        message: row.get("message")?,
        kept: row.get("kept")?,
        spending: spending(row)?,
        total: totals(row)?,
        model: row.get("model")?,
        version: row.get("version")?,
        leaves: row.get("leaves")?,
        transcript: row.get::<_, Option<String>>("transcript")?.map(PathBuf::from),
        mode: row.get("mode")?,
        notice: row.get("notice")?,
        denied: maybe_json(row, "denied")?.unwrap_or_default(),
        summarises: maybe_id(row, "summarises")?,
        context: context(row)?,
        host: None,
        ran_here: false,
    })
}

fn context(row: &Row<'_>) -> rusqlite::Result<Option<Context>> {
    let whole = |name: &str| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(name)?.map(i64::unsigned_abs));
    let (tokens, window) = (whole("context")?, whole("context_window")?);
    Ok(tokens.zip(window).map(|(tokens, window)| Context { tokens, window }))
}

/// What one attempt spent, from columns of these names.
fn spending(row: &Row<'_>) -> rusqlite::Result<Spending> {
    Ok(Spending {
        usage: usage(row)?,
        requests: count(row, "requests")?,
        usd: row.get("cost_usd")?,
        estimated: row.get("estimated")?,
    })
}

/// What the session of an attempt had spent when it ended.
fn totals(row: &Row<'_>) -> rusqlite::Result<Totals> {
    Ok(Totals { usd: row.get("total_cost_usd")?, usage: maybe_json(row, "total_usage")? })
}

/// Tokens, from columns of these names.
pub(crate) fn usage(row: &Row<'_>) -> rusqlite::Result<Usage> {
    Ok(Usage {
        input_tokens: count(row, "input_tokens")?,
        output_tokens: count(row, "output_tokens")?,
        cache_creation_input_tokens: count(row, "cache_creation_input_tokens")?,
        cache_read_input_tokens: count(row, "cache_read_input_tokens")?,
    })
}
