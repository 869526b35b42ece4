//! Executes statements, with SQLite or PostgreSQL, and reads and writes object storage. All other SQL of the store is written once, for
//! both.

pub(crate) mod connection;
pub(crate) mod dialect;
pub(crate) mod fault;
pub(crate) mod object_storage;
pub(crate) mod postgres;
pub(crate) mod postgres_connecting;
pub(crate) mod postgres_session;
pub(crate) mod postgres_values;
pub(crate) mod row;
pub(crate) mod server_address;

pub(crate) use crate::store::sql::engine::connection::Connection;
pub(crate) use crate::store::sql::engine::fault::{Fault, TxResult};
pub(crate) use crate::store::sql::engine::row::{Row, Values};
