//! The rules of the program, without effects: what a frame is, which states it passes through, what the end of an attempt does
//! to it, which frame may run next, and what an agent is told.
//!
//! Nothing here reads a file, a clock or the environment, and nothing here knows the database or starts `claude`. Callers
//! gather the facts; these modules decide.

pub(crate) mod agent;
pub(crate) mod attempt;
pub(crate) mod chain;
pub(crate) mod events;
pub(crate) mod housekeeping;
pub(crate) mod notifications;
pub(crate) mod posted;
pub(crate) mod requests;
pub(crate) mod steering;
pub(crate) mod text;
pub(crate) mod waits;

pub(crate) mod id;
