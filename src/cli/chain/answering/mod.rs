//! Commands with which people answer agents.

pub(crate) mod answer;
pub(crate) mod editor;
pub(crate) mod inbox;
mod keys;
mod refused;
mod said_back;
mod terminal_prompt;
pub(crate) mod there_and_then;
mod typed;
mod waiting;
mod walk;
