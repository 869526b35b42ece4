//! Whether anybody has written.

use std::path::PathBuf;

use crate::store::error::Result;

/// What others do to the database while it is open.
pub trait Changes {
    /// A number that changes when another connection has written.
    ///
    /// # Errors
    ///
    /// `StoreError::Gone`, or a database that cannot be read.
    fn version_of_others(&self) -> Result<i64>;

    /// Whether everything that was read since a [look](crate::store::Store::read_snapshot) began is one state: nobody has written.
    fn is_unchanged(&self) -> bool;

    /// The files in the state directory that change when anybody writes. Whoever watches them is woken by that.
    fn woken_by(&self) -> Vec<PathBuf>;
}
