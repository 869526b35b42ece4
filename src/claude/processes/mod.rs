//! Processes: `claude` itself, what its tools leave behind, and who started this program.

pub(crate) mod children;
pub(crate) mod guard;
pub(crate) mod marks;
pub(crate) mod orphan_processes;
pub(crate) mod peer;
pub(crate) mod process;
pub(crate) mod process_table;
