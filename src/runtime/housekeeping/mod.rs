//! `gc`, `rm`, `fsck` and `doctor`.

pub mod cron;
pub mod doctor;
pub mod fsck;
pub mod gc;
pub mod removal;
