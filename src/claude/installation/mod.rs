//! The Claude Code that is installed: its program, its version, and whether it takes what it is given.

pub(crate) mod program;
pub(crate) mod refusal;
pub(crate) mod version;
