//! A connection that executes statements.

use std::ops::ControlFlow;

use rusqlite::Result as SqlResult;

use crate::store::sql::engine::fault::TxResult;
use crate::store::sql::engine::postgres::Client;
use crate::store::sql::engine::row::{Row, Values};

/// A connection to a database.
#[derive(Debug)]
pub(crate) enum Connection {
    Sqlite(rusqlite::Connection),
    Postgres(Client),
}

#[expect(clippy::needless_pass_by_value, reason = "callers write the values of a statement into the call")]
impl Connection {
    /// The SQLite connection, for operations that only SQLite has.
    pub(crate) fn sqlite(&self) -> Option<&rusqlite::Connection> {
        match self {
            Self::Sqlite(connection) => Some(connection),
            Self::Postgres(_) => None,
        }
    }

    /// The name of the state directory in the records; `None`: the directory contains the database.
    pub(crate) fn host(&self) -> Option<&str> {
        match self {
            Self::Sqlite(_) => None,
            Self::Postgres(client) => Some(&client.host),
        }
    }

    /// A statement that selects the names of the columns of the table `?1`, except columns whose values depend on the database:
    /// generated columns, row numbers and hosts.
    pub(crate) fn columns(&self) -> &'static str {
        match self {
            // This pragma reports generated columns as hidden.
            Self::Sqlite(_) => "SELECT name FROM pragma_table_info(?1) WHERE name NOT IN ('seq', 'host')",
            Self::Postgres(_) => {
                "SELECT column_name AS name FROM information_schema.columns WHERE table_schema = 'agent_cli'
                 AND table_name = ?1 AND column_name NOT IN ('seq', 'host') AND is_generated = 'NEVER' ORDER BY ordinal_position"
            }
        }
    }

    /// Checks references at the end of this transaction, not after each statement.
    pub(crate) fn defer_references(&self) -> TxResult<()> {
        match self {
            Self::Sqlite(connection) => Ok(connection.pragma_update(None, "defer_foreign_keys", true)?),
            Self::Postgres(client) => client.batch("SET CONSTRAINTS ALL DEFERRED"),
        }
    }

    /// Executes a statement and returns how many rows it changed.
    pub(crate) fn change(&self, sql: &str, values: impl Values) -> TxResult<usize> {
        match self {
            Self::Sqlite(connection) => Ok(connection.prepare_cached(sql)?.execute(values.list().as_slice())?),
            Self::Postgres(client) => client.change(sql, &values.list()),
        }
    }

    pub(crate) fn run(&self, sql: &str, values: impl Values) -> TxResult<()> {
        self.change(sql, values).map(drop)
    }

    /// Executes several statements without parameters.
    pub(crate) fn batch(&self, sql: &str) -> TxResult<()> {
        match self {
            Self::Sqlite(connection) => Ok(connection.execute_batch(sql)?),
            Self::Postgres(client) => client.batch(sql),
        }
    }

    /// Calls `read` for each row until `read` breaks.
    pub(crate) fn each(
        &self,
        sql: &str,
        values: impl Values,
        mut read: impl FnMut(&Row<'_>) -> SqlResult<ControlFlow<()>>,
    ) -> TxResult<()> {
        match self {
            Self::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql)?;
                let mut rows = statement.query(values.list().as_slice())?;
                while let Some(row) = rows.next()? {
                    if read(&Row::Sqlite(row))?.is_break() {
                        break;
                    }
                }
            }
            Self::Postgres(client) => {
                for row in client.rows(sql, &values.list())? {
                    if read(&Row::Postgres(&row))?.is_break() {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Announces a statement that reads and is executed next. A server then executes several of them in one round trip.
    pub(crate) fn send_ahead(&self, sql: &str, values: impl Values) -> TxResult<()> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(client) => client.send_ahead(sql, &values.list()),
        }
    }

    /// Whether the statement has a row.
    pub(crate) fn finds(&self, sql: &str, values: impl Values) -> TxResult<bool> {
        Ok(self.read_first(sql, values, |_| Ok(()))?.is_some())
    }

    /// The row of a statement that always has one.
    pub(crate) fn read_one<T>(
        &self,
        sql: &str,
        values: impl Values,
        read: impl FnOnce(&Row<'_>) -> SqlResult<T>,
    ) -> TxResult<T> {
        Ok(self.read_first(sql, values, read)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?)
    }

    pub(crate) fn read_first<T>(
        &self,
        sql: &str,
        values: impl Values,
        read: impl FnOnce(&Row<'_>) -> SqlResult<T>,
    ) -> TxResult<Option<T>> {
        let (mut read, mut found) = (Some(read), None);
        self.each(sql, values, |row| {
            found = read.take().map(|read| read(row)).transpose()?;
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    pub(crate) fn read_all<T>(
        &self,
        sql: &str,
        values: impl Values,
        mut read: impl FnMut(&Row<'_>) -> SqlResult<T>,
    ) -> TxResult<Vec<T>> {
        let mut found = Vec::new();
        self.each(sql, values, |row| {
            found.push(read(row)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }
}
