//! Maps each operation on the records to a transaction.

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
use crate::failpoint::Step;
use crate::store::error::Result;
use crate::store::records::{
    Asked, AskedFor, AtEnd, Attempt, AttemptEnd, Attempts, Caller, ChainChange, ChainFilter, ChainKind, ChainList,
    ChainOf, Chains, Counted, Counting, EndedAttempt, EventRecord, Exchanges, Extent, FirstQuestions, KnownProgram,
    NewAttempt, NewChain, Ordered, PrintedRequests, Question, Questions, Records, Recovery, Replies, Requests,
    ResultUse, Scope, Seen, StateChange, Steering, Target, Telling, TreeOf, Undelivered, WorktreesOf,
};
use crate::store::sql::attempts::{attempt_records, end, program_cache, returns, spent, undelivered};
use crate::store::sql::chains::{
    candidates, exchanges, limit_checks, listing, prefix_lookup, repair, trees, worktrees,
};
use crate::store::sql::database::connection::Database;
use crate::store::sql::hosts::leases;
use crate::store::sql::housekeeping::{copies, objects};
use crate::store::sql::requests::questions::{self, asked};
use crate::store::sql::requests::{agent_creation, calls, groups, request_records};
use crate::store::sql::steering::{self, messages, state_change, stops};
use crate::store::sql::tables::chains;
use crate::store::sql::tables::events;
use crate::store::sql::tables::frames;

impl Records for Database {
    fn create(&self, new: NewChain<'_>, asked: Option<AskedFor<'_>>) -> Result<FrameId> {
        let step = match (asked, new) {
            (Some(_), _) => Step::RequestChild,
            (None, NewChain::Adopted(..)) => Step::Adopt,
            (None, _) => Step::CreateRoot,
        };
        let created = self.write(step, |connection| agent_creation::create(connection, new, asked))?;
        if let NewChain::Adopted(..) = new {
            copies::keep_all(self, Some(created));
        }
        Ok(created)
    }

    fn trees(&self, of: &[TreeOf]) -> Result<Vec<Tree>> {
        self.read(|connection| trees::trees(connection, of))
    }

    fn chain_kinds(&self) -> Result<Vec<ChainKind>> {
        self.query(listing::chain_kinds)
    }

    fn chains(&self, of: Chains<'_>) -> Result<ChainList> {
        self.read(|connection| listing::chains(connection, of))
    }

    fn matching_chains(&self, kinds: &[ChainKind], filter: &ChainFilter) -> Result<Vec<FrameId>> {
        self.read(|connection| listing::matching(connection, kinds, filter))
    }

    fn candidates(&self, now: Timestamp) -> Result<Vec<ChangedChain>> {
        self.read(|connection| {
            let mut found = candidates::candidates(connection, now)?;
            let roots: Vec<FrameId> = found.iter().map(|candidate| candidate.root).collect();
            let elsewhere = chains::elsewhere_among(connection, &roots)?;
            found.retain(|candidate| !elsewhere.contains(&candidate.root));
            Ok(found)
        })
    }

    fn lookup(&self, scope: Scope, prefix: &IdPrefix) -> Result<Target> {
        self.read(|connection| prefix_lookup::lookup(connection, scope, prefix))
    }

    fn chain_of(&self, target: Target) -> Result<ChainOf> {
        self.query(|connection| limit_checks::chain_of(connection, target))
    }

    fn change_chain(&self, frame: FrameId, change: ChainChange) -> Result<usize> {
        let step = match &change {
            ChainChange { afresh: true, .. } => Step::StartAfresh,
            ChainChange { instruction: Some(_), .. } => Step::Instruct,
            _ => Step::ChangeChain,
        };
        self.write(step, |connection| repair::change_chain(connection, frame, change))
    }

    fn worktrees(&self, of: WorktreesOf) -> Result<Vec<(FrameId, Worktree)>> {
        self.query(|connection| worktrees::worktrees(connection, of))
    }

    fn frame(&self, id: FrameId) -> Result<Option<Frame>> {
        self.query(|connection| frames::frame(connection, id))
    }

    fn replies(&self, frame: FrameId) -> Result<Replies> {
        self.read(|connection| groups::replies(connection, frame))
    }

    fn change_state(&self, frame: FrameId, change: StateChange<'_>) -> Result<Option<FrameState>> {
        self.write(change.step(), |connection| state_change::change_state(connection, frame, change))
    }

    fn record_recovery(&self, frame: FrameId, session: SessionId, recovery: Recovery<'_>) -> Result<()> {
        self.write(Step::PutBack, |connection| attempt_records::record_recovery(connection, frame, session, recovery))
    }

    fn begin(&self, frame: FrameId, attempt: &NewAttempt) -> Result<()> {
        self.write(Step::Begin, |connection| attempt_records::begin(connection, frame, attempt))
    }

    fn end_attempt(&self, end: &AttemptEnd<'_>) -> Result<EndedAttempt> {
        // The files come first: the record says that they are there.
        copies::keep(self, end.frame, &[end.attempt], |connection| {
            chains::check_other_host(connection, frames::existing(connection, end.frame)?.root)
        })?;
        let ended = self.write(Step::EndAttempt, |connection| end::end_attempt(connection, end))?;
        objects::sweep(self, Some(end.frame));
        Ok(ended)
    }

    fn at_end(&self, frame: FrameId, attempt: AttemptId) -> Result<AtEnd> {
        self.read(|connection| returns::at_end(connection, frame, attempt))
    }

    fn attempts(&self, which: Attempts) -> Result<Vec<Attempt>> {
        self.query(|connection| attempt_records::attempts(connection, which))
    }

    fn request(&self, caller: Caller, call: Option<&str>, kinds: &[RequestKind]) -> Result<Vec<RequestId>> {
        let step =
            if kinds.iter().any(|kind| matches!(kind, RequestKind::Spawn { .. })) { Step::Join } else { Step::Request };
        self.write(step, |connection| request_records::request(connection, caller, call, kinds))
    }

    fn complete_requests(&self, caller: Caller, printed: PrintedRequests<'_>) -> Result<()> {
        self.write(Step::WithdrawCalls, |connection| calls::complete_requests(connection, caller, printed))
    }

    fn looked(&self, request: RequestId, seen: &Seen<'_>) -> Result<bool> {
        let step = match seen {
            Seen::Progress(_) | Seen::Try(..) | Seen::Tried(..) => Step::Looked,
            Seen::Time(_) => Step::Expire,
            Seen::Form(_) => Step::Reword,
            Seen::Filed => Step::Filed,
        };
        self.write(step, |connection| request_records::looked(connection, request, seen))
    }

    fn requests(&self, which: Requests<'_>) -> Result<Vec<(Request, Option<RequestResult>)>> {
        self.read(|connection| request_records::requests(connection, which))
    }

    fn undelivered(&self, frame: &Frame) -> Result<Undelivered> {
        self.read(|connection| undelivered::undelivered(connection, frame))
    }

    fn use_results(&self, caller: Caller, how: ResultUse<'_>) -> Result<Vec<RequestId>> {
        self.write(Step::Returned, |connection| returns::use_results(connection, caller, how))
    }

    fn questions(&self, which: Questions, only_open: bool) -> Result<Vec<Question>> {
        self.query(|connection| asked::questions(connection, which, only_open))
    }

    fn first_questions(&self, most: usize, within: Option<&[PathBuf]>, only_open: bool) -> Result<FirstQuestions> {
        self.read(|connection| asked::first_questions(connection, most, within, only_open))
    }

    fn record_answer(&self, id: RequestId, text: &str, origin: &Origin, replace: bool) -> Result<Question> {
        self.write(Step::Answer, |connection| {
            let origin = Origin { host: leases::identity(connection)?, ..origin.clone() };
            questions::record_answer(connection, id, text, &origin, replace)
        })
    }

    fn exchanges(&self, asked: Asked, since: Timestamp, most: usize, within: Option<&[PathBuf]>) -> Result<Exchanges> {
        self.read(|connection| exchanges::exchanges(connection, asked, since, most, within))
    }

    fn steering(&self, frame: FrameId) -> Result<Steering> {
        self.read(|connection| steering::steering(connection, frame))
    }

    fn order_stop(&self, frame: FrameId, stop: &Stop, reports: &[(FrameId, String)]) -> Result<Ordered> {
        self.write(Step::OrderStop, |connection| stops::order_stop(connection, frame, stop, reports))
    }

    fn tell(&self, frame: FrameId, how: Telling, text: &str, sender: &MessageSender) -> Result<MessageId> {
        let step = if how == Telling::Instruction { Step::Instruct } else { Step::Tell };
        self.write(step, |connection| messages::tell(connection, frame, how, text, sender))
    }

    fn give_messages(&self, caller: Caller, longest: usize) -> Result<Vec<Message>> {
        self.write(Step::Tell, |connection| messages::give_messages(connection, caller, longest))
    }

    fn spent_below(&self, tops: &[FrameId]) -> Result<Vec<Spent>> {
        self.read(|connection| spent::spent(connection, tops))
    }

    fn counted(&self, of: Counting<'_>) -> Result<Vec<Counted>> {
        self.query(|connection| spent::counted(connection, of))
    }

    fn events(&self, of: Extent, after: u64) -> Result<Vec<EventRecord>> {
        self.query(|connection| events::events(connection, of, after))
    }

    fn known_program(&self, program: &Path, modified: Timestamp) -> Result<Option<KnownProgram>> {
        self.query(|connection| program_cache::known_program(connection, program, modified))
    }

    fn remember_program(&self, program: &Path, modified: Timestamp, known: &KnownProgram) -> Result<()> {
        self.write(Step::RememberVersion, |connection| {
            program_cache::remember_program(connection, program, modified, known)
        })
    }
}
