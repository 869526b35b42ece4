//! Of which events a person wants to be told.

use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension, Row};

use crate::core::notifications::occasion::Occasion;
use crate::failpoint::Step;
use crate::store::database::codec::{self, from_json, path, path_text};
use crate::store::error::{Result, TxResult};
use crate::store::notifications::outbox::Outbox;

/// What a person wants to be told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Subscription {
    /// The config file that says so.
    pub(crate) config: PathBuf,
    pub(crate) events: Vec<Occasion>,
}

impl Outbox<'_> {
    /// Has the events noted from now on that `wanted` makes of the subscription that there is. `None`: no events. What was noted of
    /// others is not sent. `wanted` may be asked twice.
    pub(crate) fn subscribe(&self, wanted: impl Fn(Option<Subscription>) -> Option<Subscription>) -> Result<()> {
        // Most commands change nothing, and a write wakes everybody who watches the database.
        if self.0.query(|connection| {
            let before = subscription(connection)?;
            Ok(wanted(before.clone()) == before)
        })? {
            return Ok(());
        }
        self.0.write(Step::Subscribe, |connection| {
            let wanted = wanted(subscription(connection)?).filter(|it| !it.events.is_empty());
            connection.prepare_cached("DELETE FROM subscription")?.execute([])?;
            if let Some(Subscription { config, events }) = wanted {
                connection
                    .prepare_cached("INSERT INTO subscription (config, events) VALUES (?1, ?2)")?
                    .execute((path_text(&config)?, codec::json(&events, &[])?))?;
            }
            Ok(drop_unwanted(connection)?)
        })
    }
}

fn subscription(connection: &Connection) -> TxResult<Option<Subscription>> {
    let mut statement = connection.prepare_cached("SELECT config, events FROM subscription")?;
    let of = |row: &Row<'_>| Ok(Subscription { config: path(row, "config")?, events: from_json(row, "events")? });
    Ok(statement.query_row([], of).optional()?)
}

fn drop_unwanted(connection: &Connection) -> rusqlite::Result<()> {
    let sql = "UPDATE notifications SET status = 'outdated', ended = ?1 WHERE status = 'pending'
               AND event NOT IN (SELECT value FROM subscription, json_each(subscription.events))";
    connection.prepare_cached(sql)?.execute([codec::now()]).map(drop)
}
