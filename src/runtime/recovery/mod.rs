//! What can be continued from after a death, and how it is restored.

pub(crate) mod diverged_session;
pub(crate) mod foreign_session;
pub(crate) mod restore;
pub(crate) mod room;
