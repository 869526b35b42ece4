//! Environment variables: which ones matter to `claude`, which it inherits, and which are recorded.

pub(crate) mod agent_variables;
pub(crate) mod config_dir;
pub(crate) mod credentials;
pub(crate) mod memory_files;
pub(crate) mod regular_file;
pub(crate) mod variables;
