//! Commands with which a person steers chains from any terminal.

pub(crate) mod name;
pub(crate) mod stop;
pub(crate) mod tell;
