//! The views of hosts.

use jiff::Timestamp;
use serde::Serialize;

use crate::store::hosts::Host;

/// A host of a shared database.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HostView {
    /// The identifier of its state directory.
    pub(crate) host: String,
    /// Whether it is this one.
    pub(crate) is_here: bool,
    pub(crate) state: HostState,
    /// What it offers to chains.
    pub(crate) labels: Vec<String>,
    /// Its chains that have not ended.
    pub(crate) chains: u64,
    /// Its agents that are recorded as running.
    pub(crate) agents: u64,
    /// When it last renewed its lease.
    pub(crate) seen: Option<Timestamp>,
    /// When its lease ends. Until then, no other host takes its chains.
    pub(crate) lease_ends: Option<Timestamp>,
    /// The version of its agent-cli.
    pub(crate) version: Option<String>,
}

/// What a host does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum HostState {
    /// It holds a lease, so its agents may be running.
    InUse,
    /// It holds no lease, and none of its agents is recorded as running.
    Idle,
    /// It holds no lease, but agents are recorded as running there.
    Lost,
    /// It starts no more agents.
    Draining,
}

impl HostState {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::InUse => "in use",
            Self::Idle => "idle",
            Self::Lost => "lost",
            Self::Draining => "draining",
        }
    }
}

impl HostView {
    pub(crate) fn new(host: Host, now: Timestamp) -> Self {
        let state = match host.lease {
            _ if host.is_draining => HostState::Draining,
            Some(_) => HostState::InUse,
            None if host.agents > 0 => HostState::Lost,
            None => HostState::Idle,
        };
        Self {
            state,
            is_here: host.is_here,
            labels: host.labels.names().map(str::to_owned).collect(),
            chains: host.chains,
            agents: host.agents,
            seen: host.seen,
            lease_ends: host.lease.and_then(|left| now.checked_add(left).ok()),
            version: Some(host.program).filter(|version| !version.is_empty()),
            host: host.name,
        }
    }
}

/// What a change of a host did.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HostChangeView {
    pub(crate) host: String,
    /// After `forget`: how many of its chains other hosts can continue.
    pub(crate) chains: Option<u64>,
}
