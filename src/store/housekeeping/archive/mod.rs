//! Writes a chain to an archive, and reads one from an archive.

pub(crate) mod adapt;
mod hashed;
mod reader;
pub(crate) mod unpack;
pub(crate) mod writer;

pub(crate) use adapt::{Adapted, Brought, Here};
pub(crate) use unpack::Unpacked;
