//! Commands with which people answer agents.

pub(crate) mod answer;
pub(crate) mod editor;
pub(crate) mod inbox;
mod keys;
mod refused;
mod terminal_prompt;
mod typed;
mod walk;
