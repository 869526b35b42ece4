//! Attempts: how one begins, what its agent is told, and what its end means.

pub mod continuation;
pub mod decision;
pub mod delivery;
pub mod ending;
pub mod facts;
pub mod meaning;
pub mod prompt;
pub mod rest;
pub mod salvage;
pub mod signal;
pub mod stopping;
pub mod usage;
