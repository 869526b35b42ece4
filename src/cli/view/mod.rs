//! Commands that show chains.

pub(crate) mod doctor;
pub(crate) mod history;
pub(crate) mod logs;
pub(crate) mod ls;
pub(crate) mod metrics;
pub(crate) mod notifications;
pub(crate) mod open;
pub(crate) mod show;
pub(crate) mod stats;
pub(crate) mod tree;
pub(crate) mod unnamed;
