//! Text: escaping, quoting and parsing what others wrote.

pub(crate) mod bars;
pub(crate) mod escape;
pub(crate) mod extent;
pub(crate) mod fence;
pub(crate) mod json;
pub(crate) mod script;
pub(crate) mod section;
pub(crate) mod shell;
pub(crate) mod time;
pub(crate) mod wrap;
