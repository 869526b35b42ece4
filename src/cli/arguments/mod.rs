//! Arguments that several commands have.

pub(crate) mod candidates;
pub(crate) mod claude_args;
pub(crate) mod commands;
pub(crate) mod duration;
pub(crate) mod form;
pub(crate) mod instructions;
pub(crate) mod limits;
pub(crate) mod positions;
pub(crate) mod tasks;
