//! How people and agents above steer agents: stops and messages.

pub(crate) mod afresh;
pub(crate) mod message;
pub(crate) mod origin;
pub(crate) mod stop_order;
