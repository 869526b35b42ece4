//! How values are stored in the database: ids and paths as text, times as integer milliseconds, the rest as JSON.

use std::error::Error;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use jiff::Timestamp;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::store::error::StoreError;
use crate::store::sql::engine::{Connection, Row, TxResult};

/// An id, as text.
#[derive(Clone, Copy)]
pub(crate) struct Id<T>(pub(crate) T);

/// A time, as milliseconds.
#[derive(Clone, Copy)]
pub(crate) struct At(pub(crate) Timestamp);

/// Anything else, as JSON.
pub(crate) struct Json<T>(pub(crate) T);

/// The current time, in the resolution of the database.
pub(crate) fn now() -> At {
    let now = Timestamp::now();
    At(Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now))
}

/// A path as text.
pub(crate) fn path_text(path: &Path) -> Result<&str, StoreError> {
    path.to_str().ok_or_else(|| StoreError::NotUtf8(path.to_owned()))
}

/// The key of a program of this host.
pub(crate) fn on_host(connection: &Connection, program: &Path) -> TxResult<String> {
    let path = path_text(program)?;
    Ok(connection.host().map_or_else(|| path.to_owned(), |host| format!("{host}:{path}")))
}

/// `value` as JSON. `path` is a path within it, the only part that may not be representable as text.
pub(crate) fn json<T: Serialize>(value: &T, paths: &[&Path]) -> TxResult<String> {
    for path in paths {
        path_text(path)?;
    }
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()).into())
}

pub(crate) fn id<T>(row: &Row<'_>, column: &str) -> rusqlite::Result<T>
where
    Id<T>: FromSql,
{
    Ok(row.get::<_, Id<T>>(column)?.0)
}

pub(crate) fn maybe_id<T>(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<T>>
where
    Id<T>: FromSql,
{
    Ok(row.get::<_, Option<Id<T>>>(column)?.map(|id| id.0))
}

pub(crate) fn time(row: &Row<'_>, column: &str) -> rusqlite::Result<Timestamp> {
    Ok(row.get::<_, At>(column)?.0)
}

pub(crate) fn maybe_time(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<At>>(column)?.map(|at| at.0))
}

pub(crate) fn from_json<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> rusqlite::Result<T> {
    Ok(row.get::<_, Json<T>>(column)?.0)
}

pub(crate) fn maybe_json<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<T>> {
    Ok(row.get::<_, Option<Json<T>>>(column)?.map(|json| json.0))
}

pub(crate) fn path(row: &Row<'_>, column: &str) -> rusqlite::Result<PathBuf> {
    Ok(row.get::<_, String>(column)?.into())
}

/// SQLite's integers are signed. No count here comes near the limit.
pub(crate) fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The inverse. Counts are not negative.
pub(crate) fn count(row: &Row<'_>, column: &str) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or(0))
}

impl<T: FromStr> FromSql for Id<T>
where
    T::Err: Error + Send + Sync + 'static,
{
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_str()?.parse().map(Self).map_err(|error| FromSqlError::Other(Box::new(error)))
    }
}

impl<T: Display> ToSql for Id<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.0.to_string().into())
    }
}

impl FromSql for At {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let at = Timestamp::from_millisecond(value.as_i64()?);
        at.map(Self).map_err(|error| FromSqlError::Other(Box::new(error)))
    }
}

impl ToSql for At {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.0.as_millisecond().into())
    }
}

impl<T: DeserializeOwned> FromSql for Json<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        serde_json::from_str(value.as_str()?).map(Self).map_err(|error| FromSqlError::Other(Box::new(error)))
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;
    use crate::core::chain::frame::Task;
    use crate::store::testing::{new, store};

    #[test]
    fn a_path_that_is_no_text_is_refused() {
        let (_temp, store) = store();
        let bad = PathBuf::from(OsStr::from_bytes(b"/srv/\xff"));
        let mut frames = [new("a"), new("b"), new("c")];
        frames[0].cwd.clone_from(&bad);
        frames[1].task = Task::File(bad.clone());
        frames[2].launch.config_dir = Some(bad.clone());
        for frame in &frames {
            let error = store.create_root(frame).unwrap_err();
            assert!(matches!(&error, StoreError::NotUtf8(path) if *path == bad), "{error}");
        }
        assert!(store.roots().is_empty());
    }

    #[test]
    fn times_are_kept_to_the_millisecond() {
        let At(now) = now();
        assert_eq!(now.as_nanosecond() % 1_000_000, 0);
    }
}
