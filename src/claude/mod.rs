//! Everything that is specific to Claude Code: finding the program, starting it, reading what it prints, deciding how
//! an attempt ended, and its transcripts. `docs/claude-code.md` lists the facts that this relies on.

pub mod answered;
pub mod command;
pub mod diagnosis;
pub mod ending;
pub mod hook;
pub mod output;
pub mod permission_tool;
pub mod process;
pub mod program;
pub mod question;
pub mod remains;
pub mod reopened;
pub mod settings;
pub mod surroundings;
pub mod survivors;
pub mod transcript;
pub mod version;
