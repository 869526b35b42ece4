//! What a person means by the beginning of an id.

use rusqlite::Connection;

use super::codec::id;
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

// Hexadecimal digits and the hyphen sort before `g`: the ranges hold exactly what begins with the prefix, and indexes
// find it. A frame with many sessions must not crowd out others, hence the grouping. It is one statement because
// preparing a statement is most of what a poll does.
const MATCHES: &str = "SELECT * FROM (SELECT 0 AS is_request, id AS matched, id FROM frames
       WHERE id >= ?1 AND id < ?1 || 'g' ORDER BY id LIMIT 11)
     UNION ALL SELECT * FROM (SELECT 0, min(session), frame FROM attempts
       WHERE session >= ?1 AND session < ?1 || 'g' GROUP BY frame ORDER BY 2 LIMIT 11)
     UNION ALL SELECT * FROM (SELECT 1, id, id FROM requests
       WHERE id >= ?1 AND id < ?1 || 'g' ORDER BY id LIMIT 11)";

impl Store {
    /// What a person means by `prefix`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unknown`], [`StoreError::Ambiguous`], or a database that cannot be read.
    pub fn lookup(&self, prefix: &IdPrefix) -> Result<Target> {
        self.read(|connection| {
            let mut found = matches(connection, prefix)?;
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

/// What begins with the prefix, and the id that does.
fn matches(connection: &Connection, prefix: &IdPrefix) -> std::result::Result<Vec<(Target, String)>, Fault> {
    let mut statement = connection.prepare_cached(MATCHES)?;
    let found = statement.query_map([prefix.as_str()], |row| {
        let target = match row.get("is_request")? {
            true => Target::Request(id(row, "id")?),
            false => Target::Frame(id(row, "id")?),
        };
        Ok((target, row.get("matched")?))
    })?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::SessionId;
    use crate::core::outcome::Outcome;
    use crate::store::NewAttempt;
    use crate::store::testing::{attempt, new, store};

    fn prefix(text: &str) -> IdPrefix {
        text.parse().unwrap()
    }

    fn session(text: &str) -> SessionId {
        text.parse().map(SessionId).unwrap()
    }

    #[test]
    fn a_frame_goes_by_its_id_and_by_that_of_each_of_its_sessions() {
        let (_temp, store) = store();
        let frame = store.root();
        let first = NewAttempt { session: frame.into(), ..attempt(vec![]) };
        store.begin(frame, &first).unwrap();
        store.end(crate::store::Caller { frame, attempt: first.session }, &Outcome::Started);
        let second = store.start(frame).attempt;
        for id in [frame.to_string(), frame.short(), second.to_string(), second.short()] {
            assert_eq!(store.lookup(&prefix(&id)).unwrap(), Target::Frame(frame), "{id}");
        }
    }

    #[test]
    fn a_request_goes_by_its_id() {
        let (_temp, store) = store();
        let (_, question) = store.asking("When?");
        assert_eq!(store.lookup(&prefix(&question.short())).unwrap(), Target::Request(question));
    }

    #[test]
    fn what_nothing_has_is_unknown() {
        let (_temp, store) = store();
        let error = store.lookup(&prefix("FFFF1234")).unwrap_err();
        assert!(matches!(&error, StoreError::Unknown(prefix) if prefix == "ffff1234"), "{error}");
    }

    #[test]
    fn several_candidates_are_named() {
        let (_temp, store) = store();
        let ids: Vec<_> = (0..12).map(|n| format!("abcd{n:04}-0000-4000-8000-000000000000")).collect();
        for id in &ids {
            store.adopt(&new("theirs"), session(id)).unwrap();
        }
        let Err(StoreError::Ambiguous(named)) = store.lookup(&prefix("abcd")) else {
            panic!("twelve ids begin like this");
        };
        assert_eq!(named, ids[..10]);
        assert!(matches!(store.lookup(&prefix("abcd0003")), Ok(Target::Frame(_))));
    }

    #[test]
    fn a_full_id_wins() {
        let (_temp, store) = store();
        let (frame, other) = (store.root(), store.root());
        let odd = NewAttempt { session: frame.into(), ..attempt(vec![]) };
        store.begin(other, &odd).unwrap();
        assert_eq!(store.lookup(&prefix(&frame.to_string())).unwrap(), Target::Frame(frame));
    }

    #[test]
    fn only_the_index_is_read() {
        let (_temp, store) = store();
        let mut statement = store.connection.prepare(&format!("EXPLAIN QUERY PLAN {MATCHES}")).unwrap();
        let plan: Vec<String> =
            statement.query_map(["abcd"], |row| row.get("detail")).unwrap().map(|step| step.unwrap()).collect();
        let reads = |start: &str, table: &str| plan.iter().any(|step| step.starts_with(&format!("{start} {table}")));
        for table in ["frames", "attempts", "requests"] {
            assert!(reads("SEARCH", table) && !reads("SCAN", table), "{plan:?}");
        }
    }
}
