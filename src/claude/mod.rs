//! Everything that is specific to Claude Code: finding the program, starting it, reading what it prints, deciding how
//! an attempt ended, and its transcripts. `docs/claude-code.md` lists the facts that this relies on.

pub mod doctor;
pub mod environment;
pub mod installation;
pub mod options;
pub mod processes;
pub mod settings;
pub mod stream;
pub mod tools;
pub mod transcript;

pub mod ending;
pub mod invocation;
