//! Chains, their parts, and lists of them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use jiff::Timestamp;

use crate::core::agent::overrides::Repair;
use crate::core::chain::frame::Detached;
use crate::core::chain::frame_state::{AgentStatus, FrameState};
use crate::core::chain::limits::{Limits, NewLimits};
use crate::core::events::log_entry::LogEntry;
use crate::core::housekeeping::hosting::Elsewhere;
use crate::core::id::{ChainName, FrameId, RequestId};
use crate::core::requests::request::{Request, RequestKind};
use crate::core::steering::message::MessageSender;

/// The frames that a query covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    One(FrameId),
    /// A frame and all frames below it.
    Below(FrameId),
}

impl Extent {
    /// The frame, or the top of several.
    pub(crate) fn top(self) -> FrameId {
        match self {
            Self::One(frame) | Self::Below(frame) => frame,
        }
    }
}

impl From<FrameId> for Extent {
    fn from(frame: FrameId) -> Self {
        Self::One(frame)
    }
}

/// One entry of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRecord {
    /// Its place in the log.
    pub seq: u64,
    /// When it happened.
    pub at: Timestamp,
    /// The frame that it happened to, which may no longer exist.
    pub frame: FrameId,
    /// What happened.
    pub entry: LogEntry,
}

#[cfg(test)]
impl EventRecord {
    pub(crate) fn kind(&self) -> String {
        self.entry.recorded().unwrap().kind
    }
}

/// How much of a tree is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeOf {
    /// A frame and all frames below it.
    Whole(FrameId),
    /// A frame and its children, with the requests of the frame only: enough to tell whether the frame can run, if it is
    /// awaited.
    Family(FrameId),
}

impl TreeOf {
    /// The frame that the others are below.
    #[must_use]
    pub const fn top(self) -> FrameId {
        match self {
            Self::Whole(top) | Self::Family(top) => top,
        }
    }
}

impl From<FrameId> for TreeOf {
    fn from(top: FrameId) -> Self {
        Self::Whole(top)
    }
}

/// Whose worktrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorktreesOf {
    /// The first agents of all chains.
    Roots,
    /// All agents of the chain that a frame belongs to.
    Chain(FrameId),
    /// Agents that were done before `before`, and whose result another agent has been given. A failed agent could still be
    /// continued.
    HandedOver { before: Timestamp },
}

/// Changes that a person makes to a chain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChainChange {
    pub limits: NewLimits,
    /// How its agents are started.
    pub launch: Option<Repair>,
    /// What the named frame must do next.
    pub instruction: Option<Instruction>,
    /// Whether the named frame starts afresh.
    pub afresh: bool,
    /// A new name, which no other unfinished chain may have. `Some(None)` removes its name.
    pub name: Option<Option<ChainName>>,
}

/// A new instruction for a finished agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    pub text: String,
    pub sender: MessageSender,
}

impl From<NewLimits> for ChainChange {
    fn from(limits: NewLimits) -> Self {
        Self { limits, ..Self::default() }
    }
}

impl From<Repair> for ChainChange {
    fn from(repair: Repair) -> Self {
        Self { launch: Some(repair), ..Self::default() }
    }
}

/// What an id refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A frame, by its own id or by one of its sessions.
    Frame(FrameId),
    /// A request.
    Request(RequestId),
}

impl Target {
    /// The id that the agent which made this request uses to ask about it.
    pub(crate) fn from_request(request: &Request) -> Self {
        match request.kind {
            RequestKind::Spawn { child, .. } => Self::Frame(child),
            _ => Self::Request(request.id),
        }
    }
}

/// Where an id is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything that is recorded.
    All,
    /// A frame and all frames below it.
    Below(FrameId),
    /// Like `Below`, for an agent. Also a chain, by its full id, that the agent's session started before it was adopted.
    Agent(FrameId),
    /// Questions, and everything else only if no question has such an id.
    QuestionsFirst,
}

impl From<FrameId> for Target {
    fn from(frame: FrameId) -> Self {
        Self::Frame(frame)
    }
}

/// A frame, and the chain that it belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainOf {
    pub frame: FrameId,
    pub root: FrameId,
    pub limits: Limits,
    /// Its name, given by a person.
    pub name: Option<String>,
    /// Its origin, if an agent has detached it.
    pub detached: Option<Detached>,
    /// Where its agents run, if that is not this host.
    pub elsewhere: Option<Elsewhere>,
    /// The first chain of its family, if the family has several.
    pub family: Option<FrameId>,
    /// What the other chains of the family have spent, in US dollars.
    pub others_usd: f64,
}

/// Which chains are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chains<'a> {
    /// The newest, of these kinds or of all.
    Newest { most: usize, kinds: Option<&'a [ChainKind]> },
    /// The newest whose root works in one of these directories.
    LastIn(&'a [PathBuf]),
    /// Of the chains with this name, the unfinished one, or else the newest.
    Named(&'a ChainName),
    /// The newest with an agent in this state: running, paused, or cancelled by a person who has not continued it.
    With { status: AgentStatus, most: usize },
    /// Those with an agent that a person has continued after it had ended: they may be at work although they look finished.
    Continued,
    /// Chains that agents of this chain or its family have detached, and in which no agent has been started.
    NewDetached(FrameId),
    /// The chains with these roots, in their order.
    Of(&'a [FrameId]),
    /// The chains in which a person was asked something most recently.
    Asking { most: usize },
    /// The chains that have ended since then, the last one first.
    EndedSince { since: Timestamp, most: usize },
    /// The agents that this agent has started: for an agent, these are its chains.
    StartedBy(FrameId),
}

/// The conditions for a chain to be listed. They ignore case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChainFilter {
    /// A text that it contains.
    pub text: Option<String>,
    /// A text in the short form of its own task.
    pub task: Option<String>,
    /// It was started at this time or later.
    pub since: Option<Timestamp>,
    /// Where `text` may be.
    pub search_in: SearchIn,
    /// One of its agents has asked a person something and has no answer.
    pub asks: bool,
}

/// The parts of a chain in which a text is searched for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearchIn {
    /// Its name, and the short forms of its agents' tasks.
    #[default]
    Words,
    /// Also its id and directory.
    WordsAndPlace,
}

/// Chains, the newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChainList {
    pub chains: Vec<Summary>,
    /// How many other chains match.
    pub more: u64,
}

/// The number of chains whose roots work in one directory and are in the same state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainKind {
    pub cwd: PathBuf,
    /// The root's state.
    pub status: AgentStatus,
    pub count: u64,
}

impl ChainKind {
    /// These kinds, with all other states that `may` accepts: by the time at which the chains are read, their states may have
    /// changed.
    pub(crate) fn with_other_states(kinds: &[Self], may: impl Fn(AgentStatus) -> bool) -> Vec<Self> {
        let directories: BTreeSet<&PathBuf> = kinds.iter().map(|kind| &kind.cwd).collect();
        let all = |cwd| AgentStatus::ALL.into_iter().map(move |status| (cwd, status));
        let accepted = directories.into_iter().flat_map(all).filter(|(_, status)| may(*status));
        accepted.map(|(cwd, status)| Self { cwd: cwd.clone(), status, count: 0 }).collect()
    }
}

/// A root, as a list shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Its id.
    pub id: FrameId,
    /// Its name, given by a person.
    pub name: Option<String>,
    /// Its task in a few words.
    pub title: String,
    /// Where its agent works.
    pub cwd: PathBuf,
    /// Its state.
    pub state: FrameState,
    /// Since when it is in that state.
    pub since: Timestamp,
    /// When it was created.
    pub created: Timestamp,
    /// The number of frames in its tree, itself included, groups excluded.
    pub frames: u64,
    /// The number of unanswered questions in its tree.
    pub open_questions: u64,
    /// Whether a person has continued one of its agents after that had ended, and it has not ended again.
    pub has_continued: bool,
    /// The limits of its tree.
    pub limits: Limits,
}
