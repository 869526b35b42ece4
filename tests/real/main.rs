//! The program with the real Claude Code, pinned, against a scripted Messages API.
//!
//! Only this shows that the program works: the facts about Claude Code that the code relies on are seen here as they
//! are, on every version that is supported.

#[path = "../support/mod.rs"]
mod support;

mod birthday;
mod chain;
#[path = "../crash/chance.rs"]
mod chance;
mod deep;
mod delivery;
mod fan_out;
mod interactive;
mod kept;
mod killed;
mod killed_at_random;
mod meanwhile;
mod peer;
mod permissions;
mod processes;
mod questions;
mod subfolder;
mod suspended;
mod transcripts;
mod trouble;
mod unavailable;
mod worktrees;
