//! Detects writes by other processes.

use std::path::PathBuf;

use crate::store::error::Result;

/// Detects what other connections do to the database while it is open.
pub trait Changes {
    /// A number that changes when another connection has written.
    ///
    /// # Errors
    ///
    /// `StoreError::Gone`, or a database that cannot be read.
    fn version_of_others(&self) -> Result<i64>;

    /// Whether everything that was read since a [look](crate::store::Store::read_snapshot) began belongs to one state,
    /// because no other process has written.
    fn is_unchanged(&self) -> bool;

    /// The files in the state directory that change at every write. Watch them to be woken by one.
    fn woken_by(&self) -> Vec<PathBuf>;
}
