//! Commands that continue chains without a person.

mod for_a_person;
pub(crate) mod resume_all;
pub(crate) mod watch;
