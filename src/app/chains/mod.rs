//! What can be done with a chain, or an agent of one.

pub(crate) mod remove;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod stop;
pub(crate) mod tell;
pub(crate) mod unattended;
