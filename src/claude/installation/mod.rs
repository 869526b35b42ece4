//! The Claude Code that is installed: its program, its version, and whether it takes what it is given.

pub mod program;
pub mod refusal;
pub mod version;
