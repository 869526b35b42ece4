//! The database: opening it, its schema and its transactions.

pub(crate) mod codec;
pub(crate) mod connect;
pub(crate) mod connection;
#[cfg(test)]
mod fixtures;
pub(crate) mod migrations;
pub(crate) mod schema;
pub(crate) mod server;
pub(crate) mod server_rights;
mod server_tables;
pub(crate) mod snapshot;
