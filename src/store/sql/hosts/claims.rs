//! Takes chains that no host runs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::core::chain::frame_state::FrameState;
use crate::core::housekeeping::hosting::{HostFiles, Offer, Placement, PushedPlace, WorkPlace};
use crate::core::id::FrameId;
use crate::failpoint::Step;
use crate::store::error::{ArchiveError, Result, StoreError};
use crate::store::hosts::Wanted;
use crate::store::sql::database::codec::{Id, id};
use crate::store::sql::database::connection::Database;
use crate::store::sql::engine::{Connection, TxResult, Values};
use crate::store::sql::hosts::leases::{clock, labels};
use crate::store::sql::housekeeping::copies;
use crate::store::sql::tables::frames;

/// The chains of other hosts, or of none. A line for each directory: its path and, separated by tabs, the worktree that it is in, its
/// repository and whether its remote has its last files, if it has any. No path contains a control character. What a finished agent has left
/// only in its worktree counts, too.
macro_rules! placements {
    ($condition:literal) => {
        concat!(
            "SELECT c.root, f.seq, c.host, c.labels, coalesce(h.expires > ",
            clock!(),
            ", FALSE) AS is_alive, (SELECT string_agg(DISTINCT member.cwd || coalesce((SELECT
                   concat_ws(chr(9), '', o.worktree_path, o.repository,
                     CASE WHEN o.has_unpushed THEN 'false' ELSE 'true' END)
                 FROM frames AS o WHERE o.root = c.root AND o.is_pushed
                   AND (member.cwd = o.worktree_path OR starts_with(member.cwd, o.worktree_path || '/'))
                 LIMIT 1), ''), chr(10)) FROM frames AS member
               WHERE member.root = c.root AND NOT member.is_group
                 AND (member.status <> 'done' OR (member.worktree_path IS NOT NULL AND member.has_unpushed))) AS directories
             FROM chains AS c JOIN frames AS f ON f.id = c.root LEFT JOIN hosts AS h ON h.name = c.host
             WHERE c.host IS DISTINCT FROM ?1 AND ",
            $condition
        )
    };
}

/// A host whose lease has ended is lost if it was running an agent of the chain. Otherwise, it may only have nothing to run, and is lost
/// when it was not seen for as long as several leases: with cron, it is seen every minute. A host that has only moved or imported its
/// chains was never seen, and is not lost until a person says so.
const TO_TAKE: &str = placements!(
    "f.status IN ('ready', 'running', 'waiting') AND (c.host IS NULL OR coalesce(h.expires, 0) <= ?2 AND (h.expires + 4 * (h.expires - h.seen) <= ?2
       OR EXISTS (SELECT 1 FROM frames AS member WHERE member.root = c.root AND member.status = 'running')))
     AND f.seq > ?3 AND agent_cli.may(c.root, 'start') ORDER BY f.seq LIMIT 64"
);
const FREE: &str = placements!(
    "?2 = ?2 AND c.host IS NULL AND f.status IN ('ready', 'running', 'waiting') AND f.seq > ?3
     AND agent_cli.may(c.root, 'start') ORDER BY f.seq LIMIT 64"
);
const ONE: &str = placements!("c.root = ?2");
/// Skips a chain that another process is taking.
const LOCKED: &str = placements!("c.root = ?2 FOR UPDATE OF c SKIP LOCKED");

/// When to try again to take a chain whose files could not be restored: they may be read as a whole each time.
const AGAIN_AFTER: Duration = Duration::from_secs(300);

/// When to try again if this host was the cause, such as its full disk.
const AGAIN_AFTER_OWN: Duration = Duration::from_secs(30);

pub(super) fn take(store: &Database, wanted: Wanted, offer: &Offer) -> Result<Option<FrameId>> {
    if store.connection.host().is_none() {
        return Ok(None);
    }
    let worktrees = store.dir.worktrees().map_err(|error| StoreError::io(store.dir.path(), error))?;
    let files = OwnFiles { worktrees };
    let mut trouble = None;
    let mut after = 0;
    loop {
        let mut listed = store.read(|connection| listed(connection, wanted, after))?;
        let Some(last) = listed.last() else { return trouble.map_or(Ok(None), Err) };
        after = last.seq;
        while !listed.is_empty() {
            let Listed { root, placement, .. } = listed.remove(0);
            match (wanted, placement.may_be_taken(offer, &files)) {
                (Wanted::Chain(_), Err(why)) => return Err(StoreError::NotTaken { root, why }),
                (_, Err(_)) => continue,
                (Wanted::Chain(_), Ok(())) => {}
                // It would be read again whenever anything has changed.
                _ if store.not_taken.borrow().get(&root).is_some_and(|again| Instant::now() < *again) => continue,
                (_, Ok(())) => {}
            }
            match take_one(store, root, &placement) {
                Ok(true) => return Ok(Some(root)),
                // Another host was faster. It takes the next ones, too.
                Ok(false) if !listed.is_empty() => {
                    let other = usize::from(Uuid::new_v4().as_bytes()[0]) % listed.len();
                    listed.rotate_left(other);
                }
                Ok(false) => {}
                // One that cannot be taken does not keep others from being taken.
                Err(error) if matches!(error, StoreError::Server { .. }) => return Err(error),
                Err(error) => {
                    let pause = if matches!(error, StoreError::Io { .. }) { AGAIN_AFTER_OWN } else { AGAIN_AFTER };
                    store.not_taken.borrow_mut().insert(root, Instant::now() + pause);
                    trouble = trouble.or(Some(error));
                }
            }
        }
        if let Wanted::Chain(_) = wanted {
            return trouble.map_or(Ok(None), Err);
        }
    }
}

/// A chain that this host may be able to take.
struct Listed {
    root: FrameId,
    seq: i64,
    placement: Placement,
}

/// The oldest chains after the one with this number.
fn listed(connection: &Connection, wanted: Wanted, after: i64) -> TxResult<Vec<Listed>> {
    match wanted {
        Wanted::Any => {
            let now: i64 = connection.read_one(concat!("SELECT ", clock!(), " AS now"), [], |row| row.get("now"))?;
            placements(connection, TO_TAKE, (connection.host(), now, after))
        }
        Wanted::Free => placements(connection, FREE, (connection.host(), 0, after)),
        Wanted::Chain(root) => placements(connection, ONE, (connection.host(), Id(root))),
    }
}

/// Takes a chain, unless it has changed since it was listed. The files are written first, because the record says that they are here, and
/// while the chain is not locked yet, because it may take long.
fn take_one(store: &Database, root: FrameId, listed: &Placement) -> Result<bool> {
    let restored = copies::restore(store, root)?;
    let taken = store.beside(Step::Take, |connection| {
        let now = placements(connection, LOCKED, (connection.host(), Id(root)))?;
        let is_as_listed = now.iter().any(|now| (&now.placement.host, now.placement.is_alive) == (&listed.host, false));
        if !is_as_listed || copies::listed(connection, root)? != restored {
            return Ok(false);
        }
        check_copies(store, connection, root)?;
        forget_worktrees(store, connection, root)?;
        connection.run("UPDATE chains SET host = ?2 WHERE root = ?1", (Id(root), connection.host()))?;
        Ok(true)
    });
    taken.map(Option::unwrap_or_default)
}

/// Checks that the kept session of each unfinished agent is here.
fn check_copies(store: &Database, connection: &Connection, root: FrameId) -> TxResult<()> {
    let ids = connection.read_all("SELECT id FROM frames WHERE root = ?1", [Id(root)], |row| id(row, "id"))?;
    for id in ids {
        let frame = frames::existing(connection, id)?;
        let is_kept = frame.continues().is_none_or(|kept| store.dir.checkpoint(kept.frame, kept.copy).is_file());
        if !is_kept && frame.state != FrameState::Done {
            return Err(StoreError::from(ArchiveError::NoCopy(id)).into());
        }
    }
    Ok(())
}

/// Forgets which states of its worktrees are here: a turn that is no longer recorded may have changed the files.
fn forget_worktrees(store: &Database, connection: &Connection, root: FrameId) -> TxResult<()> {
    let sql = "SELECT id FROM frames WHERE root = ?1 AND worktree_path IS NOT NULL";
    for id in connection.read_all(sql, [Id(root)], |row| id(row, "id"))? {
        let noted = store.dir.pushed(id);
        match fs::remove_file(&noted) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(StoreError::io(&noted, error).into()),
            _ => {}
        }
    }
    Ok(())
}

struct OwnFiles {
    worktrees: PathBuf,
}

impl HostFiles for OwnFiles {
    fn has(&self, directory: &Path) -> bool {
        directory.is_dir()
    }

    fn worktrees(&self) -> &Path {
        &self.worktrees
    }
}

fn place(line: &str) -> WorkPlace {
    let mut parts = line.split('\t');
    let path = PathBuf::from(parts.next().unwrap_or_default());
    let pushed = parts.next().zip(parts.next()).zip(parts.next());
    let pushed = pushed.map(|((worktree, repository), is_current)| PushedPlace {
        worktree: worktree.into(),
        repository: repository.into(),
        is_current: is_current == "true",
    });
    WorkPlace { path, pushed }
}

fn placements(connection: &Connection, sql: &str, values: impl Values) -> TxResult<Vec<Listed>> {
    connection.read_all(sql, values, |row| {
        let labels = labels(&row.get::<_, Option<String>>("labels")?.unwrap_or_default());
        let (host, is_alive) = (row.get("host")?, row.get("is_alive")?);
        let directories = row.get::<_, Option<String>>("directories")?.unwrap_or_default();
        let directories = directories.lines().map(place).collect();
        let placement = Placement { host, is_alive, labels, directories };
        Ok(Listed { root: id(row, "root")?, seq: row.get("seq")?, placement })
    })
}
