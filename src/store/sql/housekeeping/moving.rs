//! Moves all records of a state directory from its file to a server. The agents' files remain in the state directory.

use std::collections::HashMap;
use std::ops::ControlFlow;

use rusqlite::types::Value;

use crate::core::housekeeping::rights::Right;
use crate::core::id::FrameId;
use crate::failpoint::Step;
use crate::store::error::{Result, StoreError};
use crate::store::files::lease::Lease;
use crate::store::files::state_dir::StateDir;
use crate::store::files::state_dir::server_file::{DirectoryIdentity, ServerFile};
use crate::store::sql::database::codec::{self, Id, count, id};
use crate::store::sql::database::connection::Database;
use crate::store::sql::database::server;
use crate::store::sql::engine::{Connection, Row, TxResult};
use crate::store::sql::housekeeping::copies;
use crate::store::sql::tables::tree_rows::{self, TABLES, Table};
use crate::store::sql::tables::{chains, frames};

/// What was moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moved {
    pub(crate) chains: u64,
    /// The server, without a password.
    pub(crate) place: String,
    /// The chains that have lost their names to chains that were there before.
    pub(crate) unnamed: Vec<FrameId>,
}

/// The table that says which host a chain belongs to.
const CHAINS: &str = "chains";

/// The other tables to copy. The next command that finds the config file renews the subscription.
const OTHERS: [Table; 1] = [Table { name: "notifications", of_members: "frame IN (SELECT id FROM members)" }];

/// The maximum number of values in a statement.
const AT_ONCE: usize = 2000;

/// Moves everything or nothing. An interrupted move can be repeated: what a killed process left on the server is replaced, or kept if
/// the chains have continued there.
pub(crate) fn move_to(dir: &StateDir, url: &str) -> Result<Moved> {
    let place = server::place_of(url)?;
    if let Some(known) = dir.server()? {
        let used = server::place_of(&known.url)?;
        if used == place {
            // The password and the options may change.
            server::choose(dir, url)?;
            return Ok(Moved { chains: 0, place, unnamed: Vec::new() });
        }
        return Err(StoreError::OtherStore { dir: dir.path().to_owned(), used });
    }
    let from = Database::open(dir.clone())?;
    let file =
        ServerFile { url: url.to_owned(), host: server::host_to_be(dir)?, identity: DirectoryIdentity::new(dir) };
    let to = Database::on_server(dir.clone(), &file)?;
    to.set_up_copies()?;
    // This transaction keeps other processes from writing to the file. When it ends, the state directory names the server, so
    // no process writes to the file afterwards.
    from.write(Step::SetServer, |old| {
        let running = old.read_all("SELECT frame FROM attempts WHERE ended IS NULL", [], |row| id(row, "frame"))?;
        if let Some(frame) = running.into_iter().chain(held(old, dir)?).next() {
            return Err(StoreError::Running(frame).into());
        }
        let unnamed = to.fill(Step::Import, |new| copy(old, new, &compared(old, new, &place)?))?;
        dir.set_server(&file)?;
        copies::keep_all(&to, None);
        let chains = old.read_one("SELECT count(*) AS chains FROM chains", [], |row| count(row, "chains"))?;
        Ok(Moved { chains, place: place.clone(), unnamed })
    })
}

/// The agents that another process is about to start.
fn held(connection: &Connection, dir: &StateDir) -> TxResult<Vec<FrameId>> {
    let sql = "SELECT id FROM frames WHERE status IN ('ready', 'running', 'waiting')";
    let mut found = connection.read_all(sql, [], |row| id(row, "id"))?;
    found.retain(|frame| Lease::is_held(dir, *frame).unwrap_or(true));
    Ok(found)
}

/// The chains that an earlier move has brought to the server.
struct EarlierMove {
    /// Those that have continued there.
    kept: Vec<FrameId>,
    /// The others.
    replaced: Vec<FrameId>,
}

const LOG: &str = "SELECT e.frame, e.at, e.kind, e.detail FROM events AS e JOIN frames AS f ON f.id = e.frame
     WHERE f.root = ?1 ORDER BY e.seq";

/// Compares the logs of the chains that are in both databases. Fails if one has continued in both.
fn compared(old: &Connection, new: &Connection, place: &str) -> TxResult<EarlierMove> {
    let here = old.read_all("SELECT root FROM chains", [], |row| id::<FrameId>(row, "root"))?;
    let host = |row: &Row<'_>| Ok((id::<FrameId>(row, "root")?, row.get::<_, Option<String>>("host")?));
    let there: HashMap<_, _> = new.read_all("SELECT root, host FROM chains", [], host)?.into_iter().collect();
    let mut earlier = EarlierMove { kept: Vec::new(), replaced: Vec::new() };
    for root in here {
        let Some(host) = there.get(&root) else { continue };
        let [of_old, of_new] = [log(old, root)?, log(new, root)?];
        let shared = of_old.iter().zip(&of_new).take_while(|(one, other)| one == other).count();
        let is_taken = host.as_deref() != new.host();
        match (of_old.len() > shared, of_new.len() > shared || is_taken) {
            (true, true) => return Err(StoreError::MovedBefore { root, place: place.to_owned() }.into()),
            (false, true) => earlier.kept.push(root),
            (_, false) => {
                chains::check_right(new, root, Right::Start)?;
                earlier.replaced.push(root);
            }
        }
    }
    Ok(earlier)
}

/// The entries of a chain's log, to compare them.
fn log(connection: &Connection, root: FrameId) -> TxResult<Vec<(String, i64, String, String)>> {
    connection
        .read_all(LOG, [Id(root)], |row| Ok((row.get("frame")?, row.get("at")?, row.get("kind")?, row.get("detail")?)))
}

/// Returns the chains that have lost their names.
fn copy(old: &Connection, new: &Connection, earlier: &EarlierMove) -> TxResult<Vec<FrameId>> {
    new.defer_references()?;
    tree_rows::collect(new, &earlier.replaced)?;
    for table in TABLES.iter().rev() {
        new.run(&format!("DELETE FROM {} WHERE {}", table.name, table.of_members), [])?;
    }
    tree_rows::collect(old, &earlier.kept)?;
    // A user of the server may add an agent to a chain of this host.
    let (chains, others): (Vec<&Table>, Vec<_>) = TABLES.iter().chain(&OTHERS).partition(|table| table.name == CHAINS);
    for table in chains.into_iter().chain(others) {
        copy_table(old, new, table)?;
    }
    give_up_taken_names(new)
}

/// Removes the names of moved chains that chains of other hosts have.
fn give_up_taken_names(new: &Connection) -> TxResult<Vec<FrameId>> {
    let named = "SELECT root FROM chains WHERE name IS NOT NULL AND host = ?1";
    let mut unnamed = Vec::new();
    for root in new.read_all(named, [new.host()], |row| id(row, "root"))? {
        if frames::existing(new, root)?.state.is_pending() && chains::give_up_if_taken(new, codec::now(), root)? {
            unnamed.push(root);
        }
    }
    Ok(unnamed)
}

/// Copies the rows of a table that do not belong to `members`. All these chains belong to this host from then on.
fn copy_table(old: &Connection, new: &Connection, Table { name: table, of_members }: &Table) -> TxResult<()> {
    let table = *table;
    let columns = tree_rows::columns(old, table)?;
    let host = new.host().filter(|_| table == CHAINS);
    let names: Vec<&str> = columns.iter().map(String::as_str).chain(host.map(|_| "host")).collect();
    let order = if tree_rows::has_seq(table) { "ORDER BY seq" } else { "" };
    let most = AT_ONCE / names.len();
    let mut values: Vec<Value> = Vec::new();
    let insert = |values: &mut Vec<Value>| {
        let row = |at: usize| {
            let marks = (0..names.len()).map(|column| format!("?{}", at * names.len() + column + 1));
            format!("({})", marks.collect::<Vec<_>>().join(", "))
        };
        let rows = (0..values.len() / names.len()).map(row).collect::<Vec<_>>().join(", ");
        if rows.is_empty() {
            return Ok(());
        }
        new.run(&format!("INSERT INTO {table} ({}) VALUES {rows}", names.join(", ")), std::mem::take(values))
    };
    let mut failed = Ok(());
    let rows = format!("SELECT {} FROM {table} WHERE ({of_members}) IS NOT TRUE {order}", columns.join(", "));
    old.each(&rows, [], |row| {
        for at in 0..columns.len() {
            values.push(row.get(at)?);
        }
        values.extend(host.map(|host| Value::from(host.to_owned())));
        if values.len() >= most * names.len() {
            failed = insert(&mut values);
        }
        Ok(if failed.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    failed?;
    insert(&mut values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::housekeeping::retention::Retention;
    use crate::store::testing::{in_file, new, new_server};
    use crate::store::{Decided, NewFrame, Store};

    #[test]
    fn everything_is_moved_once_and_nothing_while_an_agent_runs() {
        let Some(url) = new_server() else { return };
        let (_temp, store) = in_file();
        let (waiting, question) = store.asking("When?\0");
        let caller = store.start(store.root());
        assert!(matches!(move_to(store.dir(), &url), Err(StoreError::Running(frame)) if frame == caller.frame));
        assert_eq!(store.dir().server().unwrap(), None, "nothing has changed");
        store.end(caller, &crate::store::testing::reply("42"));
        // As if a process was killed before the state directory named the server.
        let moved = |url: &str| move_to(store.dir(), url).unwrap().chains;
        assert_eq!(moved(&url), 2);
        let dir = store.dir().path().to_owned();
        std::fs::remove_file(dir.join("server")).unwrap();
        let later = store.root();
        assert_eq!((moved(&url), moved(&url)), (3, 0));
        assert!(
            matches!(store.try_again(later), Err(StoreError::Gone(_))),
            "a process that has the file open cannot write any more"
        );
        let there = Store::open(&dir).unwrap();
        assert_eq!(there.roots().len(), 3);
        there.answer(question, "now").unwrap();
        assert_eq!(there.deliveries(waiting).unwrap().len(), 1);
        let events = |store: &Store| store.events(caller.frame, 0).unwrap().len();
        assert_eq!(events(&there), events(&store));
    }

    #[test]
    fn a_chain_that_has_continued_after_an_interrupted_move_is_not_replaced() {
        let Some(url) = new_server() else { return };
        let (_temp, store) = in_file();
        let (waiting, question) = store.asking("When?");
        let dir = store.dir().path().to_owned();
        // As if a process was killed before the state directory named the server.
        let file = || {
            std::fs::remove_file(dir.join("server")).unwrap();
            Store::open(&dir).unwrap()
        };
        let moved = |store: &Store| move_to(store.dir(), &url);
        let delivered = || Store::open(&dir).unwrap().deliveries(waiting).unwrap().len();
        moved(&store).unwrap();
        Store::open(&dir).unwrap().answer(question, "now").unwrap();
        moved(&file()).unwrap();
        assert_eq!(delivered(), 1, "the answer is still there");
        let again = file();
        let other = again.root();
        moved(&again).unwrap();
        assert_eq!((delivered(), Store::open(&dir).unwrap().roots().len()), (1, 2));
        // It has continued here, too.
        let again = file();
        again.answer(question, "later").unwrap();
        let refused = moved(&again).unwrap_err();
        assert!(matches!(refused, StoreError::MovedBefore { root, .. } if root == waiting), "{refused}");
        assert_eq!(again.dir().server().unwrap(), None);
        let removed = again.housekeeping().removable(waiting.into()).unwrap().pop().unwrap();
        let all = Retention { before: jiff::Timestamp::MAX, failed: true, open: true };
        again.remove_trees(&[Decided { root: waiting, attempts: removed.attempts }], all);
        moved(&again).unwrap();
        assert_eq!(delivered(), 1);
        assert!(Store::open(&dir).unwrap().frame(other).unwrap().is_some());
    }

    #[test]
    fn a_chain_without_a_host_stays_without_one() {
        let Some(url) = new_server() else { return };
        let [(_one, first), (_other, second)] = [in_file(), in_file()];
        first.root();
        move_to(first.dir(), &url).unwrap();
        let there = Store::open(first.dir().path()).unwrap();
        let free = "UPDATE chains SET host = NULL";
        there.database().query(|connection| connection.run(free, [])).unwrap();
        second.root();
        move_to(second.dir(), &url).unwrap();
        let hosts = "SELECT count(*) AS hosts FROM chains WHERE host IS NOT NULL";
        let hosts: i64 =
            there.database().query(|connection| connection.read_one(hosts, [], |row| row.get("hosts"))).unwrap();
        assert_eq!(hosts, 1);
    }

    #[test]
    fn a_moved_chain_gives_its_name_up_to_one_that_is_there() {
        let Some(url) = new_server() else { return };
        let [(_one, first), (_other, second)] = [in_file(), in_file()];
        let [(there, none), (moved, unnamed)] = [&first, &second].map(|store| {
            let root = store.create_root(&NewFrame { name: Some("nightly".parse().unwrap()), ..new("task") }).unwrap();
            (root, move_to(store.dir(), &url).unwrap().unnamed)
        });
        let server = Store::open(second.dir().path()).unwrap();
        let names = [there, moved].map(|root| server.chain_of(root).unwrap().name);
        assert_eq!(names, [Some("nightly".to_owned()), None]);
        assert_eq!((none, unnamed), (vec![], vec![moved]));
    }
}
