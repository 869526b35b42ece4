//! Commands that start, continue and answer chains.

pub(crate) mod answering;
pub(crate) mod ask;
pub(crate) mod drive;
pub(crate) mod questions;
pub(crate) mod request_from_agent;
pub(crate) mod resume;
pub(crate) mod rm;
pub(crate) mod spawn;
pub(crate) mod steering;
pub(crate) mod unattended;
pub(crate) mod wait;
