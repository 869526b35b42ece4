//! Maintains the state directory, and moves chains to other machines. Only people can do this.

pub(crate) mod access;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod fsck;
pub(crate) mod gc;
pub(crate) mod hosts;
pub(crate) mod import;
pub(crate) mod moving;
pub(crate) mod service;
pub(crate) mod setup;
