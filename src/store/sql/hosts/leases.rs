//! The leases of hosts. All times are those of the server, so the clocks of hosts do not matter.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::core::housekeeping::hosting::Labels;
use crate::core::steering::origin::FromHost;
use crate::store::error::StoreError;
use crate::store::hosts::{CLOCKS_AGREE_WITHIN, Host, Renewed, Terms};
use crate::store::sql::engine::{Connection, Row, TxResult};
use crate::store::sql::hosts::rights;

/// The time of the server, in milliseconds. In a transaction, `now()` would be when it began.
macro_rules! clock {
    () => {
        "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    };
}
pub(super) use clock;

/// A host that starts nothing, because it is drained or its clock is off, gives its chains to others as soon as no agent of it runs.
const RENEW: &str = concat!(
    "INSERT INTO hosts (name, seen, since, expires, labels, program) VALUES (?1, ",
    clock!(),
    ", ",
    clock!(),
    ", ",
    clock!(),
    " + CASE WHEN NOT ?5 AND abs(",
    clock!(),
    " - ?6) > ?7 THEN 0 ELSE ?2 END, ?3, ?4)
     ON CONFLICT (name) DO UPDATE SET seen = excluded.seen,
       since = CASE WHEN hosts.expires > ",
    clock!(),
    " THEN hosts.since ELSE excluded.since END,
       expires = CASE WHEN hosts.is_draining AND NOT ?5 THEN hosts.expires ELSE GREATEST(hosts.expires, excluded.expires) END,
       labels = excluded.labels, program = excluded.program, database_user = excluded.database_user
     RETURNING is_draining, seen, since"
);

pub(super) fn renew(connection: &Connection, terms: &Terms) -> TxResult<Renewed> {
    // Whoever starts nothing has no lease, and can still watch.
    if !rights::may_start(connection)? {
        return Ok(Renewed::default());
    }
    let lease = i64::try_from(terms.lease.as_millis()).unwrap_or(i64::MAX);
    let (labels, program) = (terms.labels.to_string(), env!("CARGO_PKG_VERSION"));
    let read = |row: &Row<'_>| Ok((row.get("is_draining")?, row.get::<_, i64>("seen")?, row.get("since")?));
    let own = Timestamp::now().as_millisecond();
    let most = i64::try_from(CLOCKS_AGREE_WITHIN.as_millis()).unwrap_or(i64::MAX);
    let values = (connection.host(), lease, labels, program, terms.runs_agents, own, most);
    let (is_draining, seen, since) = connection.read_one(RENEW, values, read)?;
    let ahead = SignedDuration::from_millis(Timestamp::now().as_millisecond() - seen);
    Ok(Renewed { since, is_draining, ahead })
}

/// How far the clock of this host is ahead of the server's.
pub(super) fn clock_ahead(connection: &Connection) -> TxResult<SignedDuration> {
    let now: i64 = connection.read_one(concat!("SELECT ", clock!(), " AS now"), [], |row| row.get("now"))?;
    Ok(SignedDuration::from_millis(Timestamp::now().as_millisecond() - now))
}

/// This host, and its user as the server knows it.
pub(crate) fn identity(connection: &Connection) -> TxResult<Option<FromHost>> {
    let Some(own) = connection.host() else { return Ok(None) };
    let sql = "SELECT session_user::text AS name";
    let database_user = connection.read_one(sql, [], |row| row.get("name"))?;
    Ok(Some(FromHost { name: own.to_owned(), database_user }))
}

const HELD: &str = concat!("SELECT expires > ", clock!(), " AS is_held, is_draining FROM hosts WHERE name = ?1");

/// Fails if this host may not start agents now.
pub(crate) fn check(connection: &Connection) -> TxResult<()> {
    let Some(own) = connection.host() else { return Ok(()) };
    let read = |row: &Row<'_>| Ok((row.get("is_held")?, row.get("is_draining")?));
    match connection.read_first(HELD, [own], read)? {
        Some((true, false)) => Ok(()),
        Some((_, true)) => Err(StoreError::Draining(own.to_owned()).into()),
        Some((false, false)) | None => Err(StoreError::LeaseEnded(own.to_owned()).into()),
    }
}

/// The hosts that have a lease, have had one in the last day, or have chains that have not ended. A host that was forgotten and has
/// chains again has no lease.
const HOSTS: &str = concat!(
    "SELECT * FROM (SELECT name, seen, left_over, is_draining, labels, program,
       (SELECT count(*) FROM chains AS c JOIN frames AS f ON f.id = c.root
        WHERE c.host = known.name AND f.status NOT IN ('done', 'failed')) AS chains,
       (SELECT count(*) FROM chains AS c JOIN frames AS f ON f.root = c.root
        WHERE c.host = known.name AND f.status = 'running') AS agents
     FROM (SELECT name, seen, expires - ",
    clock!(),
    " AS left_over, is_draining, labels, program FROM hosts
           UNION ALL SELECT DISTINCT host, NULL::bigint, NULL::bigint, FALSE, '', '' FROM chains
           WHERE host IS NOT NULL AND host NOT IN (SELECT name FROM hosts)) AS known) AS counted
     WHERE name = ?1 OR chains > 0 OR left_over > -86400000 ORDER BY name <> ?1, name"
);

pub(super) fn hosts(connection: &Connection) -> TxResult<Vec<Host>> {
    let own = connection.host().unwrap_or_default();
    let mut found = connection.read_all(HOSTS, [own], |row| {
        let name: String = row.get("name")?;
        let number = |column: &str| Ok::<_, rusqlite::Error>(row.get::<_, i64>(column)?.unsigned_abs());
        let left = row.get::<_, Option<i64>>("left_over")?.and_then(|left| u64::try_from(left).ok());
        Ok(Host {
            seen: row.get::<_, Option<i64>>("seen")?.and_then(|seen| Timestamp::from_millisecond(seen).ok()),
            lease: left.filter(|left| *left > 0).map(Duration::from_millis),
            is_draining: row.get("is_draining")?,
            labels: labels(&row.get::<_, String>("labels")?),
            program: row.get("program")?,
            chains: number("chains")?,
            agents: number("agents")?,
            ..Host::new(name, own)
        })
    })?;
    if found.first().is_none_or(|host| !host.is_here) {
        found.insert(0, Host::new(own.to_owned(), own));
    }
    Ok(found)
}

/// Recorded labels were checked before.
pub(super) fn labels(text: &str) -> Labels {
    text.parse().unwrap_or_default()
}

/// Returns `None` if there is no such host.
pub(super) fn drain(connection: &Connection, host: &str, is_draining: bool) -> TxResult<Option<()>> {
    let changed = connection.change("UPDATE hosts SET is_draining = ?2 WHERE name = ?1", (host, is_draining))?;
    Ok((changed > 0).then_some(()))
}

const LEFT: &str = concat!("SELECT expires - ", clock!(), " AS left_over FROM hosts WHERE name = ?1 FOR UPDATE");

const UNFINISHED: &str = "SELECT count(*) AS unfinished FROM chains AS c JOIN frames AS f ON f.id = c.root
     WHERE c.host = ?1 AND f.status NOT IN ('done', 'failed')";

pub(super) fn forget(connection: &Connection, host: &str) -> TxResult<u64> {
    // Others see only some of its chains.
    rights::check_owner(connection, "forget a host")?;
    let left: Option<i64> = connection.read_first(LEFT, [host], |row| row.get("left_over"))?;
    if let Some(left) = left.and_then(|left| u64::try_from(left).ok()).filter(|left| *left > 0) {
        return Err(StoreError::HostInUse { host: host.to_owned(), left: Duration::from_millis(left) }.into());
    }
    let unfinished: i64 = connection.read_one(UNFINISHED, [host], |row| row.get("unfinished"))?;
    let released = connection.change("UPDATE chains SET host = NULL WHERE host = ?1", [host])?;
    if released == 0 && left.is_none() {
        return Err(StoreError::UnknownHost(host.to_owned()).into());
    }
    connection.run("DELETE FROM hosts WHERE name = ?1", [host])?;
    Ok(unfinished.unsigned_abs())
}
