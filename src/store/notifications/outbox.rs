//! The door to the notifications: nothing else of the store is needed to send them.

use crate::store::database::store::Store;

/// What a person wants to be told. It is noted in the transaction that records what happened, and one process sends each.
#[derive(Clone, Copy, Debug)]
pub struct Outbox<'a>(pub(in crate::store) &'a Store);

impl Store {
    /// The notifications in this database.
    #[must_use]
    pub fn outbox(&self) -> Outbox<'_> {
        Outbox(self)
    }
}
