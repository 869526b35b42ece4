//! Environment variables: which ones matter to `claude`, which it inherits, and which are recorded.

pub(crate) mod config_dir;
pub(crate) mod credentials;
pub(crate) mod inherited;
pub(crate) mod recorded;
pub(crate) mod shell;
pub(crate) mod variables;
