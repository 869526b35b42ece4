//! Commands with which people answer agents.

pub(crate) mod answer;
mod checked_answer;
pub(crate) mod editor;
pub(crate) mod inbox;
mod keys;
mod prompt;
mod typed;
mod walk;
