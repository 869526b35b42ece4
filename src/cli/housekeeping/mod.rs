//! Commands that maintain the state directory.

pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod export;
pub(crate) mod fsck;
pub(crate) mod gc;
pub(crate) mod import;
pub(crate) mod service;
