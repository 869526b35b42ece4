//! The database: opening it, its schema and its errors.

pub(crate) mod candidate;
pub(crate) mod codec;
pub(crate) mod error;
#[cfg(test)]
mod fixtures;
pub(crate) mod migrations;
pub(crate) mod open;
pub(crate) mod schema;
pub(crate) mod snapshot;
pub(crate) mod store;
