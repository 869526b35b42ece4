//! Environment variables: which ones matter to `claude`, which it inherits, and which are recorded.

pub mod config_dir;
pub(crate) mod credentials;
pub mod inherited;
pub mod recorded;
pub mod variables;
