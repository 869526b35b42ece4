//! A chain leaves as an archive, and an archive becomes a chain.

pub(in crate::store) mod adapt;
mod hashed;
mod reader;
pub(in crate::store) mod unpack;
pub(in crate::store) mod writer;

pub(crate) use adapt::{Adapted, Brought, Here};
pub(crate) use unpack::Unpacked;
