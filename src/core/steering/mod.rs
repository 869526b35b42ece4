//! What people, and agents above, want of agents from outside: that they stop, and what they are told.

pub(crate) mod message;
pub(crate) mod origin;
pub(crate) mod stop_order;
