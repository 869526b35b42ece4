//! Operations on a chain, or on one of its agents.

pub(crate) mod above;
pub(crate) mod afresh;
pub(crate) mod estimate;
pub(crate) mod in_background;
pub(crate) mod open;
pub(crate) mod remove;
pub(crate) mod rename;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod stop;
pub(crate) mod tell;
pub(crate) mod unattended;
