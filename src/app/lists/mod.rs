//! Lists of chains, questions and costs, and details of single entries. Every front shows the same selections and views.

pub(crate) mod board;
pub(crate) mod chains;
pub(crate) mod first_words;
pub(crate) mod history;
pub(crate) mod logs;
pub(crate) mod notifications;
pub(crate) mod project;
pub(crate) mod questions;
pub(crate) mod single_agent;
pub(crate) mod stats;
pub(crate) mod tree;
pub(crate) mod whole_question;
