//! Hosts: the state directories that share a database on a server. A database in a file has only one, which is not recorded.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::core::housekeeping::hosting::{Labels, Offer};
use crate::core::housekeeping::rights::Grant;
use crate::core::id::FrameId;
use crate::store::error::Result;

/// What a host declares when it renews its lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// How long the lease lasts, by the clock of the server.
    pub(crate) lease: Duration,
    pub(crate) labels: Labels,
    /// Whether agents of this host run. If not, the lease of a host that starts none does not become longer.
    pub(crate) runs_agents: bool,
}

/// What is due is decided by the clock of the host that runs a chain, so the clocks of hosts must not be further apart from the
/// server's: otherwise, they start no agents and record nothing that depends on the time. Leases do not depend on it.
pub(crate) const CLOCKS_AGREE_WITHIN: SignedDuration = SignedDuration::from_mins(5);

/// The lease of this host after a renewal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Renewed {
    /// Since when the host has had its lease without a break, in milliseconds of the server's clock. In a break, other hosts may have
    /// taken its chains.
    pub(crate) since: i64,
    /// Whether the host starts no more agents.
    pub(crate) is_draining: bool,
    /// How far the clock of this host is ahead of the server's; negative: behind.
    pub(crate) ahead: SignedDuration,
}

/// A host, as the others see it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Host {
    /// The identifier of its state directory.
    pub(crate) name: String,
    pub(crate) is_here: bool,
    /// When it last renewed its lease; `None`: it never had one.
    pub(crate) seen: Option<Timestamp>,
    /// How much of its lease is left; `None`: it has ended, so none of its agents run.
    pub(crate) lease: Option<Duration>,
    pub(crate) is_draining: bool,
    pub(crate) labels: Labels,
    /// The version of its agent-cli.
    pub(crate) program: String,
    /// Its chains that have not ended.
    pub(crate) chains: u64,
    /// Its agents that are recorded as running.
    pub(crate) agents: u64,
}

impl Host {
    /// A host that was never seen. `own`: the name of this one.
    pub(crate) fn new(name: String, own: &str) -> Self {
        let (is_here, labels, program) = (name == own, Labels::default(), String::new());
        Self { name, is_here, seen: None, lease: None, is_draining: false, labels, program, chains: 0, agents: 0 }
    }
}

/// The chains to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The oldest unfinished chain that may be taken.
    Any,
    /// The oldest of those that no host has taken yet.
    Free,
    /// This chain, in any state.
    Chain(FrameId),
}

/// Operations on the hosts of a shared database.
///
/// A host may run agents as long as it holds its lease, and only those of its own chains. The transaction that begins an attempt
/// checks both; those that record something in its name, or end it, check that the chain still belongs to this host. An attempt's id is the fencing token: no other attempt has it, so nothing is
/// recorded in its name after another host has taken the chain and ended it.
pub(crate) trait Hosts {
    /// Begins or renews the lease of this host.
    ///
    /// # Errors
    ///
    /// An error writing the database.
    fn renew(&self, terms: &Terms) -> Result<Renewed>;

    /// Checks the clock of this host.
    ///
    /// # Errors
    ///
    /// `StoreError::ClockOff`, or an error reading the database.
    fn check_clock(&self) -> Result<()>;

    /// All hosts, this one first. Empty if the database is a file.
    ///
    /// # Errors
    ///
    /// An error reading the database.
    fn hosts(&self) -> Result<Vec<Host>>;

    /// Makes a host start no more agents, or lets it start agents again.
    ///
    /// # Errors
    ///
    /// `StoreError::UnknownHost`, or an error writing the database.
    fn drain(&self, host: &str, is_draining: bool) -> Result<()>;

    /// Releases all chains of a host that is lost, and forgets the host. Returns the number of these chains that have not ended.
    ///
    /// # Errors
    ///
    /// `StoreError::UnknownHost`, `StoreError::HostInUse`, or an error writing the database.
    fn forget(&self, host: &str) -> Result<u64>;

    /// Takes a chain of no host, or of one whose lease has ended: writes its files to this state directory, and makes this its host. `None` if there
    /// is no such chain.
    ///
    /// # Errors
    ///
    /// `StoreError::NotTaken` if this chain was wanted and may not be taken, `StoreError::Archive` if a file that it needs is missing,
    /// or an error writing the database or the state directory.
    fn take(&self, wanted: Wanted, offer: &Offer) -> Result<Option<FrameId>>;

    /// The rights of users of the database: all of them for its owner, and otherwise those of this user.
    ///
    /// # Errors
    ///
    /// An error reading the database.
    fn rights(&self) -> Result<Vec<Grant>>;

    /// Gives users rights, or takes them away. Returns whether anything has changed.
    ///
    /// # Errors
    ///
    /// `StoreError::NotOwner`, `StoreError::UnknownUser`, or an error writing the database.
    fn change_rights(&self, of: &[Grant], is_given: bool) -> Result<bool>;
}
