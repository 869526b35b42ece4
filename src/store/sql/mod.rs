//! All SQL, and the only code that knows about SQLite and PostgreSQL.

mod attempts;
mod chains;
pub(crate) mod database;
mod engine;
mod hosts;
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
pub(crate) mod testing {
    use crate::core::id::FrameId;
    use crate::store::Store;
    use crate::store::sql::database::codec::Id;

    /// Ends the leases of all hosts, as if nobody had renewed them for long.
    pub(crate) fn end_leases(store: &Store) {
        store.execute("UPDATE hosts SET expires = 0", []);
    }

    /// Removes the copies of an agent's files, as if its host had been killed before it made them.
    pub(crate) fn lose_copies(store: &Store, frame: FrameId) {
        store.execute("DELETE FROM copies WHERE frame = ?1", [Id(frame)]);
    }
}

#[cfg(test)]
mod tests {
    use crate::store::testing::open;

    crate::store::conformance::conformance!(open);
}
