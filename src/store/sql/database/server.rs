//! A database on a PostgreSQL server, which several state directories can share.

use std::cell::OnceCell;
use std::fs::File;

use uuid::Uuid;

use crate::store::error::{Result, StoreError};
use crate::store::files::state_dir::StateDir;
use crate::store::files::state_dir::server_file::{DirectoryIdentity, ServerFile};
use crate::store::sql::database::migrations::STEPS;
use crate::store::sql::database::server_tables::statements;
use crate::store::sql::engine::object_storage::ObjectStorage;
use crate::store::sql::engine::postgres::Client;
use crate::store::sql::engine::server_address::{Address, OTHER_VERSION, place};
use crate::store::sql::engine::{Connection, Fault, TxResult};

/// The server of an open database.
#[derive(Debug)]
pub(crate) struct Server {
    /// Its address, without a password.
    pub(crate) place: String,
    /// The object storage for the files of agents.
    copies: Option<String>,
    opened: OnceCell<ObjectStorage>,
}

/// The newest version of the tables that this program knows.
const VERSION: i64 = 1;

/// The oldest version of PostgreSQL with generated columns.
const OLDEST: i64 = 120_000;

/// Marks the schema as created by this program.
const MARK: &str = "agent-cli";

/// Makes processes that create the tables at the same time take turns.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7093874229)";

/// Connects to the server of a state directory, and creates the tables if they do not exist.
pub(crate) fn open(file: &ServerFile, dir: &StateDir) -> Result<(Client, Server)> {
    dir.create()?;
    if file.identity.differs(&DirectoryIdentity::new(dir)) {
        return Err(StoreError::CopiedDirectory(dir.path().to_owned()));
    }
    let address = Address::parse(&file.url)?;
    let server = Server { place: place(&address.config), copies: address.copies.clone(), opened: OnceCell::new() };
    let connection = Connection::Postgres(Client::new(address, file.host.clone(), dir.notified())?);
    let known = |fault: Fault| fault.in_database(server.place.clone().into());
    let mut found = version(&connection).map_err(known)?;
    if let Found::Nothing = found {
        make(&connection, &server.place).map_err(known)?;
        found = version(&connection).map_err(known)?;
    }
    match found {
        Found::Version(VERSION) => {}
        Found::Version(found) => {
            let (found, known) = (u32::try_from(found).unwrap_or(u32::MAX), VERSION.unsigned_abs() as u32);
            return Err(StoreError::Newer { path: server.place.into(), found, known });
        }
        Found::NoAccess(user) => return Err(StoreError::NoAccess { user, place: server.place }),
        Found::Nothing | Found::Foreign => {
            return Err(StoreError::NotADatabase(format!("{} (schema agent_cli)", server.place).into()));
        }
    }
    let Connection::Postgres(client) = connection else { unreachable!("it was just made") };
    Ok((client, server))
}

/// The address of a server, without its password.
pub(crate) fn place_of(url: &str) -> Result<String> {
    Ok(place(&Address::parse(url)?.config))
}

/// Makes a state directory use the database on a server from now on.
pub(crate) fn choose(dir: &StateDir, url: &str) -> Result<()> {
    let wanted = Address::parse(url)?.config;
    let known = dir.server()?;
    if known.as_ref().is_some_and(|known| known.url == url) {
        return Ok(());
    }
    dir.create()?;
    let broken = |error| StoreError::io(dir.path(), error);
    let guard = File::open(dir.path()).map_err(broken)?;
    // Another process may be choosing a server, too. It holds the lock for milliseconds.
    guard.lock().map_err(broken)?;
    let host = match dir.server()? {
        Some(known) => {
            let used = place(&Address::parse(&known.url)?.config);
            // The password and the options may change.
            if used != place(&wanted) {
                return Err(StoreError::OtherStore { dir: dir.path().to_owned(), used });
            }
            known.host
        }
        None if dir.database().exists() => {
            let used = dir.database().display().to_string();
            return Err(StoreError::OtherStore { dir: dir.path().to_owned(), used });
        }
        None => host_to_be(dir)?,
    };
    let file = ServerFile { url: url.to_owned(), host, identity: DirectoryIdentity::new(dir) };
    // A mistyped address is not kept.
    let (client, server) = open(&file, dir)?;
    server.set_up_copies(&Connection::Postgres(client))?;
    dir.set_server(&file)
}

enum Found {
    Nothing,
    Version(i64),
    /// This user may not use the tables.
    NoAccess(String),
    Foreign,
}

/// The version of the tables, from the comment on their schema.
fn version(connection: &Connection) -> TxResult<Found> {
    let sql = "SELECT obj_description(oid, 'pg_namespace') AS mark, session_user::text AS name,
         has_schema_privilege(oid, 'USAGE') AS may_use FROM pg_namespace WHERE nspname = 'agent_cli'";
    let found = connection.read_first(sql, [], |row| {
        Ok((row.get::<_, Option<String>>("mark")?, row.get("name")?, row.get::<_, bool>("may_use")?))
    })?;
    Ok(match found {
        None => Found::Nothing,
        Some((_, user, false)) => Found::NoAccess(user),
        Some((mark, _, true)) => {
            let version =
                mark.as_deref().and_then(|mark| mark.strip_prefix(MARK)).and_then(|rest| rest.trim().parse().ok());
            version.map_or(Found::Foreign, Found::Version)
        }
    })
}

fn make(connection: &Connection, place: &str) -> TxResult<()> {
    let sql = "SELECT current_setting('server_version_num')::bigint AS number";
    let found: i64 = connection.read_one(sql, [], |row| row.get("number"))?;
    if found < OLDEST {
        let why = format!("it is PostgreSQL {}, and agent-cli needs {} or newer", found / 10_000, OLDEST / 10_000);
        return Err(StoreError::Server { place: place.to_owned(), why }.into());
    }
    connection.batch("BEGIN ISOLATION LEVEL READ COMMITTED")?;
    let made = connection.batch(LOCK).and_then(|()| match version(connection)? {
        Found::Nothing => connection.batch(&format!(
            "CREATE SCHEMA agent_cli; {} COMMENT ON SCHEMA agent_cli IS '{MARK} {VERSION}'; COMMIT",
            statements(&STEPS)
        )),
        // Another process was first.
        _ => connection.batch("COMMIT"),
    });
    if made.is_err() {
        let _ = connection.batch("ROLLBACK");
    }
    made
}

/// Fails if a newer program has changed the tables since this one opened them: what this program would write may be useless or
/// harmful.
fn still_known() -> String {
    // A block of code would need the right to use its language. Casting a text that is no number fails, too, and the error quotes it.
    format!(
        "SELECT CASE mark WHEN '{MARK} {VERSION}' THEN 1
           ELSE ('{OTHER_VERSION} ' || regexp_replace(coalesce(mark, ''), '^{MARK} ', '') || ' {VERSION}')::int END
         FROM obj_description('agent_cli'::regnamespace, 'pg_namespace') AS mark"
    )
}

/// What a transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// It reads one state of the database.
    Read,
    /// It writes. These transactions run one after the other in all processes, as in SQLite.
    Write,
    /// It writes only what concerns hosts: leases, copies of files, and the host of a chain, whose row it locks.
    Beside,
}

impl Server {
    /// The object storage for the files of agents; `None`: the database has them.
    pub(crate) fn object_storage(&self) -> Result<Option<&ObjectStorage>> {
        let Some(place) = &self.copies else { return Ok(None) };
        if self.opened.get().is_none() {
            let _ = self.opened.set(ObjectStorage::new(place)?);
        }
        Ok(self.opened.get())
    }

    /// Prepares and checks the object storage.
    pub(crate) fn set_up_copies(&self, connection: &Connection) -> Result<()> {
        let Some(place) = &self.copies else { return Ok(()) };
        let known = connection.finds("SELECT 1 FROM objects WHERE place = ?1 LIMIT 1", [place]);
        // If it has objects, a directory that is missing is not mounted.
        if !known.map_err(|fault| fault.in_database(self.place.clone().into()))? {
            ObjectStorage::make_directory(place)?;
        }
        self.object_storage()?.map_or(Ok(()), ObjectStorage::check)
    }

    /// The address of the object storage for the files of agents; `None`: the database has them.
    pub(crate) fn copies_place(&self) -> Option<&str> {
        self.copies.as_deref()
    }

    /// Runs a transaction.
    pub(crate) fn transaction<T>(
        &self,
        client: &Client,
        access: Access,
        work: impl FnOnce() -> TxResult<T>,
    ) -> TxResult<T> {
        let begin = match access {
            Access::Write => format!(
                "BEGIN ISOLATION LEVEL READ COMMITTED; UPDATE writes SET number = number + 1; NOTIFY agent_cli, '{}'; {}",
                client.token(),
                still_known()
            ),
            Access::Beside => format!("BEGIN ISOLATION LEVEL READ COMMITTED; {}", still_known()),
            Access::Read => {
                client.begin_read()?;
                let outcome = work();
                client.end_read()?;
                return outcome;
            }
        };
        let done = client.batch(&begin).and_then(|()| work()).and_then(|outcome| {
            client.batch("COMMIT")?;
            Ok(outcome)
        });
        if done.is_err() {
            // If this fails, the connection is lost, and the transaction with it.
            let _ = client.batch("ROLLBACK");
        }
        done
    }
}

/// The identifier that a state directory will have. It is recorded first, so that it is the same after the process was killed.
pub(crate) fn host_to_be(dir: &StateDir) -> Result<String> {
    dir.host(new_host)
}

/// A new identifier of a state directory: the name of its machine, and a random part, because a machine can have several.
fn new_host() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || "-.".contains(*c)).take(40).collect();
    let id = Uuid::new_v4().simple().to_string();
    format!("{}-{}", if name.is_empty() { "host" } else { &name }, &id[..6])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failpoint::Step;
    use crate::store::testing::{end_connections, new_server, store};

    const RENAME: &str = "UPDATE frames SET title = 'changed'";

    /// What is added later is protected, too.
    #[test]
    fn every_table_and_function_keeps_limited_users_within_their_rights() {
        if new_server().is_none() {
            return;
        }
        let (_temp, store) = store();
        let names = |sql: &str| -> Vec<String> {
            store.database().query(|connection| connection.read_all(sql, [], |row| row.get("name"))).unwrap()
        };
        let here = "nspname = 'agent_cli'";
        let open = "NOT relrowsecurity OR relname <> 'rights' AND NOT EXISTS (SELECT 1 FROM pg_trigger AS t
             WHERE t.tgrelid = c.oid AND t.tgname = 'guard')";
        let tables = format!(
            "SELECT relname::text AS name FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace
             WHERE {here} AND relkind = 'r' AND ({open})"
        );
        assert_eq!(names(&tables), [] as [&str; 0]);
        // Functions that run as the owner find nothing that another user has made, and no user attaches them to other tables.
        let functions = format!(
            "SELECT proname::text AS name FROM pg_proc JOIN pg_namespace AS n ON n.oid = pronamespace WHERE {here} AND prosecdef
             AND (proconfig IS DISTINCT FROM ARRAY['search_path=pg_catalog, pg_temp']
               OR prorettype = 'trigger'::regtype AND has_function_privilege('pg_monitor', pg_proc.oid, 'EXECUTE'))"
        );
        assert_eq!(names(&functions), [] as [&str; 0]);
    }

    #[test]
    fn nothing_is_written_to_tables_that_a_newer_program_has_changed() {
        if new_server().is_none() {
            return;
        }
        let (_temp, store) = store();
        let root = store.root();
        let mark = |mark: &str| {
            let sql = format!("COMMENT ON SCHEMA agent_cli IS '{mark}'");
            store.database().query(|connection| connection.batch(&sql)).unwrap();
            store.try_again(root).unwrap_err()
        };
        let newer = mark(&format!("{MARK} 9"));
        assert!(matches!(newer, StoreError::Newer { found: 9, known: 1, .. }), "{newer}");
        assert!(matches!(mark("of another program"), StoreError::NotADatabase(_)));
        assert_eq!(store.roots().len(), 1);
    }

    #[test]
    fn what_only_reads_begins_again_on_another_connection() {
        if new_server().is_none() {
            return;
        }
        let (_temp, store) = store();
        let root = store.root();
        for _ in 0..3 {
            end_connections(&store);
            // A statement that is repeated is prepared on each connection.
            for _ in 0..5 {
                let trees = store.trees(&[root.into(), root.into()]).unwrap();
                assert_eq!(trees.iter().map(|tree| tree.all().count()).collect::<Vec<_>>(), [1, 1]);
                assert_eq!(store.spent(root).unwrap().attempts, 0);
            }
        }
        let counted = "SELECT count(*) AS frames FROM frames";
        let count = |connection: &Connection| connection.read_one(counted, [], |row| row.get::<_, i64>("frames"));
        let read = store.database().read(|connection| {
            let before = count(connection)?;
            end_connections(&store);
            Ok((before, count(connection)?))
        });
        assert!(read.is_err(), "another connection would read another state: {read:?}");
        assert_eq!(store.database().read(count).unwrap(), 1);
    }

    #[test]
    fn a_statement_that_fails_does_not_affect_those_that_were_sent_ahead_of_others() {
        if new_server().is_none() {
            return;
        }
        let (_temp, store) = store();
        store.root();
        let sql = "SELECT 1 / ?1::bigint AS number";
        let numbers = |values: &[i64]| {
            store.database().read(|connection| {
                for value in values {
                    connection.send_ahead(sql, [value])?;
                }
                let number = |value: &i64| connection.read_one(sql, [value], |row| row.get::<_, i64>("number"));
                values.iter().map(number).collect::<TxResult<Vec<_>>>()
            })
        };
        assert_eq!(numbers(&[1, 1, 2]).unwrap(), [1, 1, 0]);
        assert!(numbers(&[1, 0, 1]).unwrap_err().to_string().contains("division by zero"));
        assert_eq!(numbers(&[2, 1]).unwrap(), [0, 1]);
        // What nobody reads is forgotten.
        store.database().read(|connection| connection.send_ahead(sql, [0])).unwrap();
        assert!(store.database().query(|connection| connection.finds(sql, [1])).unwrap());
    }

    #[test]
    fn a_transaction_of_which_a_part_has_failed_changes_nothing() {
        // Without a server, the tests use a file.
        if new_server().is_none() {
            return;
        }
        for is_lost in [false, true] {
            let (_temp, store) = store();
            let root = store.root();
            let title = || store.roots()[0].title.clone();
            let before = title();
            let written = store.database().write(Step::ChangeChain, |connection| {
                connection.run(RENAME, [])?;
                connection.defer_references()?;
                if is_lost {
                    end_connections(&store);
                }
                // Whoever ignores an error must not hide that the server has rolled everything back.
                let _ = connection.run(if is_lost { RENAME } else { "UPDATE nothing SET a = 1" }, []);
                Ok(())
            });
            assert!(written.is_err(), "{is_lost}");
            assert_eq!(title(), before, "{is_lost}");
            assert!(store.try_again(root).is_err());
            store.root();
            assert_eq!(store.roots().len(), 2, "the next transaction succeeds");
        }
    }
}
