//! What outlives a process: the database, the files of the state directory, and the lease on a frame.
//!
//! The rest of the program sees a narrow set of transactions and never SQL, so that another database can stand behind
//! the same set. Three rules hold everywhere in here:
//!
//! * Every write is one `BEGIN IMMEDIATE` transaction. A transaction that reads first and writes later fails under
//!   concurrency, whatever the timeout.
//! * A frame changes its state only through [`FrameState::after`](crate::core::chain::state::FrameState::after), and the same
//!   transaction appends the change to the event log.
//! * Nothing waits for a process inside a transaction, and nothing waits for a lease at all.

mod attempts;
mod candidate;
mod chains;
mod database;
mod error;
pub mod files;
pub mod housekeeping;
mod requests;
mod tables;

#[cfg(test)]
mod testing;

pub use crate::store::attempts::attempt::{Attempt, NewAttempt, Spent};
pub use crate::store::attempts::settlement::Settlement;
pub use crate::store::candidate::Candidate;
pub use crate::store::chains::lookup::Target;
pub use crate::store::chains::trees::Summary;
pub use crate::store::chains::worktrees::Worker;
pub use crate::store::database::store::Store;
pub use crate::store::error::{Result, StoreError};
pub use crate::store::files::entries::size;
pub use crate::store::files::lease::Lease;
pub use crate::store::files::state_dir::StateDir;
pub use crate::store::housekeeping::archive::error::ArchiveError;
pub use crate::store::housekeeping::archive::unpack::Unpacked;
pub use crate::store::housekeeping::archive::{Adapted, Here};
pub use crate::store::housekeeping::fsck::Facts;
pub use crate::store::housekeeping::observed::{Pause, RecordedProgram};
pub use crate::store::housekeeping::orphan_files::Leftover;
pub use crate::store::housekeeping::removal::Removable;
pub use crate::store::requests::groups::NewGroup;
pub use crate::store::requests::questions::Question;
pub use crate::store::tables::caller::Caller;
pub use crate::store::tables::events::EventRecord;
pub use crate::store::tables::frames::NewFrame;
