//! Processes: `claude` itself, what its tools leave behind, and who started this program.

pub mod marks;
pub mod orphans;
pub mod process;
pub(crate) mod process_table;
