//! Caches the version of each `claude` program, so that it need not be started to find out.

use std::path::Path;

use jiff::Timestamp;

use crate::store::records::KnownProgram;
use crate::store::sql::database::codec::on_host;
use crate::store::sql::engine::{Connection, TxResult};

pub(crate) fn known_program(
    connection: &Connection,
    program: &Path,
    modified: Timestamp,
) -> TxResult<Option<KnownProgram>> {
    let program = on_host(connection, program)?;
    let sql = "SELECT version, refuses_forks FROM versions WHERE program = ?1 AND modified = ?2";
    connection.read_first(sql, (program, nanoseconds(modified)), |row| {
        Ok(KnownProgram { version: row.get("version")?, refuses_forks: row.get("refuses_forks")? })
    })
}

pub(crate) fn remember_program(
    connection: &Connection,
    program: &Path,
    modified: Timestamp,
    known: &KnownProgram,
) -> TxResult<()> {
    let program = on_host(connection, program)?;
    connection.run(
        "INSERT INTO versions (program, modified, version, refuses_forks) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (program) DO UPDATE SET modified = excluded.modified, version = excluded.version,
               refuses_forks = excluded.refuses_forks",
        (program, nanoseconds(modified), &known.version, known.refuses_forks),
    )
}

/// Two builds may be a millisecond apart. All times after the year 2262 are the same here.
fn nanoseconds(at: Timestamp) -> i64 {
    i64::try_from(at.as_nanosecond()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::store;

    #[test]
    fn a_version_is_known_until_the_program_changes() {
        let (_temp, store) = store();
        let program = Path::new("/bin/claude");
        let modified = Timestamp::from_nanosecond(1_795_298_091_000_000_001).unwrap();
        let later = Timestamp::from_nanosecond(1_795_298_091_000_000_002).unwrap();
        let known = |program, modified| store.known_program(program, modified).unwrap();
        let version = |program, modified| known(program, modified).map(|known| known.version);
        let refuses = |program, modified| known(program, modified).unwrap().refuses_forks;
        assert_eq!(known(program, modified), None);
        let remember = |modified, version: &str, refuses_forks| {
            let known = KnownProgram { version: version.to_owned(), refuses_forks };
            store.remember_program(program, modified, &known).unwrap();
        };
        remember(modified, "2.1.197", false);
        assert_eq!(version(program, modified).as_deref(), Some("2.1.197"));
        assert_eq!(known(program, later), None);
        assert!(!refuses(program, modified));
        remember(modified, "2.1.197", true);
        assert!(refuses(program, modified));
        remember(later, "2.1.330", false);
        assert_eq!(version(program, later).as_deref(), Some("2.1.330"));
        assert!(!refuses(program, later), "another program may run them");
    }
}
