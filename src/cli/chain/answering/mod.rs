//! Commands with which people answer agents.

pub(crate) mod answer;
pub(crate) mod editor;
pub(crate) mod inbox;
mod keys;
mod prompt;
mod refused;
mod typed;
mod walk;
