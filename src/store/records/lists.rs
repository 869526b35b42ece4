//! Lists of chains.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::core::chain::frame_state::FrameState;
use crate::core::chain::limits::Limits;
use crate::core::id::{ChainName, FrameId};

/// Which chains are meant.
pub enum Chains<'a> {
    /// The newest of those of which `is_meant` is true. It is asked once about each kind of chain that there is, so it can also
    /// count them.
    Newest { most: usize, is_meant: &'a mut dyn FnMut(&Alike) -> bool },
    /// The newest whose root works where this says. It is asked about one after the other, and no more are read than that takes.
    LastIn(&'a mut dyn FnMut(&Path) -> bool),
    /// Of those of this name the one that goes on, or else the newest.
    Named(&'a ChainName),
    /// The newest with an agent in this state: `running`, `paused`, or `cancelled` by a person who has not continued it.
    With { status: &'a str, most: usize },
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
pub struct Alike {
    pub cwd: PathBuf,
    /// The name of the root's state.
    pub status: String,
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
