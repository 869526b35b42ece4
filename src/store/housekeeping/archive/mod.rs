//! A chain leaves as an archive, and an archive becomes a chain.

mod adapt;
pub(crate) mod error;
mod export;
mod hashed;
mod import;
mod reader;
mod refusal;
mod unpack;
mod writer;

pub(crate) use adapt::{Brought, Here};
pub(crate) use unpack::Unpacked;
