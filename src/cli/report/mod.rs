//! Formats results and errors for people.

pub(crate) mod costs;
pub(crate) mod denied_calls;
pub(crate) mod estimate;
pub(crate) mod event_lines;
pub(crate) mod history;
pub(crate) mod live;
pub(crate) mod one_line;
pub(crate) mod question_text;
pub(crate) mod status_report;
pub(crate) mod waits;
