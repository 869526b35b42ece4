//! Operations with which people and agents above steer agents of a chain: stop, pause, tell, continue.

pub(crate) mod afresh_advice;
pub(crate) mod opening;
pub(crate) mod stop;
pub(crate) mod stop_notice;
pub(crate) mod tell;
pub(crate) mod try_again;
