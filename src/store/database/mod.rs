//! The database: opening it, its schema and its errors.

pub(crate) mod codec;
#[cfg(test)]
mod fixtures;
pub(crate) mod full_disk;
pub(crate) mod migrations;
pub(crate) mod open;
pub(crate) mod schema;
pub(crate) mod snapshot;
pub(crate) mod store;
