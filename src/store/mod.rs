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
pub(crate) mod files;
pub(crate) mod housekeeping;
mod notifications;
mod requests;
mod steering;
mod tables;

#[cfg(test)]
pub(crate) mod testing;

pub use crate::store::attempts::attempt::NewAttempt;
pub(crate) use crate::store::attempts::attempt::{Attempt, Attempts};
pub use crate::store::attempts::end::AttemptEnd;
pub(crate) use crate::store::attempts::program_cache::KnownProgram;
pub(crate) use crate::store::attempts::recovery::Recovery;
pub(crate) use crate::store::attempts::spent::{Counted, Counting};
pub(crate) use crate::store::chains::abandoned::abandoned;
pub(crate) use crate::store::chains::exchanges::{Asked, Exchange};
pub(crate) use crate::store::chains::limits::ChainOf;
pub use crate::store::chains::listing::Summary;
pub(crate) use crate::store::chains::listing::{Alike, Chains};
pub(crate) use crate::store::chains::lookup::{Scope, Target};
pub(crate) use crate::store::chains::repair::{ChainChange, Instruction};
pub(crate) use crate::store::chains::trees::TreeOf;
pub(crate) use crate::store::chains::worktrees::WorktreesOf;
pub use crate::store::database::store::Store;
pub(crate) use crate::store::error::StoreError;
pub(crate) use crate::store::files::driving::Driving;
pub(crate) use crate::store::files::entries::size;
pub use crate::store::files::lease::Lease;
pub(crate) use crate::store::files::ownership::exposed;
pub(crate) use crate::store::files::state_dir::StateDir;
pub(crate) use crate::store::files::trying::Trying;
pub(crate) use crate::store::housekeeping::archive::error::ArchiveError;
pub(crate) use crate::store::housekeeping::archive::{Brought, Here, Unpacked};
pub(crate) use crate::store::housekeeping::fsck::FactsOf;
pub(crate) use crate::store::housekeeping::observed::{Observed, Pause, RecordedProgram};
pub(crate) use crate::store::housekeeping::orphan_files::Orphan;
pub(crate) use crate::store::housekeeping::removal::{Decided, Removable};
pub use crate::store::notifications::listed::ListedNotification;
pub(crate) use crate::store::notifications::listed::Notifications;
pub(crate) use crate::store::notifications::sending::{Claimed, SendOutcome};
pub(crate) use crate::store::notifications::subscription::Subscription;
pub(crate) use crate::store::requests::calls::PrintedRequests;
pub(crate) use crate::store::requests::groups::Replies;
pub(crate) use crate::store::requests::questions::asked::{Question, Questions, Together};
pub(crate) use crate::store::requests::request::{Requests, Seen};
pub(crate) use crate::store::requests::returns::{AtEnd, ResultUse};
pub use crate::store::requests::spawn::AskedFor;
pub(crate) use crate::store::requests::spawn::{NewChain, NewGroup};
pub(crate) use crate::store::requests::undelivered::Undelivered;
pub(crate) use crate::store::steering::messages::Telling;
pub(crate) use crate::store::steering::state_change::StateChange;
pub(crate) use crate::store::tables::below::Extent;
pub use crate::store::tables::caller::Caller;
pub(crate) use crate::store::tables::events::EventRecord;
pub use crate::store::tables::frames::NewFrame;
