//! Commands that continue chains without a person.

mod left;
pub(crate) mod resume_all;
pub(crate) mod watch;
