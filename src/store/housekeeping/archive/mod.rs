//! A chain leaves as an archive, and an archive becomes a chain.

pub(crate) mod adapt;
mod hashed;
mod reader;
pub(crate) mod unpack;
pub(crate) mod writer;

pub(crate) use adapt::{Adapted, Brought, Here};
pub(crate) use unpack::Unpacked;
