//! New agents, as a separate chain or below the agent that asks for them.

use std::path::PathBuf;

use crate::core::agent::child_worktree::pushed_worktree::Pushed;
use crate::core::agent::launch::Launch;
use crate::core::chain::frame::{Baseline, Detached, Task};
use crate::core::chain::limits::Limits;
use crate::core::housekeeping::hosting::Labels;
use crate::core::id::{ChainName, FrameId, SessionId};
use crate::core::requests::request::SpawnForm;
use crate::store::records::requests::Caller;

/// A frame to create.
#[derive(Clone, Debug, PartialEq)]
pub struct NewFrame {
    /// Its id, which never changes.
    pub id: FrameId,
    /// Its instructions.
    pub task: Task,
    /// Where its agent works. Absolute.
    pub cwd: PathBuf,
    /// How its `claude` is started.
    pub launch: Launch,
    /// The limits of the tree if the frame is its root. A child is subject to the limits of its tree.
    pub limits: Limits,
    /// The conversation that its agent begins with.
    pub baseline: Option<Baseline>,
    /// The name of the chain if the frame is its root.
    pub name: Option<ChainName>,
    /// The labels of the host that runs the chain, if the frame is its root; `None`: this host runs it.
    pub on: Option<Labels>,
    /// How much of its own worktree is on a git remote, if another host may make the worktree.
    pub pushed: Option<Pushed>,
    /// The Claude Code session in which the command that creates the frame was called. That session may later become its
    /// parent.
    pub started_from: Option<SessionId>,
}

/// Several frames to create at once.
#[derive(Clone, Debug, PartialEq)]
pub struct NewGroup {
    /// Its members, at least one, in order.
    pub members: Vec<NewFrame>,
    /// Where they work, unless they have their own worktrees. Absolute.
    pub cwd: PathBuf,
    /// Their tasks, as the command named them, one each.
    pub tasks: Vec<String>,
}

/// A new agent, a new group of agents, or an adopted session.
#[derive(Clone, Copy, Debug)]
pub enum NewChain<'a> {
    Agent(&'a NewFrame),
    Group(&'a NewGroup),
    /// A session that agent-cli did not start. Only its agent knows what it waits for. The frame has the id of the session
    /// but continues in another one, because that session belongs to its user.
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

/// The agent that asks for new agents and their replies.
#[derive(Clone, Copy, Debug)]
pub struct AskedFor<'a> {
    /// The agent that asks.
    pub caller: Caller,
    /// The tool call that is suspended until they have ended.
    pub call: Option<&'a str>,
    /// Their title in the request.
    pub title: &'a str,
    /// What happens to their reply.
    pub form: SpawnForm,
    /// Whether the agent gets an object with their results.
    pub json: bool,
    /// What they keep from the agent's chain if they become a separate chain, which the agent does not wait for.
    pub detached: Option<&'a Detached>,
}
