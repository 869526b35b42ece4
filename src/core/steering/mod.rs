//! How people and agents above steer agents: stops and messages.

pub(crate) mod fresh_start;
pub(crate) mod message;
pub(crate) mod origin;
pub(crate) mod stop_order;
