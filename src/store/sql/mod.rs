//! All SQL, and the only code that knows about SQLite and PostgreSQL.

mod attempts;
mod chains;
pub(crate) mod database;
mod engine;

pub(crate) mod housekeeping;
mod notifications;
mod operations;
mod requests;
mod steering;
mod tables;

#[cfg(test)]
impl crate::store::Store {
    /// The implementation, for tests of it.
    fn database(&self) -> &database::connection::Database {
        let backend: &dyn std::any::Any = &*self.backend;
        backend.downcast_ref().expect("there is one implementation")
    }

    /// Changes records behind the back of the program.
    fn execute(&self, sql: &str, values: impl engine::Values) {
        self.database().query(|connection| connection.run(sql, values)).unwrap();
    }

    /// SQLite itself.
    fn sqlite(&self) -> &rusqlite::Connection {
        self.database().connection.sqlite().expect("it is SQLite")
    }
}

#[cfg(test)]
mod tests {
    use crate::store::testing::open;

    crate::store::conformance::conformance!(open);
}
