//! What is shown of chains while this process drives them.

mod beside;
pub(crate) mod display;
mod rows;
pub(crate) mod stream;
