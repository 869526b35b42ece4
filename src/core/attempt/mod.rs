//! Attempts: how one begins, what its agent is told, and what its end means.

pub(crate) mod continuation;
pub(crate) mod decision;
pub(crate) mod delivery;
pub(crate) mod ending;
pub(crate) mod facts;
pub(crate) mod meaning;
pub(crate) mod partial;
pub(crate) mod prompt;
pub(crate) mod rest;
pub(crate) mod salvaged;
pub(crate) mod signal;
pub(crate) mod stop_steps;
