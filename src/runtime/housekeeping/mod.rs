//! `gc`, `rm`, `fsck` and `doctor`.

pub(crate) mod cron;
pub(crate) mod doctor;
pub(crate) mod fsck;
pub(crate) mod gc;
pub(crate) mod removal;
pub(crate) mod service;
