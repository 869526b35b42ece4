//! What Claude Code asks this program while an agent works: its hooks, and its tool for approvals.
//!
//! A call is read into a value, decided on, and only then recorded and answered. The requests of agents come this way:
//!
//! | call | before it | after it |
//! | --- | --- | --- |
//! | Bash, with a command of this program | [`command`] | [`command`] |
//! | AskUserQuestion | [`questions`] | [`questions`] |
//! | ExitPlanMode | [`plan`] | |
//! | ScheduleWakeup, CronCreate, CronDelete | [`schedule`] | [`schedule`] |
//! | any that needs an approval | [`permission`] | |
//!
//! Whatever goes wrong in a hook, the call runs as it would without one, and then makes its request as a program. Whatever
//! goes wrong in the tool for approvals, the call is denied.

mod command;
pub(crate) mod hook;
pub(crate) mod permission;
mod plan;
mod printed;
mod questions;
mod response;
mod result_command;
mod schedule;
mod suspension;

use std::path::PathBuf;

use crate::runtime::RuntimeError;
use crate::store::{Caller, Store};

pub(crate) use command::Typed;
pub(crate) use response::HookResponse;

/// The agent whose `claude` asks, and what is needed to answer it.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    /// The agent.
    pub caller: Caller,
    /// The state directory.
    pub state_dir: PathBuf,
    /// This program, an absolute path.
    pub own_program: PathBuf,
    /// The agent's home directory, which its commands may name.
    pub home: String,
}

impl Asking {
    /// Most of what looks like a request is none, and needs no store.
    fn store(&self) -> Result<Store, RuntimeError> {
        Ok(Store::open(&self.state_dir)?)
    }
}

/// Why a call cannot be decided on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProtocolError {
    /// This program cannot do its part.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The agent's command asks for what cannot be.
    #[error("{0}")]
    Request(String),
}

impl From<crate::store::StoreError> for ProtocolError {
    fn from(error: crate::store::StoreError) -> Self {
        Self::Runtime(error.into())
    }
}
