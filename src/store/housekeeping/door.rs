//! The door to housekeeping: no chain needs any of it to run.

use crate::store::database::store::Store;

/// What looks after the database and the state directory as a whole: `gc`, `fsck`, `doctor`, `export` and `import`.
#[derive(Clone, Copy, Debug)]
pub struct Housekeeping<'a>(pub(in crate::store) &'a Store);

impl Store {
    /// All chains in this database.
    #[must_use]
    pub fn housekeeping(&self) -> Housekeeping<'_> {
        Housekeeping(self)
    }
}
