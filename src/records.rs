//! The records of chains for tests and benchmarks. Other programs use the command line.

pub use crate::core::agent::launch::Launch;
pub use crate::core::agent::situation::Situation;
pub use crate::core::agent::usage::{Spending, Totals};
pub use crate::core::attempt::decision::decide;
pub use crate::core::attempt::ending::Ending;
pub use crate::core::attempt::facts::Facts;
pub use crate::core::chain::frame::Task;
pub use crate::core::chain::frame_state::FrameState;
pub use crate::core::chain::limits::Limits;
pub use crate::core::chain::tree::Node;
use crate::core::housekeeping::hosting::{Labels, Offer};
pub use crate::core::id::{AttemptId, FrameId, SessionId};
pub use crate::core::requests::agent_command::{Recognised, recognise};
pub use crate::core::requests::question_form::Form;
pub use crate::core::requests::request::{Delivery, RequestKind, SpawnForm};
pub use crate::core::steering::origin::Origin;
pub use crate::core::text::shell::Surroundings;
use crate::store::Chains;
use crate::store::hosts::Wanted;
pub use crate::store::{AskedFor, AttemptEnd, Caller, Lease, ListedNotification, NewAttempt, NewFrame, Store, Summary};

/// All chains, the newest first.
///
/// # Panics
///
/// The database cannot be read.
#[must_use]
pub fn chains(store: &Store) -> Vec<Summary> {
    store.chains(Chains::Newest { most: usize::MAX, kinds: None }).expect("a database").chains
}

/// Records a chain that waits for any host.
///
/// # Panics
///
/// The database cannot be written.
pub fn leave_to_any_host(store: &Store, frame: NewFrame) {
    store.create(&NewFrame { on: Some(Labels::default()), ..frame }, None).expect("a database");
}

/// Takes one of the chains that wait for a host. Returns whether there was one.
///
/// # Panics
///
/// The database cannot be written.
#[must_use]
pub fn take_any(store: &Store) -> bool {
    let hosts = store.hosts().expect("it is on a server");
    hosts.take(Wanted::Any, &Offer::default()).expect("a database").is_some()
}
