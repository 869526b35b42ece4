//! Everything that outlives a process: the database, the files of the state directory, and the lease on a frame.
//!
//! The rest of the program uses a narrow set of transactions and never sees SQL, so that another database can implement the
//! same set. Three rules apply to the whole module:
//!
//! * Every write is one `BEGIN IMMEDIATE` transaction. A transaction that reads first and writes later fails under
//!   concurrency, whatever the timeout.
//! * A frame changes its state only through [`FrameState::after`](crate::core::chain::frame_state::FrameState::after), and the same
//!   transaction appends the change to the event log.
//! * Nothing waits for a process inside a transaction, and nothing waits for a lease at all.

mod changes;
#[cfg(test)]
mod conformance;
mod error;
pub(crate) mod files;
mod handle;
pub(crate) mod hosts;
pub(crate) mod housekeeping;
mod outbox;
mod records;
mod sql;
pub(crate) mod usability;

#[cfg(test)]
pub(crate) mod testing;

pub(crate) use crate::store::error::{ArchiveError, StoreError};
pub(crate) use crate::store::files::browsers::{Browsers, note_token_file, token_files};
pub(crate) use crate::store::files::entries::size;
pub use crate::store::files::lease::Lease;
pub(crate) use crate::store::files::marks::{AsksLater, Attending, Driving, Followed, Serving, Trying, Watching};
pub(crate) use crate::store::files::ownership::exposed;
pub(crate) use crate::store::files::privacy::private_socket;
pub(crate) use crate::store::files::state_dir::StateDir;
pub(crate) use crate::store::handle::Moved;
pub use crate::store::handle::Store;
pub(crate) use crate::store::housekeeping::archive::{Adapted, Brought, Here, Unpacked};
pub(crate) use crate::store::housekeeping::database_facts::{FactsOf, Observed, RecordedPause, RecordedProgram};
pub(crate) use crate::store::housekeeping::orphans::Orphan;
pub(crate) use crate::store::housekeeping::removable::{Decided, Removable, RemovedTrees, Trash, WorkedSession};
pub use crate::store::outbox::ListedNotification;
pub(crate) use crate::store::outbox::{Claimed, Notifications, SendOutcome, Subscribing, Subscription};
pub use crate::store::records::attempts::{AttemptEnd, NewAttempt};
pub use crate::store::records::chains::Summary;
pub use crate::store::records::new_agents::{AskedFor, NewFrame};
pub use crate::store::records::requests::Caller;
pub(crate) use crate::store::records::{
    Asked, AtEnd, Attempt, Attempts, ChainChange, ChainFilter, ChainKind, ChainOf, Chains, Counted, Counting,
    EventRecord, Exchange, Extent, Instruction, KnownProgram, NewChain, NewGroup, PrintedRequests, Question, Questions,
    Recovery, Replies, Requests, ResultUse, Scope, SearchIn, Seen, StateChange, Steering, Target, Telling, Together,
    TreeOf, Undelivered, WorktreesOf,
};
