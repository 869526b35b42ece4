//! Answers what Claude Code asks agent-cli while an agent works, through its hooks and its tool for approvals.
//!
//! A call is parsed into a value, decided on, and only then recorded and answered. Agents' requests arrive this way:
//!
//! | call | before it | after it |
//! | --- | --- | --- |
//! | Bash, with a command of agent-cli | [`bash_call`] | [`bash_call`] |
//! | AskUserQuestion | [`questions`] | [`questions`] |
//! | ExitPlanMode | [`plan`] | |
//! | Agent, Task, Workflow, if they are limited | [`hook`] | |
//! | ScheduleWakeup, CronCreate, CronDelete | [`schedule`] | [`schedule`] |
//! | any call that needs an approval | [`permission`] | |
//!
//! If a hook fails, the call runs as it would without the hook, and makes its request as a program. If the tool for approvals
//! fails, the call is denied.

mod bash_call;
pub(crate) mod hook;
mod linger;
pub(crate) mod message_delivery;
pub(crate) mod permission;
mod plan;
mod printed_call;
mod questions;
mod response;
mod result_command;
mod schedule;
mod suspension;

use std::path::PathBuf;

use crate::runtime::RuntimeError;
use crate::store::{Caller, Store};

pub(crate) use bash_call::{RunsIn, Typed};
pub(crate) use linger::Patience;
pub(crate) use response::HookResponse;

/// The agent whose `claude` asks, and what is needed to answer it.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    pub caller: Caller,
    pub state_dir: PathBuf,
    /// The executable of agent-cli, an absolute path.
    pub own_program: PathBuf,
    /// The agent's home directory, which its commands may name.
    pub home: String,
    /// How long its calls may linger.
    pub patience: Patience,
}

impl Asking {
    /// Most calls that look like requests are not, and need no store.
    fn store(&self) -> Result<Store, RuntimeError> {
        Ok(Store::open(&self.state_dir)?)
    }
}

/// Why a call cannot be decided on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProtocolError {
    /// agent-cli itself failed.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The agent's command asks for something impossible.
    #[error("{0}")]
    Request(String),
}

impl From<crate::store::StoreError> for ProtocolError {
    fn from(error: crate::store::StoreError) -> Self {
        Self::Runtime(error.into())
    }
}
