//! Removing, checking, exporting and importing chains.

pub(crate) mod archive;
pub(crate) mod doctor;
pub(crate) mod door;
pub(crate) mod fsck;
pub(crate) mod observed;
pub(crate) mod orphan_files;
pub(crate) mod removal;
pub(crate) mod workers;
