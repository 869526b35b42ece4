//! All SQL, and the only code that knows about SQLite.

mod attempts;
mod chains;
pub(crate) mod database;

pub(crate) mod housekeeping;
mod notifications;
mod operations;
mod requests;
mod steering;
mod tables;
mod transaction;

#[cfg(test)]
impl crate::store::Store {
    /// The implementation, for tests of it.
    fn sqlite(&self) -> &database::connection::Sqlite {
        let backend: &dyn std::any::Any = &*self.backend;
        backend.downcast_ref().expect("it is SQLite")
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::store::Store;

    fn open(dir: &Path) -> Store {
        Store::open(dir).unwrap()
    }

    crate::store::conformance::conformance!(open);
}
