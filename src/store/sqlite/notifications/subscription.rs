//! Of which events a person wants to be told.

use rusqlite::{Connection, Row};

use crate::failpoint::Step;
use crate::store::error::Result;
use crate::store::outbox::{Subscribing, Subscription};
use crate::store::sqlite::database::codec::{self, from_json, path, path_text};
use crate::store::sqlite::database::connection::Sqlite;
use crate::store::sqlite::transaction::{Statements, TxResult};

pub(crate) fn subscribe(store: &Sqlite, to: &Subscribing) -> Result<()> {
    // Most commands change nothing, and a write wakes everybody who watches the database.
    if store.query(|connection| {
        let before = subscription(connection)?;
        Ok(to.apply(before.clone()) == before)
    })? {
        return Ok(());
    }
    store.write(Step::Subscribe, |connection| {
        let wanted = to.apply(subscription(connection)?).filter(|it| !it.events.is_empty());
        connection.run("DELETE FROM subscription", [])?;
        if let Some(Subscription { config, events }) = wanted {
            connection.run(
                "INSERT INTO subscription (config, events) VALUES (?1, ?2)",
                (path_text(&config)?, codec::json(&events, &[])?),
            )?;
        }
        drop_unwanted(connection)
    })
}

pub(crate) fn subscription(connection: &Connection) -> TxResult<Option<Subscription>> {
    let of = |row: &Row<'_>| Ok(Subscription { config: path(row, "config")?, events: from_json(row, "events")? });
    connection.read_first("SELECT config, events FROM subscription", [], of)
}

fn drop_unwanted(connection: &Connection) -> TxResult<()> {
    let sql = "UPDATE notifications SET status = 'outdated', ended = ?1 WHERE status = 'pending'
               AND event NOT IN (SELECT value FROM subscription, json_each(subscription.events))";
    connection.run(sql, [codec::now()])
}
