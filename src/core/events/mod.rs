//! What agents do, event by event, and what follows from that.

pub(crate) mod activity;
pub(crate) mod agent_event;
pub(crate) mod call_line;
pub(crate) mod event_words;
pub(crate) mod log_entry;
