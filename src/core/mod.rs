//! The rules of the program, without effects: what a frame is, which states it passes through, what the end of an
//! attempt does to it, which frame may run next, and what an agent is told.
//!
//! Nothing here reads a file, a clock or the environment, and nothing here knows the database or starts `claude`.
//! Callers bring the facts; these modules decide.

pub(crate) mod approval;
pub mod archive;
pub mod asking_hooks;
pub mod background;
mod bars;
pub mod beginning;
pub mod beside;
pub mod blocker;
pub mod call;
pub mod changes;
pub mod check;
pub mod claude_args;
mod claude_options;
pub mod cron_expression;
pub(crate) mod cut_short;
pub mod delivery;
pub mod denied;
pub(crate) mod escape;
pub mod event;
pub(crate) mod extent;
mod fence;
pub mod finding;
pub mod flaw;
pub mod frame;
pub mod group;
pub mod hold;
pub mod id;
pub mod inventory;
pub mod jobs;
pub mod launch;
pub mod limits;
pub(crate) mod loose;
pub mod modes;
pub mod moves;
pub mod origin;
pub mod outcome;
pub mod pause;
pub mod plan;
pub(crate) mod progress;
pub mod prompt;
pub mod question;
pub mod record;
pub mod request;
pub mod result_event;
pub mod retention;
pub mod rights;
pub mod scheduled;
pub mod shell;
pub mod signal;
pub mod situation;
pub mod state;
pub mod stopping;
pub mod stream;
pub mod tree;
mod unfinished;
pub mod way;
pub mod worktree;
