//! Attempts, their ends, and their costs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;

use crate::core::agent::child_worktree::pushed_worktree::Pushed;
use crate::core::agent::denied_call::Denied;
use crate::core::agent::situation::Situation;
use crate::core::agent::usage::context_size::Context;
use crate::core::agent::usage::{Spending, Spent, Totals};
use crate::core::attempt::decision::Decision;
use crate::core::attempt::meaning;
use crate::core::chain::frame_state::{FrameState, Wait};
use crate::core::id::{AttemptId, FrameId, MessageId, RequestId, SessionId};
use crate::core::requests::request::{Delivery, RequestResult};
use crate::core::requests::request_state::Handover;
use crate::core::steering::message::Message;
use crate::core::steering::stop_order::Stop;
use crate::store::records::chains::Extent;

/// An attempt that is about to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAttempt {
    /// Its id.
    pub id: AttemptId,
    /// Its session.
    pub session: SessionId,
    /// The session that it begins with, its own or another.
    pub resumed: Option<SessionId>,
    /// Where its events begin in the frame's output.
    pub output_from: u64,
    /// Where its messages begin in the frame's standard error.
    pub errors_from: u64,
    /// The process that runs it, for people.
    pub runner: u32,
    /// The requests whose results it is given, with the results that were read.
    pub given: Vec<(RequestId, RequestResult)>,
    /// The requests in `given` whose result is in the conversation at its call, without `claude` printing it.
    pub placed: Vec<RequestId>,
    /// The requests in `given` whose suspended call the attempt resumes, and how it gets their result.
    pub resumed_calls: Vec<(RequestId, Handover)>,
    /// The permission mode with which it begins, if it differs from the mode in the launch options.
    pub mode: Option<String>,
    /// A text for its agent in addition to the result of the call that it resumes.
    pub notice: Option<String>,
    /// How many agents of all chains may run, including this one.
    pub max_parallel_total: Option<u32>,
    /// The messages in its prompt.
    pub messages: Vec<MessageId>,
    /// The checkpoint that the attempt must summarise.
    pub summarises: Option<AttemptId>,
}

/// One `claude` process on behalf of a frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// Its id.
    pub id: AttemptId,
    /// Its session.
    pub session: SessionId,
    /// The frame.
    pub frame: FrameId,
    /// The session that it began with, its own or another.
    pub resumed: Option<SessionId>,
    /// What the frame waited for before; `None`: it was ready.
    pub waited: Option<Wait>,
    /// Where its events begin in the frame's output.
    pub output_from: u64,
    /// Where its messages begin in the frame's standard error.
    pub errors_from: u64,
    /// The process that ran it, for people.
    pub runner: u32,
    /// When it was recorded, which is before its process started.
    pub began: Timestamp,
    /// When its end was recorded; `None`: it is running, or its end was not noticed yet.
    pub ended: Option<Timestamp>,
    /// How long it ran, without the time in which the machine slept; `None`: this was not measured.
    pub ran: Option<Duration>,
    /// How many of its calls have lingered: they stayed open for a while, because their results were expected soon.
    pub lingered: u32,
    /// For how long those did that have returned.
    pub lingered_for: Duration,
    /// Since when a call lingers, and until when it may. This remains if it never returns.
    pub lingers: Option<(Timestamp, Timestamp)>,
    /// How it ended, in one word.
    pub outcome: Option<String>,
    /// The text it ended with, unless that is a reply.
    pub message: Option<String>,
    /// Whether its session was kept.
    pub kept: Option<bool>,
    /// What it spent; zero while it is running.
    pub spending: Spending,
    /// What its session had spent when it ended.
    pub total: Totals,
    /// The model that it ran with, as far as `claude` reported it.
    pub model: Option<String>,
    /// The version of Claude Code.
    pub version: Option<String>,
    /// A digest of the transcript that it left behind, if it was not kept.
    pub leaves: Option<String>,
    /// Where its transcript is.
    pub transcript: Option<PathBuf>,
    /// The permission mode with which it began, if it differed from the mode in the launch options.
    pub mode: Option<String>,
    /// A text for its agent in addition to the result of the call that it resumed.
    pub notice: Option<String>,
    /// The calls that were denied in it.
    pub denied: Vec<Denied>,
    /// The checkpoint that the attempt must summarise.
    pub summarises: Option<AttemptId>,
    /// How much of its model's context window its conversation took at the end.
    pub context: Option<Context>,
    /// The host on which it ran, if it was another one.
    pub host: Option<String>,
    /// Whether it ran on this host, if hosts share the database.
    pub ran_here: bool,
}

/// Which attempts are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempts {
    /// Attempts of a frame, or of all frames below it as well.
    Of(Extent),
    /// The attempt of a frame whose end was not recorded.
    RunningOf(FrameId),
    /// All attempts whose end was not recorded.
    Running,
    /// Attempts of a frame and of all frames below it in which calls were denied, discarded attempts excluded.
    WithDenied(FrameId),
    /// The attempt that made a request.
    ThatAsked(RequestId),
    /// The newest that began a new conversation and got an answer, the newest first: enough to tell what a new conversation
    /// begins with.
    NewestNew,
}

impl Attempt {
    /// Whether its frame has started afresh with the summary that it wrote.
    pub(crate) fn is_summary(&self) -> bool {
        self.outcome.as_deref() == Some(meaning::SUMMARY)
    }

    /// For how long its calls have lingered until `now`.
    pub(crate) fn lingered_until(&self, now: Timestamp) -> Duration {
        let open = self.lingers.map(|(since, until)| now.min(until).duration_since(since));
        // A clock may have been set back.
        self.lingered_for + open.and_then(|open| Duration::try_from(open).ok()).unwrap_or_default()
    }
}

impl From<FrameId> for Attempts {
    fn from(frame: FrameId) -> Self {
        Self::Of(Extent::One(frame))
    }
}

/// Remembered facts about a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownProgram {
    /// Its version, as it reports it.
    pub version: String,
    /// Whether it does not run suspended calls of forks.
    pub refuses_forks: bool,
}

/// Attempts that share all of these values, as statistics count them.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// When the first of them began. The others began in the same quarter of an hour, and so on the same day in every time
    /// zone.
    pub(crate) began: Timestamp,
    /// The model that they ran with, as far as `claude` reported it.
    pub(crate) model: Option<String>,
    /// Whether they are still running.
    pub(crate) runs: bool,
    /// The file of instructions of their agents; `None`: a prompt.
    pub(crate) file: Option<String>,
    /// What they cost.
    pub(crate) spent: Spent,
}

/// Which attempts are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting<'a> {
    /// Those that began at this time or later, in order.
    Since(Timestamp),
    /// The newest with this model that reported its cost.
    LastPriced(&'a str),
}

/// How an attempt ended, and what follows from it.
#[derive(Clone, Debug)]
pub struct AttemptEnd<'a> {
    /// The frame.
    pub frame: FrameId,
    /// The attempt.
    pub attempt: AttemptId,
    /// What its end means.
    pub decision: &'a Decision,
    /// When it ended, if that was noticed only later; `None`: now.
    pub ended: Option<Timestamp>,
    /// How long it ran, if that was measured.
    pub ran: Option<Duration>,
    /// What it spent.
    pub spending: Spending,
    /// What its session had spent by then. A fork of it may continue this count.
    pub total: Totals,
    /// The model that it ran with, which the frame keeps with its session.
    pub model: Option<String>,
    /// The version of Claude Code.
    pub version: Option<String>,
    /// Where its transcript is.
    pub transcript: Option<PathBuf>,
    /// A digest of the transcript that it leaves behind, if it is not kept.
    pub leaves: Option<String>,
    /// The tool call at which its session is suspended.
    pub suspended: Option<String>,
    /// The agent's situation, apart from its conversation.
    pub situation: Situation,
    /// The calls that were denied in it.
    pub denied: Vec<Denied>,
    /// The stop that the decision takes into account.
    pub stop: Option<Stop>,
    /// What its agent has done so far, for its parent, if it was stopped.
    pub report: Option<String>,
    /// What the resting agents in its background have done, if it fails.
    pub left_behind: Vec<(FrameId, String)>,
    /// The messages that its agent was given but has not seen.
    pub unseen_messages: Vec<MessageId>,
    /// How much of its model's context window its conversation took.
    pub context: Option<Context>,
    /// How much of the worktree in which it worked is on its git remote, and the frame to which that worktree belongs.
    pub pushed: Option<(FrameId, Pushed)>,
}

/// The consequences of an attempt's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedAttempt {
    /// The state of its frame.
    pub state: FrameState,
    /// The attempts of its frame whose copies are needed.
    pub copies: Vec<AttemptId>,
}

/// The records of an attempt that has ended: what it was given, and what it asked for.
#[derive(Clone, Debug)]
pub struct AtEnd {
    /// The results that its agent was given, at its start or when it looked them up.
    pub given: Vec<Delivery>,
    /// Its own requests whose results it has looked up.
    pub looked_up: Vec<RequestId>,
    /// The requests that the agent made with calls that lingered, and that have returned the results or are about to.
    pub in_time: Vec<RequestId>,
    /// The requests whose results a resumed call has returned.
    pub shown: Vec<RequestId>,
    /// Whether it waits for something: it has made requests whose results it has not been given, or has jobs.
    pub has_open: bool,
    /// Whether it has agents in the background whose results it has not been given.
    pub has_background: bool,
    /// Whether it has asked for a permission.
    pub awaits_permission: bool,
    /// The messages that its agent was given.
    pub messages: Vec<Message>,
}

/// A step that was necessary before an agent could continue.
#[derive(Clone, Copy, Debug)]
pub enum Recovery<'a> {
    /// The transcript of a session was moved here, together with the files next to it.
    Moved(&'a Path),
    /// A conversation that was continued outside agent-cli was moved to another session.
    SetAside(SessionId),
}
