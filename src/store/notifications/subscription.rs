//! Of which events a person wants to be told.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension};

use crate::core::notifications::occasion::Occasion;
use crate::failpoint::Step;
use crate::store::database::codec::{self, from_json, path, path_text};
use crate::store::database::store::Store;
use crate::store::error::Result;

impl Store {
    /// Has these events noted from now on, because the config file at `config` says so. What was noted of others is not sent.
    pub(crate) fn subscribe(&self, config: &Path, events: &[Occasion]) -> Result<()> {
        if self.subscription()?.is_some_and(|(by, wanted)| by == config && wanted == events) {
            return Ok(());
        }
        self.write(Step::Subscribe, |connection| {
            connection.prepare_cached("DELETE FROM subscription")?.execute([])?;
            if !events.is_empty() {
                connection
                    .prepare_cached("INSERT INTO subscription (config, events) VALUES (?1, ?2)")?
                    .execute((path_text(config)?, codec::json(&events, &[])?))?;
            }
            Ok(drop_unwanted(connection)?)
        })
    }

    /// The config file that says which events are noted, and which they are.
    pub(crate) fn subscription(&self) -> Result<Option<(PathBuf, Vec<Occasion>)>> {
        self.query(|connection| {
            let mut statement = connection.prepare_cached("SELECT config, events FROM subscription")?;
            Ok(statement.query_row([], |row| Ok((path(row, "config")?, from_json(row, "events")?))).optional()?)
        })
    }
}

fn drop_unwanted(connection: &Connection) -> rusqlite::Result<()> {
    let sql = "UPDATE notifications SET status = 'outdated', ended = ?1 WHERE status = 'pending'
               AND event NOT IN (SELECT value FROM subscription, json_each(subscription.events))";
    connection.prepare_cached(sql)?.execute([codec::now()]).map(drop)
}
