//! What can be continued from after a death, and how it is restored.

pub(crate) mod aside;
pub(crate) mod restore;
