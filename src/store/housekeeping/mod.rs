//! Removing, checking, exporting and importing chains.

pub mod doctor;
pub(crate) mod export;
pub(crate) mod export_error;
pub(crate) mod fsck;
pub(crate) mod import;
pub(crate) mod observed;
pub(crate) mod removal;
pub(crate) mod unpack;
