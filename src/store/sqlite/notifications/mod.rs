//! Operations on notifications: an outbox, from which a person's processes send.

pub(crate) mod listed;
pub(crate) mod sending;
pub(crate) mod stalls;
pub(crate) mod subscription;
