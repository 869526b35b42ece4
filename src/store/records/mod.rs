//! The records of chains: the operations on them, with arguments and results.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::core::agent::child_worktree::Worktree;
use crate::core::agent::usage::Spent;
use crate::core::chain::check_schedule::ChangedChain;
use crate::core::chain::frame::Frame;
use crate::core::chain::frame_state::FrameState;
use crate::core::chain::tree::Tree;
use crate::core::id::{AttemptId, FrameId, IdPrefix, MessageId, RequestId, SessionId};
use crate::core::requests::request::{Request, RequestKind, RequestResult};
use crate::core::steering::message::{Message, MessageSender};
use crate::core::steering::origin::Origin;
use crate::core::steering::stop_order::Stop;
use crate::store::error::Result;
pub(crate) use crate::store::records::attempts::{
    AtEnd, Attempt, AttemptEnd, Attempts, Counted, Counting, EndedAttempt, KnownProgram, NewAttempt, Recovery,
};
pub(crate) use crate::store::records::chains::{
    ChainChange, ChainFilter, ChainKind, ChainList, ChainOf, Chains, EventRecord, Extent, Instruction, Scope, SearchIn,
    Summary, Target, TreeOf, WorktreesOf,
};
pub(crate) use crate::store::records::new_agents::{AskedFor, NewChain, NewFrame, NewGroup};
pub(crate) use crate::store::records::questions::{
    Asked, Exchange, Exchanges, FirstQuestions, Given, Question, Questions, Together,
};
pub(crate) use crate::store::records::requests::{
    Caller, PrintedRequests, Replies, Requests, ResultUse, Seen, Undelivered,
};
pub(crate) use crate::store::records::steering::{Ordered, StateChange, Steering, Telling};

pub(crate) mod abandoned;
pub(super) mod attempts;
pub(super) mod chains;
pub(super) mod new_agents;
mod questions;
pub(super) mod requests;
mod steering;

/// The records of chains. Each operation is one transaction or one consistent read. Operations that guarantee more say so.
pub trait Records {
    /// Records a ready agent, a group with its members, or an adopted session. It becomes a chain, or part of the chain of
    /// the agent that asks for its reply. If that agent detaches it, it becomes a chain that shares the budget and the
    /// number of agents with the agent's own chain. Returns its top.
    ///
    /// # Errors
    ///
    /// `StoreError::Limit`, `StoreError::StaleCaller`, a path that is not valid UTF-8, or an error writing the database.
    fn create(&self, new: NewChain<'_>, asked: Option<AskedFor<'_>>) -> Result<FrameId>;

    /// Trees of frames, with the requests whose results their agents have not been given.
    fn trees(&self, of: &[TreeOf]) -> Result<Vec<Tree>>;

    /// The kinds of chains, with the number of chains of each.
    fn chain_kinds(&self) -> Result<Vec<ChainKind>>;

    /// Chains with a summary of their trees, the newest first.
    fn chains(&self, of: Chains<'_>) -> Result<ChainList>;

    /// The chains of these kinds that match, the newest first.
    fn matching_chains(&self, kinds: &[ChainKind], filter: &ChainFilter) -> Result<Vec<FrameId>>;

    /// The chains that may be able to continue at `now`, some of them more than once. Failed, interrupted and paused chains
    /// are excluded: a person decides whether to retry them.
    fn candidates(&self, now: Timestamp) -> Result<Vec<ChangedChain>>;

    /// What `prefix` refers to in a [`Scope`]. Anything outside it does not exist.
    ///
    /// # Errors
    ///
    /// `StoreError::Unknown`, `StoreError::Ambiguous`, or an error reading the database.
    fn lookup(&self, scope: Scope, prefix: &IdPrefix) -> Result<Target>;

    /// The frame itself, or the one whose agent made a request, and the chain that it belongs to.
    fn chain_of(&self, target: Target) -> Result<ChainOf>;

    /// Changes the chain of a frame from now on: its limits, and the launch options of all its agents that are not done and
    /// have the options of its first agent. Returns the number of these agents. If there is an instruction, the frame gets
    /// it.
    ///
    /// # Errors
    ///
    /// The frame does not exist, an agent whose launch options would change is running, the frame gets an instruction but
    /// has not ended, or the database cannot be written. Nothing is changed then.
    fn change_chain(&self, frame: FrameId, change: ChainChange) -> Result<usize>;

    /// The worktrees of agents, the deepest first.
    fn worktrees(&self, of: WorktreesOf) -> Result<Vec<(FrameId, Worktree)>>;

    /// One frame.
    fn frame(&self, id: FrameId) -> Result<Option<Frame>>;

    /// The replies of a frame and of the members of a group.
    fn replies(&self, frame: FrameId) -> Result<Replies>;

    /// Changes the state of a frame whose agent is not running. Returns its new state, or `None` if there is nothing to
    /// change: another process may have been faster.
    ///
    /// # Errors
    ///
    /// `StoreError::Illegal` for a `StateChange::TryAgain` of a frame that can run, is running or is done,
    /// `StoreError::FailureDelivered` for a child whose parent is being told of its failure; `StoreError::UnknownFrame`, or
    /// an error writing the database.
    fn change_state(&self, frame: FrameId, change: StateChange<'_>) -> Result<Option<FrameState>>;

    /// Records the outcome of recovering a session of `frame`.
    fn record_recovery(&self, frame: FrameId, session: SessionId, recovery: Recovery<'_>) -> Result<()>;

    /// Records that an attempt begins. Its process must not be started before this has returned.
    ///
    /// # Errors
    ///
    /// `StoreError::NotAdmitted` if a limit keeps it from starting, `StoreError::Illegal` if the frame cannot run,
    /// `StoreError::UnknownFrame`, `StoreError::ResultChanged` if one of the requests does not belong to the frame, cannot
    /// be delivered, or has another result than the one that was read, or an error writing the database.
    fn begin(&self, frame: FrameId, attempt: &NewAttempt) -> Result<()>;

    /// Records the end of an attempt. Act on it only after this has returned.
    ///
    /// # Errors
    ///
    /// `StoreError::Illegal` if the frame is not running, `StoreError::StaleCaller` if another attempt of it is running, a
    /// path that is not valid UTF-8, or an error writing the database; `StoreError::Steered` if the agent was asked to stop
    /// or got a message that the decision does not take into account.
    fn end_attempt(&self, end: &AttemptEnd<'_>) -> Result<EndedAttempt>;

    /// What an attempt of `frame` was given and asked for.
    fn at_end(&self, frame: FrameId, attempt: AttemptId) -> Result<AtEnd>;

    /// Attempts, in order.
    fn attempts(&self, which: Attempts) -> Result<Vec<Attempt>>;

    /// Records what an agent asks for, all of it or nothing: an answer, a permission, something outside the chain, or the
    /// reply of an existing chain. `call` is the tool call that is suspended until the result exists. Returns the requests.
    /// Returns none for
    ///
    /// * a permission, if the attempt was stopped for another one: only one call can be repeated
    /// * a reply that the agent need not wait for: of a frame of its own tree that it did not join, or of a frame that has
    ///   finished
    ///
    /// Requests that the agent has made already are returned, not recorded again: a question that it has posted, a chain
    /// that it waits for.
    ///
    /// # Errors
    ///
    /// `StoreError::StaleCaller`, `StoreError::TooManyQuestions`, a path that is not valid UTF-8, or an error writing the
    /// database; for the reply of a chain `StoreError::Limit` if the tree would be too large, `StoreError::UnknownFrame` if
    /// the caller's session has not started it.
    fn request(&self, caller: Caller, call: Option<&str>, kinds: &[RequestKind]) -> Result<Vec<RequestId>>;

    /// Makes the records of an attempt's requests agree with what `claude` reports about them. Idempotent. `claude` reports
    /// calls that need a permission as denied.
    ///
    /// # Errors
    ///
    /// `StoreError::StaleCaller`, or an error writing the database.
    fn complete_requests(&self, caller: Caller, printed: PrintedRequests<'_>) -> Result<()>;

    /// Records an observation of a request. Requests that had ended before do not change, and a request is not filed before
    /// it has ended. Returns whether it was recorded.
    ///
    /// # Errors
    ///
    /// `StoreError::UnknownRequest`, `StoreError::NotAWait`, or the database cannot be written.
    fn looked(&self, request: RequestId, seen: &Seen<'_>) -> Result<bool>;

    /// Requests in order, each with its result if it has ended.
    fn requests(&self, which: Requests<'_>) -> Result<Vec<(Request, Option<RequestResult>)>>;

    /// What the agent of `frame` has not been given yet.
    fn undelivered(&self, frame: &Frame) -> Result<Undelivered>;

    /// Records what a running attempt does with results. Returns the requests concerned. Returns none if the agent cannot
    /// use them like this, because it was not given them, because a result has changed since it was read, or because a
    /// permission was used, or may have been used, in another attempt.
    ///
    /// # Errors
    ///
    /// `StoreError::StaleCaller`, or an error writing the database.
    fn use_results(&self, caller: Caller, how: ResultUse<'_>) -> Result<Vec<RequestId>>;

    /// The questions that were not withdrawn, in the order in which they were asked.
    fn questions(&self, which: Questions, only_open: bool) -> Result<Vec<Question>>;

    /// The first `most` questions of chains whose roots work in these directories, or anywhere. The others are only counted.
    fn first_questions(&self, most: usize, within: Option<&[PathBuf]>, only_open: bool) -> Result<FirstQuestions>;

    /// Answers a question. The first answer counts; with `replace`, another one replaces an answer that was not delivered to
    /// an attempt. An attempt that was about to get the replaced answer can no longer begin.
    ///
    /// # Errors
    ///
    /// `StoreError::AlreadyAnswered`, `StoreError::QuestionExpired`, or with `replace` `StoreError::NotAnswered` and
    /// `StoreError::Delivered`; `StoreError::QuestionWithdrawn`, `StoreError::NotAQuestion`, `StoreError::UnknownRequest`,
    /// or an error writing the database.
    fn record_answer(&self, id: RequestId, text: &str, origin: &Origin, replace: bool) -> Result<Question>;

    /// The newest `most` questions that were asked since then in chains whose roots work in these directories, or anywhere.
    fn exchanges(&self, asked: Asked, since: Timestamp, most: usize, within: Option<&[PathBuf]>) -> Result<Exchanges>;

    /// The stop and the messages that apply to an agent.
    fn steering(&self, frame: FrameId) -> Result<Steering>;

    /// Records that an agent and all below it must stop or pause. Agents that are not running do so immediately, unless one
    /// below them is running. `reports`: what some of them have done so far, for their parents.
    ///
    /// Returns nothing if all of them have ended, or are paused already.
    fn order_stop(&self, frame: FrameId, stop: &Stop, reports: &[(FrameId, String)]) -> Result<Ordered>;

    /// Records a message to an agent. An instruction makes it continue, while its parent's view does not change.
    ///
    /// # Errors
    ///
    /// `StoreError::IsOver` for a message to an agent that will not continue, `StoreError::Illegal` for an instruction to
    /// one that has not ended; the frame does not exist, or the database cannot be written.
    fn tell(&self, frame: FrameId, how: Telling, text: &str, sender: &MessageSender) -> Result<MessageId>;

    /// Records that a running agent is given its messages now, and returns them, unless they are longer than `longest`
    /// together. If two processes ask at once, one of them gets the messages.
    ///
    /// # Errors
    ///
    /// `StoreError::StaleCaller`, or an error writing the database.
    fn give_messages(&self, caller: Caller, longest: usize) -> Result<Vec<Message>>;

    /// What a frame and all frames below it have cost.
    fn spent_below(&self, tops: &[FrameId]) -> Result<Vec<Spent>>;

    /// Attempts, as statistics count them.
    fn counted(&self, of: Counting<'_>) -> Result<Vec<Counted>>;

    /// The log entries of frames after entry `after`, in order. The first has the number 1.
    fn events(&self, of: Extent, after: u64) -> Result<Vec<EventRecord>>;

    /// The remembered facts about the program at `program`, if it has not changed since.
    fn known_program(&self, program: &Path, modified: Timestamp) -> Result<Option<KnownProgram>>;

    /// Remembers this about the program at `program`, which was last modified at `modified`, until it changes.
    fn remember_program(&self, program: &Path, modified: Timestamp, known: &KnownProgram) -> Result<()>;
}
