//! Text of others made harmless, quoted and taken apart.

pub(crate) mod bars;
pub(crate) mod columns;
pub(crate) mod escape;
pub(crate) mod extent;
pub(crate) mod fence;
pub(crate) mod shell;
