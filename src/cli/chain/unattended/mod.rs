//! Commands that continue chains without a person.

pub(crate) mod resume_all;
pub(crate) mod watch;
