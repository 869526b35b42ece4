//! Lists of chains.

use std::path::PathBuf;

use jiff::Timestamp;

use crate::core::chain::frame_state::{AgentStatus, FrameState};
use crate::core::chain::limits::Limits;
use crate::core::id::{ChainName, FrameId};

/// Which chains are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chains<'a> {
    /// The newest, of these kinds or of all.
    Newest { most: usize, kinds: Option<&'a [ChainKind]> },
    /// The newest whose root works in one of these directories.
    LastIn(&'a [PathBuf]),
    /// Of those of this name the one that goes on, or else the newest.
    Named(&'a ChainName),
    /// The newest with an agent in this state: running, paused, or cancelled by a person who has not continued it.
    With { status: AgentStatus, most: usize },
    /// For an agent, its chains are the agents that it has started.
    StartedBy(FrameId),
}

/// Chains, the newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChainList {
    pub chains: Vec<Summary>,
    /// How many others are meant.
    pub more: u64,
}

/// The chains whose roots work in one directory and are in the same state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainKind {
    pub cwd: PathBuf,
    /// The root's state.
    pub status: AgentStatus,
    pub count: u64,
}

/// A root, as a list shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Its id.
    pub id: FrameId,
    /// What a person calls it.
    pub name: Option<String>,
    /// Its task in a few words.
    pub title: String,
    /// Where its agent works.
    pub cwd: PathBuf,
    /// Its state.
    pub state: FrameState,
    /// Since when it is in that state.
    pub since: Timestamp,
    /// When it was made.
    pub created: Timestamp,
    /// The frames of its tree, itself included, and groups left out.
    pub frames: u64,
    /// The questions of its tree that have no answer.
    pub open_questions: u64,
    /// The limits of its tree.
    pub limits: Limits,
}
