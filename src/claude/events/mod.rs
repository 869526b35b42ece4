//! What `claude` prints, as events that do not depend on its formats.

pub(crate) mod line_cutter;
pub(crate) mod translate;
