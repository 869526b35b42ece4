//! The behaviour of Claude Code that suspended calls rely on, one fact for each test, without this program in between.
//!
//! When a new version of Claude Code breaks something, the name of the test that fails says what changed. The facts are
//! told in the section "Suspended calls" of `docs/claude-code.md`.

#[path = "../support/mod.rs"]
mod support;

mod api_errors;
mod background;
mod cleanup;
mod deferral;
mod delivery;
mod exact;
mod hook_events;
mod identity;
mod other_hooks;
mod permission_tool;
mod permissions;
mod plans;
mod questions;
mod results;
mod schedule;
mod session;
mod settings;
mod several_calls;
mod shells;
mod situation;
mod subagents;
mod surroundings;
mod transcripts;
mod versions;
