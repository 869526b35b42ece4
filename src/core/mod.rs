//! The rules of the program, without effects: what a frame is, which states it passes through, what the end of an
//! attempt does to it, which frame may run next, and what an agent is told.
//!
//! Nothing here reads a file, a clock or the environment, and nothing here knows the database or `claude`'s command
//! line. Callers bring the facts; these modules decide.

pub mod archive;
pub mod blocker;
pub mod call;
pub mod changes;
pub mod check;
pub mod event;
pub mod finding;
pub mod flaw;
pub mod frame;
pub mod group;
pub mod hold;
pub mod id;
pub mod launch;
pub mod limits;
mod loose;
pub mod moves;
pub mod outcome;
pub mod pause;
pub mod prompt;
pub mod question;
pub mod request;
pub mod retention;
pub mod shell;
pub mod signal;
pub mod state;
pub mod stream;
pub mod tree;
pub mod worktree;
