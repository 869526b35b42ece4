//! Commands that take chains to other places.

pub(crate) mod access;
pub(crate) mod export;
pub(crate) mod hosts;
pub(crate) mod import;
pub(crate) mod to_server;
