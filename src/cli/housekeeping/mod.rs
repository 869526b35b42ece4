//! Commands that maintain the state directory, settings and instructions.

pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod fsck;
pub(crate) mod gc;
pub(crate) mod init;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod news;
pub(crate) mod serve;
pub(crate) mod service;
pub(crate) mod transfer;
