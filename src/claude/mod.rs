//! Everything that is specific to Claude Code: finding the program, starting it, reading what it prints, deciding how
//! an attempt ended, and its transcripts. `docs/claude-code.md` lists the facts that this relies on.

pub(crate) mod doctor;
pub(crate) mod environment;
pub(crate) mod events;
pub(crate) mod installation;
pub(crate) mod options;
pub(crate) mod processes;
pub(crate) mod settings;
pub(crate) mod stream;
pub(crate) mod tools;
pub(crate) mod transcript;

pub(crate) mod ending;
pub(crate) mod invocation;
