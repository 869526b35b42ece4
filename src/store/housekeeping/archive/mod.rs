//! A chain leaves as an archive, and an archive becomes a chain.

pub(in crate::store) mod adapt;
pub(crate) mod error;
mod hashed;
mod reader;
pub(in crate::store) mod refusal;
pub(in crate::store) mod unpack;
pub(in crate::store) mod writer;

pub(crate) use adapt::{Brought, Here};
pub(crate) use unpack::Unpacked;
