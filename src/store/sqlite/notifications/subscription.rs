//! Of which events a person wants to be told.

use rusqlite::{Connection, OptionalExtension, Row};

use crate::failpoint::Step;
use crate::store::error::Result;
use crate::store::outbox::{Subscribing, Subscription};
use crate::store::sqlite::database::codec::{self, from_json, path, path_text};
use crate::store::sqlite::database::connection::Sqlite;
use crate::store::sqlite::fault::TxResult;

pub(in crate::store::sqlite) fn subscribe(store: &Sqlite, to: &Subscribing) -> Result<()> {
    // Most commands change nothing, and a write wakes everybody who watches the database.
    if store.query(|connection| {
        let before = subscription(connection)?;
        Ok(to.apply(before.clone()) == before)
    })? {
        return Ok(());
    }
    store.write(Step::Subscribe, |connection| {
        let wanted = to.apply(subscription(connection)?).filter(|it| !it.events.is_empty());
        connection.prepare_cached("DELETE FROM subscription")?.execute([])?;
        if let Some(Subscription { config, events }) = wanted {
            connection
                .prepare_cached("INSERT INTO subscription (config, events) VALUES (?1, ?2)")?
                .execute((path_text(&config)?, codec::json(&events, &[])?))?;
        }
        Ok(drop_unwanted(connection)?)
    })
}

pub(in crate::store::sqlite) fn subscription(connection: &Connection) -> TxResult<Option<Subscription>> {
    let mut statement = connection.prepare_cached("SELECT config, events FROM subscription")?;
    let of = |row: &Row<'_>| Ok(Subscription { config: path(row, "config")?, events: from_json(row, "events")? });
    Ok(statement.query_row([], of).optional()?)
}

fn drop_unwanted(connection: &Connection) -> rusqlite::Result<()> {
    let sql = "UPDATE notifications SET status = 'outdated', ended = ?1 WHERE status = 'pending'
               AND event NOT IN (SELECT value FROM subscription, json_each(subscription.events))";
    connection.prepare_cached(sql)?.execute([codec::now()]).map(drop)
}
