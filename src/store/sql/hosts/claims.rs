//! Takes chains that no host runs.

use std::path::{Path, PathBuf};

use crate::core::chain::frame_state::FrameState;
use crate::core::housekeeping::hosting::{Offer, Placement};
use crate::core::id::FrameId;
use crate::failpoint::Step;
use crate::store::error::{ArchiveError, Result, StoreError};
use crate::store::hosts::Wanted;
use crate::store::sql::database::codec::{Id, id};
use crate::store::sql::database::connection::Database;
use crate::store::sql::engine::{Connection, TxResult};
use crate::store::sql::hosts::leases::{clock, labels};
use crate::store::sql::housekeeping::copies;
use crate::store::sql::tables::frames;

/// The chains that other hosts can have taken, or that no host has.
macro_rules! placements {
    ($condition:literal) => {
        concat!(
            "SELECT c.root, c.host, c.labels, coalesce(h.expires > ",
            clock!(),
            ", FALSE) AS is_alive FROM chains AS c JOIN frames AS f ON f.id = c.root LEFT JOIN hosts AS h ON h.name = c.host
             WHERE c.host IS DISTINCT FROM ?1 AND ",
            $condition
        )
    };
}

const TO_TAKE: &str =
    placements!("f.status IN ('ready', 'running', 'waiting') AND coalesce(h.expires <= ?2, TRUE) ORDER BY f.seq");
const ONE: &str = placements!("c.root = ?2");
/// Skips a chain that another process is taking.
const LOCKED: &str = placements!("c.root = ?2 FOR UPDATE OF c SKIP LOCKED");

const DIRECTORIES: &str =
    "SELECT DISTINCT cwd FROM frames WHERE root = ?1 AND NOT is_group AND status <> 'done' ORDER BY cwd";

pub(super) fn take(store: &Database, wanted: Wanted, offer: &Offer) -> Result<Option<FrameId>> {
    if store.connection.host().is_none() {
        return Ok(None);
    }
    let listed = store.read(|connection| match wanted {
        Wanted::Any => {
            let now: i64 = connection.read_one(concat!("SELECT ", clock!(), " AS now"), [], |row| row.get("now"))?;
            placements(connection, TO_TAKE, now)
        }
        Wanted::Chain(root) => placements(connection, ONE, Id(root)),
    })?;
    for (root, listed) in listed {
        let may_be_taken = listed.may_be_taken(offer, Path::is_dir);
        match (wanted, may_be_taken) {
            (Wanted::Chain(_), Err(why)) => return Err(StoreError::NotTaken { root, why }),
            (Wanted::Any, Err(_)) => {}
            (_, Ok(())) => {
                let taken = store.beside(Step::Take, |connection| take_one(store, connection, root, &listed))?;
                if taken.flatten().is_some() {
                    return Ok(Some(root));
                }
            }
        }
    }
    Ok(None)
}

/// Takes a chain, unless it has changed since it was listed. The files are written first: the record says that they are here.
fn take_one(store: &Database, connection: &Connection, root: FrameId, listed: &Placement) -> TxResult<Option<()>> {
    let now = placements(connection, LOCKED, Id(root))?;
    if now.iter().all(|(_, now)| (&now.host, now.is_alive) != (&listed.host, false)) {
        return Ok(None);
    }
    copies::restore(connection, &store.dir, root)?;
    check_copies(store, connection, root)?;
    connection.run("UPDATE chains SET host = ?2 WHERE root = ?1", (Id(root), connection.host()))?;
    Ok(Some(()))
}

/// Checks that agents which can continue will be able to.
fn check_copies(store: &Database, connection: &Connection, root: FrameId) -> TxResult<()> {
    let ids = connection.read_all("SELECT id FROM frames WHERE root = ?1", [Id(root)], |row| id(row, "id"))?;
    for id in ids {
        let frame = frames::existing(connection, id)?;
        let is_kept = frame.checkpoint.is_none_or(|copy| store.dir.checkpoint(id, copy).is_file());
        if !is_kept && frame.state != FrameState::Done {
            return Err(StoreError::from(ArchiveError::NoCopy(id)).into());
        }
    }
    Ok(())
}

fn placements(connection: &Connection, sql: &str, value: impl rusqlite::ToSql) -> TxResult<Vec<(FrameId, Placement)>> {
    let own = connection.host();
    let values: [&dyn rusqlite::ToSql; 2] = [&own, &value];
    let mut found = connection.read_all(sql, values.as_slice(), |row| {
        let labels = labels(&row.get::<_, Option<String>>("labels")?.unwrap_or_default());
        let (host, is_alive) = (row.get("host")?, row.get("is_alive")?);
        Ok((id(row, "root")?, Placement { host, is_alive, labels, directories: Vec::new() }))
    })?;
    for (root, placement) in &mut found {
        placement.directories =
            connection.read_all(DIRECTORIES, [Id(*root)], |row| Ok(PathBuf::from(row.get::<_, String>("cwd")?)))?;
    }
    Ok(found)
}
