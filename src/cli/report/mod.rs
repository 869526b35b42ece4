//! Results and errors as people see them.

pub(crate) mod chain_status;
pub(crate) mod costs;
pub(crate) mod denied;
pub(crate) mod event_lines;
pub(crate) mod history;
pub(crate) mod live;
pub(crate) mod one_line;
pub(crate) mod question_text;
pub(crate) mod waits;
