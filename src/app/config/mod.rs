//! Settings in layers: defaults, the user's file, the project's file, the environment. Options take precedence over all of
//! them.
//!
//! A project's file may come from other people. Until the user trusts its content, it can only narrow the settings of the
//! layers below it.

pub(crate) mod chain_defaults;
pub(crate) mod change;
mod changed_text;
pub(crate) mod file;
pub(crate) mod layers;
pub(crate) mod setting;
pub(crate) mod sources;
pub(crate) mod trust;
pub(crate) mod value;
