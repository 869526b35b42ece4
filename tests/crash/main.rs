//! Processes are killed without warning, many times, and nothing is lost.
//!
//! The stand-in replaces `claude`, so that hundreds of runs take seconds.
#![allow(dead_code, reason = "the tests of the command line use more of the world that they share")]

#[path = "../support/contract.rs"]
mod contract;
#[path = "../support/executable.rs"]
mod executable;
#[path = "../cli/gate.rs"]
mod gate;
#[path = "../cli/invocation.rs"]
mod invocation;
#[path = "../cli/log.rs"]
mod log;
#[path = "../support/marked.rs"]
mod marked;
#[path = "../cli/names.rs"]
mod names;
#[path = "../support/namespace.rs"]
mod namespace;
#[path = "../support/network.rs"]
mod network;
#[path = "../cli/outcome.rs"]
mod outcome;
#[path = "../support/postgres.rs"]
mod postgres;
#[path = "../cli/programs.rs"]
mod programs;
#[path = "../cli/repository.rs"]
mod repository;
#[path = "../support/skewed_clock.rs"]
mod skewed_clock;
#[path = "../support/small_disk.rs"]
mod small_disk;
#[path = "../cli/world.rs"]
mod world;

mod chance;
#[cfg(debug_assertions)]
mod enumeration;
#[path = "../support/extent.rs"]
mod extent;
mod history;
mod invariants;
mod lost_hosts;
mod many_at_once;
mod person;
#[path = "../support/pty.rs"]
mod pty;
mod random_kills;
mod scenarios;
mod tree;
#[path = "../support/trial.rs"]
mod trial;
mod unattended;
