//! Trees that are much deeper and wider than usual, with the stand-in for `claude`.
//!
//! Anything that grows with the tree shows here: processes, memory, and work that is repeated for each frame. No time is
//! asserted, but a run that takes minutes is an error.
#![allow(dead_code, reason = "the tests of the command line use more of the world that they share")]

#[path = "../crash/chance.rs"]
mod chance;
#[path = "../support/contract.rs"]
mod contract;
#[path = "../support/executable.rs"]
mod executable;
#[path = "../support/extent.rs"]
mod extent;
#[path = "../cli/gate.rs"]
mod gate;
#[path = "../cli/invocation.rs"]
mod invocation;
#[path = "../cli/log.rs"]
mod log;
#[path = "../cli/names.rs"]
mod names;
#[path = "../cli/outcome.rs"]
mod outcome;
#[path = "../support/postgres.rs"]
mod postgres;
#[path = "../cli/programs.rs"]
mod programs;
#[path = "../support/pty.rs"]
mod pty;
#[path = "../cli/world.rs"]
mod world;

mod answers;
mod deep;
mod wide;

/// How long a run of a large tree may take before the test gives up.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(600);
