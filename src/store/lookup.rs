//! What a person means by the beginning of an id.

use rusqlite::Connection;

use super::codec::{Id, id};
use super::error::Fault;
use super::{Result, Store, StoreError};
use crate::core::id::{FrameId, IdPrefix, RequestId};

/// What an id names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A frame, by its own id or that of a session it had.
    Frame(FrameId),
    /// A request.
    Request(RequestId),
}

/// How many candidates are named to a person.
const MOST: usize = 10;

// Hexadecimal digits and the hyphen sort before `g`: the range holds exactly what begins with the prefix, and the index
// finds it. A frame with many sessions must not crowd out others, hence the grouping.
const FRAMES: &str = "SELECT id AS matched, id FROM frames WHERE id >= ?1 AND id < ?1 || 'g' ORDER BY id LIMIT 11";
const SESSIONS: &str = "SELECT min(session) AS matched, frame AS id FROM attempts
     WHERE session >= ?1 AND session < ?1 || 'g' GROUP BY frame ORDER BY 1 LIMIT 11";
const REQUESTS: &str = "SELECT id AS matched, id FROM requests WHERE id >= ?1 AND id < ?1 || 'g' ORDER BY id LIMIT 11";

impl Store {
    /// What a person means by `prefix`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unknown`], [`StoreError::Ambiguous`], or a database that cannot be read.
    pub fn lookup(&self, prefix: &IdPrefix) -> Result<Target> {
        self.read(|connection| {
            let mut found: Vec<(Target, String)> = Vec::new();
            found.extend(matches(connection, FRAMES, prefix, Target::Frame)?);
            found.extend(matches(connection, SESSIONS, prefix, Target::Frame)?);
            found.extend(matches(connection, REQUESTS, prefix, Target::Request)?);
            let Some((first, id)) = found.first().cloned() else {
                return Err(StoreError::Unknown(prefix.as_str().to_owned()).into());
            };
            if id == prefix.as_str() || found.iter().all(|(target, _)| *target == first) {
                return Ok(first);
            }
            let mut seen: Vec<Target> = Vec::new();
            found.retain(|(target, _)| {
                let new = !seen.contains(target);
                seen.push(*target);
                new
            });
            Err(StoreError::Ambiguous(found.into_iter().map(|(_, id)| id).take(MOST).collect()).into())
        })
    }
}

fn matches<T>(
    connection: &Connection,
    sql: &str,
    prefix: &IdPrefix,
    target: fn(T) -> Target,
) -> std::result::Result<Vec<(Target, String)>, Fault>
where
    Id<T>: rusqlite::types::FromSql,
{
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_map([prefix.as_str()], |row| Ok((target(id(row, "id")?), row.get("matched")?)))?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}
