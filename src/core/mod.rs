//! The rules of the program, without effects: what a frame is, which states it passes through, what the end of an
//! attempt does to it, which frame may run next, and what an agent is told.
//!
//! Nothing here reads a file, a clock or the environment, and nothing here knows the database or starts `claude`.
//! Callers bring the facts; these modules decide.

pub mod agent;
pub mod attempt;
pub mod chain;
pub mod housekeeping;
pub mod requests;
pub mod text;

pub mod id;
