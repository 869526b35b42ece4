//! Facts about the store itself, for `fsck` and `doctor`.

use std::collections::HashSet;
use std::path::PathBuf;

use jiff::Timestamp;

use crate::core::agent::launch::Launch;
use crate::core::housekeeping::consistency::{FrameFacts, Known, RequestFacts};
use crate::core::housekeeping::fsck_finding::FsckFinding;
use crate::core::id::FrameId;

/// The content of the database, apart from its frames.
#[derive(Debug, Default)]
pub struct DatabaseFacts {
    /// Every frame.
    pub known: Known,
    /// Every request that can be read.
    pub requests: Vec<RequestFacts>,
    /// What could not be read, and problems that the database itself reported.
    pub findings: Vec<FsckFinding>,
}

/// A page of frames, with the facts about their files.
#[derive(Debug, Default)]
pub struct FactsPage {
    pub frames: Vec<FrameFacts>,
    /// What could not be read.
    pub findings: Vec<FsckFinding>,
    /// Where the next page begins; `None`: this is the last one.
    pub next: Option<u64>,
}

/// Which facts are wanted.
#[derive(Clone, Copy, Debug)]
pub enum FactsOf<'a> {
    All,
    /// Only facts about these frames that can change while other processes work.
    Again(&'a HashSet<FrameId>),
}

impl FactsOf<'_> {
    pub(crate) fn has(self, frame: FrameId) -> bool {
        match self {
            Self::All => true,
            Self::Again(frames) => frames.contains(&frame),
        }
    }
}

/// A program that chains were started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedProgram {
    /// Its path.
    pub path: PathBuf,
    /// The number of unfinished chains whose agents continue with it.
    pub chains: u64,
    /// The version that it last reported, and when the program had last been modified.
    pub known: Option<(String, Timestamp)>,
}

/// How one request paused its agent.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedPause {
    /// Whether its call was suspended. If not, it ran as a program, and the agent printed a signal.
    pub suspended: bool,
    /// The launch options of its agent.
    pub launch: Launch,
}

/// Facts from the records about how chains run here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// The programs of chains that are not done, according to the newest of these chains.
    pub programs: Vec<RecordedProgram>,
    /// How the last requests paused their agents, the newest first. Withdrawn requests paused no agent.
    pub pauses: Vec<RecordedPause>,
    /// How many agents will repeat a turn that `claude` could not record.
    pub unrecorded: u64,
    /// Agents that wait, the newest first.
    pub waiting: Vec<FrameId>,
}

/// The condition of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// All of it was checked.
    Intact,
    /// It can be read, but is too large for a quick check.
    Opens,
    /// What SQLite reports.
    Damaged(String),
}
