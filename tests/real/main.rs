//! The program with the real Claude Code, pinned, against a scripted Messages API.
//!
//! Only this shows that the program works: the facts about Claude Code that the code relies on are seen here as they
//! are, on every version that is supported.

#[path = "../support/namespace.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod namespace;
#[path = "../support/network.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod network;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../support/postgres.rs"]
mod postgres;
#[path = "../support/pty.rs"]
mod pty;
#[path = "../support/small_disk.rs"]
mod small_disk;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/trial.rs"]
mod trial;

use support::marked;

mod afresh;
mod alone;
mod around_pauses;
mod ask_in_file;
mod asking;
mod background;
mod beside;
mod birthday;
mod busy;
mod by_itself;
mod chain;
#[path = "../crash/chance.rs"]
mod chance;
mod continued;
mod costs;
mod cron;
mod deep;
mod delivery;
mod denied;
mod early_answers;
mod environment;
mod events;
mod exact;
mod fan_out;
mod forks;
mod handoffs;
mod hostile_places;
mod hosts;
mod identity;
mod in_background;
mod interactive;
mod jobs;
mod kept;
mod killed;
mod killed_at_random;
mod killed_with_state;
mod lingering;
mod lost_hosts;
mod mcp;
mod native_agents;
mod open;
mod patterns;
mod peer;
mod permissions;
mod places;
mod plans;
mod policies;
mod processes;
mod prompt_hooks;
mod questions;
mod redaction;
mod reply_schemas;
mod returns;
mod rights;
mod situation;
mod stale_files;
mod steering;
mod stopping;
mod subfolder;
mod suspended;
mod there_and_then;
mod tools;
mod tools_table;
mod transcripts;
mod trouble;
mod trust;
mod unavailable;
mod waits;
mod wakeups;
mod went_on;
mod without_a_pause;
mod worktrees;
