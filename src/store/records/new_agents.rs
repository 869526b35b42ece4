//! New agents, as a chain of their own or below the agent that asks for them.

use std::path::PathBuf;

use crate::core::agent::launch::Launch;
use crate::core::chain::frame::{Baseline, Task};
use crate::core::chain::limits::Limits;
use crate::core::id::{ChainName, FrameId, SessionId};
use crate::store::records::requests::Caller;

/// A frame that is to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct NewFrame {
    /// Its id, for life.
    pub id: FrameId,
    /// Its instructions.
    pub task: Task,
    /// Where its agent works. Absolute.
    pub cwd: PathBuf,
    /// How its `claude` is started.
    pub launch: Launch,
    /// The limits of the tree, when the frame is its root. A child has those of its tree.
    pub limits: Limits,
    /// The conversation that its agent's begins with.
    pub baseline: Option<Baseline>,
    /// What a person calls the chain, when the frame is its root.
    pub name: Option<ChainName>,
    /// The session of Claude Code in which the command was called that makes it. That session may come to stand above it.
    pub started_from: Option<SessionId>,
}

/// Several frames that are to be made at once.
#[derive(Clone, Debug, PartialEq)]
pub struct NewGroup {
    /// Its members, at least one, in order.
    pub members: Vec<NewFrame>,
    /// Where they work, unless they have worktrees of their own. Absolute.
    pub cwd: PathBuf,
    /// Their tasks, as the command named them, one each.
    pub tasks: Vec<String>,
}

/// What is to be started: an agent, or a group of several.
#[derive(Clone, Copy, Debug)]
pub enum NewChain<'a> {
    Agent(&'a NewFrame),
    Group(&'a NewGroup),
    /// A session that agent-cli did not start. Only its agent knows what it waits for. The frame has the id of the session and
    /// continues in another one: that session belongs to its user.
    Adopted(&'a NewFrame, SessionId),
}

impl<'a> From<&'a NewFrame> for NewChain<'a> {
    fn from(new: &'a NewFrame) -> Self {
        Self::Agent(new)
    }
}

impl<'a> From<&'a NewGroup> for NewChain<'a> {
    fn from(new: &'a NewGroup) -> Self {
        Self::Group(new)
    }
}

/// In whose name agents are made whose replies an agent asks for.
#[derive(Clone, Copy, Debug)]
pub struct AskedFor<'a> {
    /// The agent that asks.
    pub caller: Caller,
    /// The tool call that is suspended until they are over.
    pub call: Option<&'a str>,
    /// What the request names them by.
    pub title: &'a str,
    /// Whether their reply also is the reply of the agent that asks.
    pub handoff: bool,
}
