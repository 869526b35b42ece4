//! A frame: one agent of a chain.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::core::agent::child_worktree::pushed_worktree::Pushed;
use crate::core::agent::child_worktree::{self, Worktree};
use crate::core::agent::launch::Launch;
use crate::core::agent::situation::Situation;
use crate::core::agent::usage::Usage;
use crate::core::chain::frame_state::FrameState;
use crate::core::id::{AttemptId, FrameId, SessionId};
use crate::core::requests::request::RequestResult;
use crate::core::steering::fresh_start::Afresh;
use crate::core::text::shell::quoted;

/// One agent of a chain, without its reply, which may be large.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Its id, which never changes.
    pub id: FrameId,
    /// The frame whose agent asked for it; `None`: a root.
    pub parent: Option<FrameId>,
    /// The root of its tree.
    pub root: FrameId,
    /// 1 for a root, one more for each level below.
    pub depth: u32,
    /// Its first instructions.
    pub task: Task,
    /// Its agent's working directory. Absolute. Claude Code looks a session up by it.
    pub cwd: PathBuf,
    /// How its `claude` is started, each time.
    pub launch: Launch,
    /// Its current state.
    pub state: FrameState,
    /// When it entered that state.
    pub since: Timestamp,
    /// The Claude Code session of its agent, which changes only if the agent starts afresh.
    pub session: SessionId,
    /// The attempt whose conversation it continues from. An adopted session is identified by the frame's id until an
    /// attempt of the frame is kept.
    pub checkpoint: Option<AttemptId>,
    /// The conversation that its session begins with.
    pub baseline: Option<Baseline>,
    /// The tool call at which the checkpoint is suspended.
    pub suspended: Option<String>,
    /// What its agent has besides its conversation.
    pub situation: Situation,
    /// What went wrong in its last attempt, for the agent when it is resumed.
    pub trouble: Option<Trouble>,
    /// How far it is if it starts afresh.
    pub afresh: Option<Afresh>,
    /// The final state for its parent, if a person has continued it since.
    pub outcome: Option<FrameState>,
    /// How much of its own worktree is on a git remote.
    pub pushed: Option<Pushed>,
    /// When it was created.
    pub created: Timestamp,
}

/// The first instructions of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Task {
    /// Follow the instructions in this file. Absolute.
    File(PathBuf),
    /// This text.
    Prompt(String),
    /// Nothing: this is a group, which waits for the agents below it and ends when they have ended. Their tasks, as the
    /// command named them.
    Group(Vec<String>),
}

/// A conversation that an agent's session begins with. It is never changed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Baseline {
    /// The session.
    pub session: SessionId,
    /// The agent whose checkpoint it was; `None`: the session does not belong to this program.
    #[serde(rename = "agent")]
    pub frame: Option<FrameId>,
    /// That checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<AttemptId>,
    /// Its cost, in US dollars. Newer versions of Claude Code count it again for each fork.
    pub cost_usd: f64,
    /// Its tokens, counted likewise, if its version counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// What a detached chain keeps of the chain that it comes from, so that its agents get no more rights than a child would.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detached {
    /// The agent that has started it.
    pub by: FrameId,
    /// Where that agent worked.
    pub cwd: PathBuf,
    /// Where the uppermost agent above it worked: the directory that a person named.
    pub base: PathBuf,
    /// The worktrees of that agent and of those above it.
    pub worktrees: Vec<Worktree>,
}

/// A conversation with a kept copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeptConversation {
    /// The frame that keeps it.
    pub frame: FrameId,
    /// The name of the copy.
    pub copy: AttemptId,
    pub session: SessionId,
}

/// How the previous attempt ended badly, although part of it is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Trouble {
    /// What happened, for the agent and for people.
    pub what: String,
    /// The tool calls whose effect is missing from the conversation, each on one short line: they were open then, or the
    /// conversation does not contain them.
    #[serde(default)]
    pub calls: Vec<String>,
    /// Whether the conversation contains nothing from that attempt.
    #[serde(default)]
    pub lost: bool,
    /// Whether `claude` had ended its turn but had no room to record it, because its folder's disk is full.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unrecorded: bool,
    /// What ran in its background after its reply and was ended, each on one short line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<String>,
    /// Why its reply does not fit the schema of its replies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub misfits: Vec<String>,
}

impl Baseline {
    /// Its kept copy, which is that of `own` if no other agent has one. If nothing else is recorded, it was named after the session.
    pub(crate) fn conversation(&self, own: FrameId) -> KeptConversation {
        KeptConversation {
            frame: self.frame.unwrap_or(own),
            copy: self.checkpoint.unwrap_or(AttemptId(self.session.0)),
            session: self.session,
        }
    }
}

impl Frame {
    /// If its next attempt asks its agent for a summary: what an earlier one lacked.
    pub(crate) fn summary_lacks(&self) -> Option<&[String]> {
        self.afresh.as_ref().and_then(Afresh::lacks)
    }

    /// The summary with which its session begins, as long as the session has nothing else.
    pub(crate) fn summary(&self) -> Option<&str> {
        self.afresh.as_ref().and_then(Afresh::summary).filter(|_| self.checkpoint.is_none())
    }

    /// Its state for its parent.
    pub(crate) fn for_its_parent(&self) -> &FrameState {
        self.outcome.as_ref().unwrap_or(&self.state)
    }

    /// The agent's text, as its parent receives it. A group names the worktree of each of its agents itself.
    pub(crate) fn reported(&self, said: String) -> String {
        if self.task.is_group() { said } else { child_worktree::with_place(said, self.launch.worktree.as_ref()) }
    }

    /// What its parent receives, if it has ended. `reply` is its reply, or that of all agents of a group; a group that failed
    /// has one, too, and a stopped agent reports what it has done.
    pub(crate) fn result(&self, reply: Option<String>) -> Option<RequestResult> {
        match (self.for_its_parent(), reply) {
            (FrameState::Done, reply) => Some(RequestResult::Text(self.reported(reply.unwrap_or_default()))),
            (FrameState::Failed { .. }, Some(replies)) if self.task.is_group() => {
                Some(RequestResult::PartlyFailed(self.reported(replies)))
            }
            // What it has done so far.
            (FrameState::Failed { .. }, Some(done)) => Some(RequestResult::Failed(self.reported(done))),
            (FrameState::Failed { failure }, None) => {
                Some(RequestResult::Failed(self.reported(failure.message.clone())))
            }
            _ => None,
        }
    }

    /// What its next attempt continues from; `None`: it starts a conversation.
    pub(crate) fn continues(&self) -> Option<KeptConversation> {
        let own = |copy| KeptConversation { frame: self.id, copy, session: self.kept_session(copy) };
        self.checkpoint.map(own).or_else(|| self.baseline.map(|baseline| baseline.conversation(self.id)))
    }

    /// Whether it continues from a person's session, which the person may continue, too: it was adopted, and no attempt was
    /// kept.
    pub(crate) fn is_adopted(&self) -> bool {
        self.checkpoint.is_some_and(|copy| self.kept_session(copy) != self.session)
    }

    /// The session of one of its checkpoints.
    fn kept_session(&self, checkpoint: AttemptId) -> SessionId {
        if checkpoint == AttemptId::from(self.id) { self.id.into() } else { self.session }
    }
}

impl Task {
    /// A short form of the task, for lists.
    pub(crate) fn title(&self) -> String {
        match self {
            Self::File(path) => path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
            Self::Prompt(text) => text.lines().find(|line| !line.trim().is_empty()).unwrap_or("").trim().to_owned(),
            Self::Group(tasks) => tasks.join(" "),
        }
    }

    /// The command that starts it again.
    pub(crate) fn command(&self) -> String {
        const LONG: usize = 200;
        match self {
            Self::File(path) => format!("agent-cli spawn {}", quoted(&path.display().to_string())),
            Self::Prompt(text) if text.len() < LONG && !text.contains('\n') => {
                format!("agent-cli spawn --prompt {}", quoted(text))
            }
            Self::Prompt(_) => "agent-cli spawn --prompt TEXT".to_owned(),
            Self::Group(tasks) => {
                let tasks = tasks.iter().map(|task| quoted(task)).collect::<Vec<_>>().join(" ");
                format!("agent-cli spawn {tasks}")
            }
        }
    }

    /// Whether it belongs to a group, which has no agent.
    pub(crate) fn is_group(&self) -> bool {
        matches!(self, Self::Group(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::attempt::delivery::testing;
    use crate::core::chain::frame_state::{Failure, FailureKind, Wait};

    #[test]
    fn a_parent_receives_a_result_when_a_frame_is_over() {
        let result = |state: &FrameState, reply: Option<&str>| {
            let frame = Frame { state: state.clone(), ..testing::frame(Task::Prompt("Say hello".into())) };
            frame.result(reply.map(str::to_owned))
        };
        let failed = FrameState::Failed { failure: Failure { kind: FailureKind::Error, message: "boom".into() } };
        assert_eq!(result(&FrameState::Done, Some("hello")), Some(RequestResult::Text("hello".into())));
        // Its parent must not wait indefinitely.
        assert_eq!(result(&FrameState::Done, None), Some(RequestResult::Text(String::new())));
        assert_eq!(result(&failed, None), Some(RequestResult::Failed("boom".into())));
        assert_eq!(result(&failed, Some("half")), Some(RequestResult::Failed("half".into())));
        let group = Frame { state: failed.clone(), ..testing::frame(Task::Group(Vec::new())) };
        let replies = RequestResult::PartlyFailed("one of two".into());
        assert_eq!(group.result(Some("one of two".into())), Some(replies));
        let running = FrameState::Running { waited: None };
        for state in [FrameState::Ready, running, FrameState::Waiting { wait: Wait::Requests }, FrameState::Cancelled] {
            assert_eq!(result(&state, None), None, "{state:?}");
        }
    }

    #[test]
    fn the_command_that_starts_a_task_again_is_one_that_can_be_typed() {
        let long = "x".repeat(200);
        for (task, command) in [
            (Task::Prompt("it's".into()), r"agent-cli spawn --prompt 'it'\''s'"),
            (Task::Prompt("two\nlines".into()), "agent-cli spawn --prompt TEXT"),
            (Task::Prompt(long), "agent-cli spawn --prompt TEXT"),
            (Task::File("/a b.md".into()), "agent-cli spawn '/a b.md'"),
            (Task::Group(vec!["a.md".into(), "b.md".into()]), "agent-cli spawn 'a.md' 'b.md'"),
        ] {
            assert_eq!(task.command(), command);
        }
    }
}
