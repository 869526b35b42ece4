//! A full disk, where a test wants one.

use rusqlite::Connection;

use crate::failpoint::{self, Step};
use crate::store::sqlite::transaction::TxResult;

/// Has SQLite itself run out of space, where a test wants that. It does not get any for as long as this process lives.
pub(crate) fn meet_full_disk(connection: &Connection, step: Step) -> TxResult<()> {
    if failpoint::is_full(step) {
        let pages: u32 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
        connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
        connection.execute_batch("CREATE TABLE filler (x); INSERT INTO filler VALUES (zeroblob(10000000));")?;
    }
    Ok(())
}
