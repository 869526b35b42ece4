//! What people and agents above do to agents of a chain: stop, pause, tell, continue.

pub(crate) mod asked;
pub(crate) mod opening;
pub(crate) mod report;
pub(crate) mod stop;
pub(crate) mod tell;
