//! What is recorded about chains: operations for whoever runs them, and what those take and return.

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
    ChainChange, ChainKind, ChainList, ChainOf, Chains, EventRecord, Extent, Instruction, Scope, Summary, Target,
    TreeOf, WorktreesOf,
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

/// The records of chains. Each operation is one transaction or one consistent read, and says what must be atomic beyond that.
pub trait Records {
    /// Records an agent that is ready, a group and its members, or a session that is adopted: as a chain, or below the agent that
    /// asks for its reply. Returns its top.
    ///
    /// # Errors
    ///
    /// `StoreError::Limit`, `StoreError::StaleCaller`, a
    /// path that is not valid UTF-8, or a database that cannot be written.
    fn create(&self, new: NewChain<'_>, asked: Option<AskedFor<'_>>) -> Result<FrameId>;

    /// Frames, with the requests whose results their agents have not been given.
    fn tree(&self, of: TreeOf) -> Result<Tree>;

    /// Which kinds of chains there are, and how many of each.
    fn chain_kinds(&self) -> Result<Vec<ChainKind>>;

    /// The chains that are meant, each with what is below it, the newest first.
    fn chains(&self, of: Chains<'_>) -> Result<ChainList>;

    /// The chains that may be able to continue at `now`, some of them more than once. Those that are failed or
    /// interrupted or paused are not among them: whether they are tried again is for a person to say.
    fn candidates(&self, now: Timestamp) -> Result<Vec<ChangedChain>>;

    /// What `prefix` means in a [`Scope`], outside of which nothing exists.
    ///
    /// # Errors
    ///
    /// `StoreError::Unknown`, `StoreError::Ambiguous`, or a database that cannot be read.
    fn lookup(&self, scope: Scope, prefix: &IdPrefix) -> Result<Target>;

    /// The frame that is meant or whose agent made a request, and the chain that it belongs to.
    fn chain_of(&self, target: Target) -> Result<ChainOf>;

    /// Changes the chain that a frame belongs to, from now on: its limits, and the launch options of all its agents that are not done
    /// and have what its first agent has. Returns how many agents those were. The frame gets an instruction, if there is one.
    ///
    /// # Errors
    ///
    /// The frame does not exist, an agent runs whose launch options could change, the frame gets an instruction and is not over, or
    /// the database cannot be written. Nothing is changed then.
    fn change_chain(&self, frame: FrameId, change: ChainChange) -> Result<usize>;

    /// The worktrees of agents, the deepest first.
    fn worktrees(&self, of: WorktreesOf) -> Result<Vec<(FrameId, Worktree)>>;

    /// One frame.
    fn frame(&self, id: FrameId) -> Result<Option<Frame>>;

    /// What a frame, and the members of a group, have replied.
    fn replies(&self, frame: FrameId) -> Result<Replies>;

    /// Changes the state of a frame whose agent does not run. Returns its new state, or `None` if there is nothing to change: another
    /// process may have been faster.
    ///
    /// # Errors
    ///
    /// `StoreError::Illegal` for a `StateChange::TryAgain` of what can run, runs or is done, `StoreError::FailureDelivered` for that of a
    /// child whose parent is being told of its failure;
    /// `StoreError::UnknownFrame`, or a database that cannot be written.
    fn change_state(&self, frame: FrameId, change: StateChange<'_>) -> Result<Option<FrameState>>;

    /// Records the outcome of recovering a session of `frame`.
    fn record_recovery(&self, frame: FrameId, session: SessionId, recovery: Recovery<'_>) -> Result<()>;

    /// Records that an attempt begins. Its process must not be started before this has returned.
    ///
    /// # Errors
    ///
    /// `StoreError::NotAdmitted` when a limit keeps it from starting, `StoreError::Illegal` when the frame cannot run,
    /// `StoreError::UnknownFrame`, `StoreError::ResultChanged` when one of the requests is not the frame's or not to be delivered,
    /// or has another result than the one that was read, or a database that cannot be written.
    fn begin(&self, frame: FrameId, attempt: &NewAttempt) -> Result<()>;

    /// Records the end of an attempt. Act on it only after this has returned.
    ///
    /// # Errors
    ///
    /// `StoreError::Illegal` when the frame does not run,
    /// `StoreError::StaleCaller` when another attempt of it does, a path that is not
    /// valid UTF-8, or a database that cannot be written; `StoreError::Steered` when somebody has asked the
    /// agent to stop or told it something that the decision does not know.
    fn end_attempt(&self, end: &AttemptEnd<'_>) -> Result<EndedAttempt>;

    /// What an attempt of `frame` was given and asked for.
    fn at_end(&self, frame: FrameId, attempt: AttemptId) -> Result<AtEnd>;

    /// Attempts, in order.
    fn attempts(&self, which: Attempts) -> Result<Vec<Attempt>>;

    /// Records what an agent asks for, all of it or nothing: an answer, a permission, something outside, or the reply of a chain
    /// that exists. `call` is the tool call that is suspended until it is there. Returns the requests, none of
    ///
    /// * a permission, if the attempt was stopped for another one: only one call can be repeated
    /// * a reply that nobody has to wait for in its name: that of a frame of its own tree that it did not join, or that is over
    ///
    /// What the agent has asked for already stands: a question that it has posted, a chain that it waits for.
    ///
    /// # Errors
    ///
    /// `StoreError::StaleCaller`, `StoreError::TooManyQuestions`, a path that is not valid UTF-8, or a database that cannot be written; for the reply of a chain
    /// `StoreError::Limit` when the tree would be too large, `StoreError::UnknownFrame` if the caller's session has not started it.
    fn request(&self, caller: Caller, call: Option<&str>, kinds: &[RequestKind]) -> Result<Vec<RequestId>>;

    /// Makes the records of an attempt's requests agree with what `claude` says about them. Doing it again changes nothing. Calls that
    /// need a permission have a result, that they were denied.
    ///
    /// # Errors
    ///
    /// `StoreError::StaleCaller`, or a database that cannot be written.
    fn complete_requests(&self, caller: Caller, printed: PrintedRequests<'_>) -> Result<()>;

    /// Records what somebody has seen who looked at a request. Nothing changes for one that was over before, nor is one filed
    /// before it is over. Returns whether it was recorded.
    ///
    /// # Errors
    ///
    /// `StoreError::UnknownRequest`, `StoreError::NotAWait`, or the database cannot be written.
    fn looked(&self, request: RequestId, seen: &Seen<'_>) -> Result<bool>;

    /// Requests in their order, each with its result if it is over.
    fn requests(&self, which: Requests<'_>) -> Result<Vec<(Request, Option<RequestResult>)>>;

    /// What the agent of `frame` has not been given.
    fn undelivered(&self, frame: &Frame) -> Result<Undelivered>;

    /// Records what a running attempt does with results. Returns of which requests these are: none that it cannot use like this,
    /// because it was not given them, because a result is no longer the one that was read, or because a permission was used, or may
    /// have been used, in another attempt.
    ///
    /// # Errors
    ///
    /// `StoreError::StaleCaller`, or a database that cannot be written.
    fn use_results(&self, caller: Caller, how: ResultUse<'_>) -> Result<Vec<RequestId>>;

    /// The questions that were not withdrawn, in the order in which they were asked.
    fn questions(&self, which: Questions, only_open: bool) -> Result<Vec<Question>>;

    /// The first `most` questions of chains whose roots work in these directories, or anywhere. The others are only counted.
    fn first_questions(&self, most: usize, within: Option<&[PathBuf]>, only_open: bool) -> Result<FirstQuestions>;

    /// Answers a question. The first answer counts; with `replace`, another one takes the place of an answer that no attempt was
    /// given. An attempt that was to be given the replaced answer can no longer begin.
    ///
    /// # Errors
    ///
    /// `StoreError::AlreadyAnswered`, `StoreError::QuestionExpired`, or with `replace` `StoreError::NotAnswered` and `StoreError::Delivered`;
    /// `StoreError::QuestionWithdrawn`, `StoreError::NotAQuestion`, `StoreError::UnknownRequest`, or a database that
    /// cannot be written.
    fn record_answer(&self, id: RequestId, text: &str, origin: &Origin, replace: bool) -> Result<Question>;

    /// The newest `most` of what was asked since then in chains whose roots work in these directories, or anywhere.
    fn exchanges(&self, asked: Asked, since: Timestamp, most: usize, within: Option<&[PathBuf]>) -> Result<Exchanges>;

    /// What is wanted of an agent.
    fn steering(&self, frame: FrameId) -> Result<Steering>;

    /// Records that an agent and all below it are to stop or to rest. Those that do not run do so at once, unless one below
    /// them runs. `reports`: what some of them have done so far, for their parents.
    ///
    /// Nothing was found if all of them are over, or rest already.
    fn order_stop(&self, frame: FrameId, stop: &Stop, reports: &[(FrameId, String)]) -> Result<Ordered>;

    /// Records a message to an agent. An instruction has it go on, while what its parent sees stays as it is.
    ///
    /// # Errors
    ///
    /// `StoreError::IsOver` for a message to an agent that will not go on, `StoreError::Illegal` for an instruction to one that
    /// is not over; there is no such frame, or the database cannot be written.
    fn tell(&self, frame: FrameId, how: Telling, text: &str, sender: &MessageSender) -> Result<MessageId>;

    /// Records that a running agent is given its messages now, if they are not longer than this together, and returns them. Of two that ask at once, one gets
    /// them.
    ///
    /// # Errors
    ///
    /// `StoreError::StaleCaller`, or a database that cannot be written.
    fn give_messages(&self, caller: Caller, longest: usize) -> Result<Vec<Message>>;

    /// What a frame and all frames below it have cost.
    fn spent(&self, top: FrameId) -> Result<Spent>;

    /// Attempts, as statistics count them.
    fn counted(&self, of: Counting<'_>) -> Result<Vec<Counted>>;

    /// The entries of the log of frames that come after entry `after`, in order. The first has the number 1.
    fn events(&self, of: Extent, after: u64) -> Result<Vec<EventRecord>>;

    /// What is remembered about the program at `program`, if it has not changed since.
    fn known_program(&self, program: &Path, modified: Timestamp) -> Result<Option<KnownProgram>>;

    /// Remembers this about the program at `program`, which was last modified at `modified`, until it changes.
    fn remember_program(&self, program: &Path, modified: Timestamp, known: &KnownProgram) -> Result<()>;
}
