//! Text: escaping, quoting and parsing what others wrote.

pub(crate) mod age;
pub(crate) mod bars;
pub(crate) mod bytes;
pub(crate) mod columns;
pub(crate) mod duration;
pub(crate) mod escape;
pub(crate) mod extent;
pub(crate) mod fence;
pub(crate) mod json;
pub(crate) mod script;
pub(crate) mod shell;
pub(crate) mod wrap;
