//! Shows what agents do and did. Nothing here changes a record or a conversation.

pub(crate) mod chain_events;
pub(crate) mod changes;
pub(crate) mod excerpts;
pub(crate) mod follower;
mod log_events;
pub(crate) mod look_times;
pub(crate) mod next_request;
pub(crate) mod now;
mod output;
pub(crate) mod rechecks;
pub(crate) mod reports;

/// How many bytes of a text views keep unless they show everything: an event may have any size.
pub(crate) const TEXT: usize = 10_000;
