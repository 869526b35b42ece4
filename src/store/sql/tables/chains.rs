//! The rows of chains: limits and names. Only one unfinished chain can have a given name.

use std::collections::HashSet;
use std::path::Path;

use crate::core::chain::frame::Detached;
use crate::core::chain::limits::Limits;
use crate::core::events::log_entry::LogEntry;
use crate::core::housekeeping::hosting::{Elsewhere, Labels};
use crate::core::housekeeping::rights::Right;
use crate::core::id::{ChainName, FrameId};
use crate::store::error::StoreError;
use crate::store::sql::database::codec::{self, At, Id, from_json, id};
use crate::store::sql::engine::{Connection, TxResult};
use crate::store::sql::tables::events;

/// The roots of the chain of root `?1` and of all chains with which it shares its budget and its number of agents, because agents
/// have detached one from another.
macro_rules! family {
    () => {
        "(SELECT ?1 UNION ALL SELECT other.root FROM chains AS own CROSS JOIN chains AS other
          ON other.family = own.family AND other.root <> own.root WHERE own.root = ?1)"
    };
}
pub(crate) use family;

/// The limits of a tree.
pub(crate) fn limits(connection: &Connection, root: FrameId) -> TxResult<Limits> {
    connection.read_one("SELECT limits FROM chains WHERE root = ?1", [Id(root)], |row| from_json(row, "limits"))
}

/// Sets the limits of a tree that is being created.
pub(crate) fn insert(connection: &Connection, root: FrameId, limits: Limits) -> TxResult<()> {
    let limits = codec::json(&limits, &[])?;
    connection.run("INSERT INTO chains (root, limits, host) VALUES (?1, ?2, ?3)", (Id(root), limits, connection.host()))
}

/// Leaves a chain that is being created to a host with these labels.
pub(crate) fn offer(connection: &Connection, root: FrameId, labels: &Labels) -> TxResult<()> {
    connection.run("UPDATE chains SET host = NULL, labels = ?2 WHERE root = ?1", (Id(root), labels.to_string()))
}

/// Fails if this host does not run the agents of a chain: nothing there may be decided here. No other host takes the chain before
/// this transaction ends.
pub(crate) fn check_host(connection: &Connection, root: FrameId) -> TxResult<()> {
    check(connection, root, "SELECT host FROM chains WHERE root = ?1 FOR SHARE", false)
}

/// Fails if a chain belongs to another host, but not if it belongs to none.
pub(crate) fn check_other_host(connection: &Connection, root: FrameId) -> TxResult<()> {
    check(connection, root, "SELECT host FROM chains WHERE root = ?1", true)
}

fn check(connection: &Connection, root: FrameId, sql: &str, may_be_free: bool) -> TxResult<()> {
    let Some(own) = connection.host() else { return Ok(()) };
    let elsewhere = match connection.read_first(sql, [Id(root)], |row| row.get::<_, Option<String>>("host"))? {
        Some(Some(host)) if host != own => Elsewhere::Host(host),
        Some(None) if !may_be_free => Elsewhere::Waiting,
        _ => return Ok(()),
    };
    Err(StoreError::OtherHost { root, elsewhere }.into())
}

const MISSING: &str = "SELECT session_user::text AS name,
       (SELECT agent_cli.project_of(cwd, worktree_path, repository) FROM frames WHERE id = ?1) AS directory
     WHERE NOT agent_cli.may(?1, ?2)";

/// Fails if this user lacks a right to a chain. The server refuses changes by itself, but skips rows that may not be deleted.
pub(crate) fn check_right(connection: &Connection, root: FrameId, right: Right) -> TxResult<()> {
    if connection.host().is_none() {
        return Ok(());
    }
    let missing = connection.read_first(MISSING, (Id(root), right.name()), |row| {
        Ok((row.get("name")?, row.get::<_, Option<String>>("directory")?))
    })?;
    match missing {
        None => Ok(()),
        Some((user, directory)) => {
            Err(StoreError::NoRight { user, right, directory: directory.unwrap_or_default() }.into())
        }
    }
}

/// The chains whose agents do not run on this host.
pub(crate) fn elsewhere(connection: &Connection) -> TxResult<HashSet<FrameId>> {
    roots(connection, "SELECT root FROM chains WHERE host IS DISTINCT FROM ?1")
}

/// Those of these chains whose agents do not run on this host.
pub(crate) fn elsewhere_among(connection: &Connection, chains: &[FrameId]) -> TxResult<HashSet<FrameId>> {
    let Some(own) = connection.host().filter(|_| !chains.is_empty()) else { return Ok(HashSet::new()) };
    let among = chains.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let sql = "SELECT root FROM chains WHERE host IS DISTINCT FROM ?1 AND root = ANY (string_to_array(?2, ' '))";
    Ok(connection.read_all(sql, (own, among), |row| id(row, "root"))?.into_iter().collect())
}

/// The chains whose agents run on other hosts.
pub(crate) fn of_other_hosts(connection: &Connection) -> TxResult<HashSet<FrameId>> {
    roots(connection, "SELECT root FROM chains WHERE host <> ?1")
}

fn roots(connection: &Connection, sql: &str) -> TxResult<HashSet<FrameId>> {
    let Some(own) = connection.host() else { return Ok(HashSet::new()) };
    Ok(connection.read_all(sql, [own], |row| id(row, "root"))?.into_iter().collect())
}

/// Makes this the host of a chain whose files are here.
pub(crate) fn take(connection: &Connection, root: FrameId) -> TxResult<()> {
    connection.run("UPDATE chains SET host = ?2 WHERE root = ?1", (Id(root), connection.host()))
}

/// Records that a chain was detached from the chain of `origin`.
pub(crate) fn set_detached(
    connection: &Connection,
    root: FrameId,
    origin: FrameId,
    detached: &Detached,
) -> TxResult<()> {
    connection.run("UPDATE chains SET family = root WHERE root = ?1 AND family IS NULL", [Id(origin)])?;
    let paths: Vec<&Path> = vec![&detached.cwd, &detached.base];
    connection.run(
        "UPDATE chains SET detached = ?3, family = (SELECT family FROM chains WHERE root = ?2) WHERE root = ?1",
        (Id(root), Id(origin), codec::json(detached, &paths)?),
    )
}

/// Records in the chain `heir` what a chain and the removed ones that it knows of have used of the limits of their family.
fn inherit(connection: &Connection, root: FrameId, heir: FrameId) -> TxResult<()> {
    let used = "SELECT removed_usd + (SELECT coalesce(sum(a.cost_usd), 0.0) FROM frames AS f CROSS JOIN attempts AS a
           INDEXED BY attempts_by_frame ON a.frame = f.id WHERE f.root = ?1) AS usd,
         removed_agents + (SELECT count(*) FROM frames WHERE NOT is_group AND root = ?1) AS agents
         FROM chains WHERE root = ?1";
    let (usd, agents): (f64, i64) =
        connection.read_one(used, [Id(root)], |row| Ok((row.get("usd")?, row.get("agents")?)))?;
    connection.run(
        "UPDATE chains SET removed_usd = removed_usd + ?2, removed_agents = removed_agents + ?3 WHERE root = ?1",
        (Id(heir), usd, agents),
    )
}

/// The number of agents of a chain and of the others of its family.
pub(crate) fn agents(connection: &Connection, root: FrameId) -> TxResult<u32> {
    const COUNT: &str = concat!(
        "SELECT count(*) + (SELECT CAST(coalesce(sum(removed_agents), 0) AS BIGINT) FROM chains WHERE root IN ",
        family!(),
        ") FROM frames WHERE NOT is_group AND root IN ",
        family!()
    );
    connection.read_one(COUNT, [Id(root)], |row| row.get(0))
}

/// Merges the family of a chain whose agents have become part of `into` into the family of `into`.
pub(crate) fn join_families(connection: &Connection, root: FrameId, into: FrameId) -> TxResult<()> {
    connection.run(
        "UPDATE chains SET family = root WHERE root = ?2 AND family IS NULL
         AND (SELECT family FROM chains WHERE root = ?1) IS NOT NULL",
        (Id(root), Id(into)),
    )?;
    connection.run(
        "UPDATE chains SET family = (SELECT family FROM chains WHERE root = ?2)
         WHERE family = (SELECT family FROM chains WHERE root = ?1)",
        (Id(root), Id(into)),
    )?;
    inherit(connection, root, into)
}

/// Turns a chain into one that a person has started.
pub(crate) fn forget_origin(connection: &Connection, root: FrameId) -> TxResult<()> {
    let sql = "UPDATE chains SET detached = NULL, family = NULL, removed_usd = 0, removed_agents = 0 WHERE root = ?1";
    connection.run(sql, [Id(root)])
}

/// Takes a chain out of its family. The first of the others records what it has used of their limits.
pub(crate) fn leave_family(connection: &Connection, root: FrameId) -> TxResult<()> {
    const HEIR: &str = "SELECT other.root FROM chains AS own CROSS JOIN chains AS other ON other.family = own.family
         AND other.root <> own.root WHERE own.root = ?1";
    // A user who may not change any of the others can still remove the chain.
    let may_change = if connection.host().is_some() {
        " AND (NOT agent_cli.is_limited() OR agent_cli.may_delete(other.root))"
    } else {
        ""
    };
    let heir =
        connection.read_first(&format!("{HEIR}{may_change} ORDER BY other.root LIMIT 1"), [Id(root)], |row| {
            id(row, "root")
        })?;
    if let Some(heir) = heir {
        inherit(connection, root, heir)?;
    }
    connection.run("UPDATE chains SET family = NULL WHERE root = ?1 AND family IS NOT NULL", [Id(root)])
}

/// Replaces the limits of a tree.
pub(crate) fn set_limits(connection: &Connection, root: FrameId, limits: Limits) -> TxResult<()> {
    let limits = codec::json(&limits, &[])?;
    connection.run("UPDATE chains SET limits = ?2 WHERE root = ?1", (Id(root), limits))
}

/// The unfinished chain with a name, as lists show it: by its root, or by whichever of its agents is running.
const GOES_ON: &str = "SELECT f.id FROM chains AS c CROSS JOIN frames AS f ON f.id = c.root
     WHERE c.name = ?1 AND c.root <> ?2 AND (f.status IN ('ready', 'running', 'waiting')
       OR EXISTS (SELECT 1 FROM frames AS member WHERE member.root = c.root AND member.status = 'running')) LIMIT 1";

/// Names a chain, or removes its name.
pub(crate) fn give(connection: &Connection, root: FrameId, name: Option<&ChainName>) -> TxResult<()> {
    let name = name.map(ChainName::as_str);
    if let Some(name) = name
        && let Some(by) = taken(connection, root, name)?
    {
        return Err(StoreError::NameTaken { name: name.to_owned(), by }.into());
    }
    set(connection, root, name)
}

/// Removes the name of a chain that continues again, if another unfinished chain has it now, and records that in its log. Returns
/// whether it has lost its name.
pub(crate) fn give_up_if_taken(connection: &Connection, now: At, root: FrameId) -> TxResult<bool> {
    let Some(name) = name(connection, root)? else { return Ok(false) };
    let Some(by) = taken(connection, root, &name)? else { return Ok(false) };
    set(connection, root, None)?;
    events::append(connection, now, root, &LogEntry::NameLost { name, to: by })?;
    Ok(true)
}

/// The name of a chain.
fn name(connection: &Connection, root: FrameId) -> TxResult<Option<String>> {
    Ok(connection.read_first("SELECT name FROM chains WHERE root = ?1", [Id(root)], |row| row.get(0))?.flatten())
}

fn taken(connection: &Connection, except: FrameId, name: &str) -> TxResult<Option<FrameId>> {
    connection.read_first(GOES_ON, (name, Id(except)), |row| id(row, "id"))
}

fn set(connection: &Connection, root: FrameId, name: Option<&str>) -> TxResult<()> {
    connection.run("UPDATE chains SET name = ?2 WHERE root = ?1", (Id(root), name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::attempt::ending::Ending;
    use crate::store::testing::{new, reply, store};
    use crate::store::{Chains, NewFrame, Store};

    fn name() -> ChainName {
        "nightly".parse().unwrap()
    }

    fn named(store: &Store) -> Result<FrameId, StoreError> {
        store.create_root(&NewFrame { name: Some(name()), ..new("task") })
    }

    fn found(store: &Store) -> Vec<FrameId> {
        store.chains(Chains::Named(&name())).unwrap().chains.iter().map(|chain| chain.id).collect()
    }

    #[test]
    fn of_the_chains_that_go_on_one_has_the_name() {
        let (_temp, store) = store();
        let first = named(&store).unwrap();
        assert!(matches!(named(&store), Err(StoreError::NameTaken { by, .. }) if by == first));
        assert_eq!(store.roots().len(), 1, "nothing was made");
        store.end(store.start(first), &reply("done"));
        let second = named(&store).unwrap();
        assert_eq!(found(&store), [second]);
        assert_eq!(store.chains(Chains::Named(&"other".parse().unwrap())).unwrap().chains, []);
    }

    #[test]
    fn a_chain_that_goes_on_again_gives_its_name_up_to_the_one_that_has_it() {
        let (_temp, store) = store();
        let first = named(&store).unwrap();
        store.end(store.start(first), &Ending::Error("max turns".into()));
        let second = named(&store).unwrap();
        store.try_again(first).unwrap();
        assert_eq!(store.chain_of(first).unwrap().name, None);
        assert!(store.events(first, 0).unwrap().iter().any(|event| matches!(event.entry, LogEntry::NameLost { .. })));
        assert_eq!(found(&store), [second]);
    }

    #[test]
    fn a_name_means_the_chain_that_goes_on_and_else_the_newest() {
        let (_temp, store) = store();
        let first = named(&store).unwrap();
        store.end(store.start(first), &Ending::Error("max turns".into()));
        let second = named(&store).unwrap();
        store.end(store.start(second), &reply("done"));
        assert_eq!(found(&store), [second]);
        store.try_again(first).unwrap();
        assert_eq!(found(&store), [first]);
        assert_eq!(store.chain_of(second).unwrap().name.as_deref(), Some("nightly"), "it ended with this name");
    }
}
