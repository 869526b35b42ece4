//! The files of the state directory: their paths, and how they are written.

pub(crate) mod browsers;
pub(crate) mod checkpoint;
pub(crate) mod durable;
pub(crate) mod entries;
pub(crate) mod file_lock;
pub(crate) mod lease;
pub(crate) mod marks;
pub(crate) mod ownership;
pub(crate) mod privacy;
pub(crate) mod session_files;
pub(crate) mod state_dir;
pub(crate) mod tool_results;
