//! Everything that is specific to Claude Code: finding the program, starting it, reading what it prints, deciding how
//! an attempt ended, and its transcripts. `docs/claude-code.md` lists the facts that this relies on.

pub mod ancestry;
pub mod answered;
pub mod beside;
pub mod command;
pub mod cron;
pub mod denied;
pub mod diagnosis;
pub mod ending;
pub mod environment;
pub mod hook;
pub mod login;
pub mod marks;
pub mod output;
pub mod permission_tool;
pub mod plan;
pub mod process;
mod processes;
pub mod program;
pub mod question;
pub mod recorded;
pub mod refusal;
pub mod remains;
pub mod reopened;
pub mod rewrite;
pub mod rules;
pub mod schedule;
pub mod settings;
pub mod surroundings;
pub mod survivors;
pub mod transcript;
pub mod user_hooks;
pub mod variables;
pub mod version;
pub mod whereabouts;
pub mod written;
