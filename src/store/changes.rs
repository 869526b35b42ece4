//! Detects writes by other processes.

use std::path::PathBuf;

use crate::store::error::Result;

/// Detects writes by other connections while the database is open.
pub trait Changes {
    /// A number that changes when another connection has written, at the latest a moment later.
    ///
    /// # Errors
    ///
    /// `StoreError::Gone`, or an error reading the database.
    fn version_of_others(&self) -> Result<i64>;

    /// Whether everything read since a [snapshot](crate::store::Store::read_snapshot) began belongs to one state, because
    /// no other process has written.
    fn is_unchanged(&self) -> bool;

    /// The files in the state directory that change with every write of others. Watch them to be notified of writes.
    fn woken_by(&self) -> Vec<PathBuf>;
}
