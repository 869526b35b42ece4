//! Shared by the tests of the store.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::core::agent::launch::Launch;
use crate::core::agent::situation::Situation;
use crate::core::agent::usage::{Spending, Totals, Usage};
use crate::core::attempt::decision::{Decision, decide};
use crate::core::attempt::ending::{Ending, Objection};
use crate::core::attempt::facts::Facts;
use crate::core::chain::frame::Task;
use crate::core::chain::frame_state::FrameState;
use crate::core::chain::limits::Limits;
use crate::core::housekeeping::hosting::Labels;
use crate::core::housekeeping::retention::Retention;
use crate::core::id::{AttemptId, FrameId, RequestId, SessionId};
use crate::core::requests::question_form::Form;
use crate::core::requests::request::{Delivery, Request, RequestKind, RequestResult, SpawnForm};
use crate::core::steering::origin::Origin;
use crate::core::waits::wait_progress::{CheckResult, WaitProgress};
use crate::store::error::Result;
use crate::store::files::state_dir::StateDir;
use crate::store::files::state_dir::server_file::{DirectoryIdentity, ServerFile};
use crate::store::handle::Store;
use crate::store::hosts::Terms;
use crate::store::housekeeping::removable::Decided;
use crate::store::records::{
    AskedFor, AttemptEnd, Caller, Chains, NewAttempt, NewChain, NewFrame, NewGroup, Question, Requests, Seen,
    StateChange, Summary, TreeOf,
};

/// A store in a temporary directory.
pub(crate) fn store() -> (TempDir, Store) {
    let temp = tempfile::tempdir().unwrap();
    let store = open(&temp.path().join("state"));
    (temp, store)
}

/// The store of a directory. With this variable, its database is on a server.
pub(crate) fn open(dir: &Path) -> Store {
    let of = StateDir::new(dir).unwrap();
    if std::env::var_os("AGENT_CLI_TEST_SERVER").is_some() && of.server().unwrap().is_none() {
        of.set_server(&ServerFile {
            url: postgres::new_database(),
            host: "here".into(),
            identity: DirectoryIdentity::default(),
        })
        .unwrap();
    }
    let store = Store::open(dir).unwrap();
    if let Some(hosts) = store.hosts() {
        // Attempts begin only where a lease is held.
        hosts
            .renew(&Terms { lease: Duration::from_secs(3600), labels: Labels::default(), runs_agents: false })
            .unwrap();
    }
    store
}

/// The address of an empty database, if tests use a server.
pub(crate) fn new_server() -> Option<String> {
    std::env::var_os("AGENT_CLI_TEST_SERVER").map(|_| postgres::new_database())
}

/// Ends the connections of a store, if its database is on a server.
pub(crate) fn end_connections(store: &Store) {
    store.dir().server().unwrap().into_iter().for_each(|server| postgres::end_connections(&server.url));
}

/// Another host that shares the database of a store, if it is on a server.
pub(crate) fn another_host(store: &Store) -> Option<(TempDir, Store)> {
    let server = store.dir().server().unwrap()?;
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("state");
    StateDir::new(&dir).unwrap().set_server(&ServerFile { host: "there".into(), ..server }).unwrap();
    let other = open(&dir);
    Some((temp, other))
}

/// For tests of what only SQLite has.
pub(crate) fn in_file() -> (TempDir, Store) {
    let temp = tempfile::tempdir().unwrap();
    let store = Store::open(&temp.path().join("state")).unwrap();
    (temp, store)
}

// Tests of commands use the rest.
#[expect(dead_code, reason = "they are the ones that use it")]
#[path = "../../tests/support/postgres.rs"]
mod postgres;

pub(crate) fn new(task: &str) -> NewFrame {
    NewFrame {
        id: FrameId::random(),
        task: Task::Prompt(task.to_owned()),
        cwd: PathBuf::from("/srv"),
        launch: Launch::default(),
        limits: Limits::default(),
        baseline: None,
        started_from: None,
        name: None,
        on: None,
        pushed: None,
    }
}

pub(crate) fn group(tasks: &[&str]) -> NewGroup {
    NewGroup {
        members: tasks.iter().map(|task| new(task)).collect(),
        cwd: "/srv".into(),
        tasks: tasks.iter().map(|task| (*task).to_owned()).collect(),
    }
}

pub(crate) fn attempt(given: Vec<(RequestId, RequestResult)>) -> NewAttempt {
    NewAttempt {
        id: AttemptId::random(),
        session: SessionId::random(),
        resumed: None,
        output_from: 7,
        errors_from: 3,
        runner: 42,
        given,
        placed: Vec::new(),
        resumed_calls: Vec::new(),
        mode: None,
        notice: None,
        max_parallel_total: None,
        messages: Vec::new(),
        summarises: None,
    }
}

pub(crate) fn ask(question: &str) -> RequestKind {
    RequestKind::Ask(Form::text(question))
}

pub(crate) fn reply(text: &str) -> Ending {
    Ending::Reply(text.to_owned())
}

pub(crate) fn refused(why: &str) -> Ending {
    Ending::Refused { why: why.to_owned(), objection: Objection::Unknown }
}

pub(crate) fn attempt_end(caller: Caller, decision: &Decision) -> AttemptEnd<'_> {
    AttemptEnd {
        pushed: None,
        frame: caller.frame,
        attempt: caller.attempt,
        decision,
        ended: None,
        ran: None,
        spending: Spending {
            usage: Usage { input_tokens: 1, output_tokens: 2, ..Usage::default() },
            requests: 1,
            usd: 0.25,
            estimated: false,
        },
        total: Totals { usd: 0.5, usage: None },
        model: None,
        version: None,
        transcript: None,
        leaves: None,
        suspended: None,
        situation: Situation::default(),
        denied: Vec::new(),
        stop: None,
        report: None,
        left_behind: Vec::new(),
        unseen_messages: Vec::new(),
        context: None,
    }
}

impl Store {
    /// Meets the only condition of a wait.
    pub(crate) fn resolve_wait(&self, request: RequestId) -> Result<()> {
        let mut progress = WaitProgress::default();
        progress.note(0, CheckResult::Met(None), jiff::Timestamp::UNIX_EPOCH);
        self.looked(request, &Seen::Progress(&progress)).map(drop)
    }

    /// Removes trees and their files. Returns the removed ones.
    pub(crate) fn remove_trees(&self, trees: &[Decided], retention: Retention) -> Vec<FrameId> {
        let removed = self.housekeeping().remove_trees(trees, retention).unwrap();
        removed.trash.delete().unwrap();
        removed.roots
    }

    /// All chains, the newest first.
    pub(crate) fn roots(&self) -> Vec<Summary> {
        self.chains(Chains::Newest { most: usize::MAX, kinds: None }).unwrap().chains
    }

    pub(crate) fn create_root<'a>(&self, new: impl Into<NewChain<'a>>) -> Result<FrameId> {
        self.create(new, None)
    }

    /// Returns the request and the child.
    pub(crate) fn request_child<'a>(
        &self,
        caller: Caller,
        call: Option<&str>,
        new: impl Into<NewChain<'a>>,
        title: &str,
    ) -> Result<(RequestId, FrameId)> {
        self.ask_for(AskedFor { caller, call, title, form: SpawnForm::Call, json: false, detached: None }, new)
    }

    pub(crate) fn ask_for<'a>(
        &self,
        asked: AskedFor<'_>,
        new: impl Into<NewChain<'a>>,
    ) -> Result<(RequestId, FrameId)> {
        let caller = asked.caller;
        let child = self.create(new, Some(asked))?;
        let tree = self.tree(TreeOf::Family(caller.frame))?;
        let is_it = |it: &&Request| matches!(it.kind, RequestKind::Spawn { child: made, .. } if made == child);
        let request = tree.get(caller.frame).and_then(|node| node.requests.iter().find(is_it)).unwrap().id;
        Ok((request, child))
    }

    pub(crate) fn root(&self) -> FrameId {
        self.create_root(&new("a task")).unwrap()
    }

    /// The results that have not been delivered to a frame's agent.
    pub(crate) fn deliveries(&self, frame: FrameId) -> Result<Vec<Delivery>> {
        let frame = self.frame(frame)?.unwrap();
        Ok(self.undelivered(&frame)?.results)
    }

    /// The same, as an attempt is given them.
    pub(crate) fn results(&self, frame: FrameId) -> Vec<(RequestId, RequestResult)> {
        self.deliveries(frame).unwrap().into_iter().map(|delivery| (delivery.request, delivery.result)).collect()
    }

    pub(crate) fn has_undelivered_requests(&self, attempt: AttemptId) -> Result<bool> {
        Ok(!self.requests(Requests::Undelivered(attempt))?.is_empty())
    }

    pub(crate) fn result_of(&self, request: RequestId) -> Result<Option<RequestResult>> {
        Ok(self.requests(Requests::One(request))?.pop().and_then(|(_, result)| result))
    }

    /// Whether an agent can wait for the reply of a chain from now on.
    pub(crate) fn join(&self, caller: Caller, child: FrameId) -> Result<bool> {
        let kind = RequestKind::Spawn { child, task: "a chain".into(), form: SpawnForm::Call, json: false };
        Ok(!self.request(caller, None, &[kind])?.is_empty())
    }

    /// Begins an attempt that is given every existing result.
    pub(crate) fn start(&self, frame: FrameId) -> Caller {
        let attempt = attempt(self.results(frame));
        self.begin(frame, &attempt).unwrap();
        Caller { frame, attempt: attempt.id }
    }

    /// Ends an attempt. A suspended one has made requests.
    pub(crate) fn end(&self, caller: Caller, ending: &Ending) -> FrameState {
        self.try_end(caller, ending).unwrap()
    }

    pub(crate) fn try_end(&self, caller: Caller, ending: &Ending) -> Result<FrameState> {
        let has_checkpoint = self.frame(caller.frame).unwrap().unwrap().checkpoint.is_some();
        let has_requests = *ending == Ending::Suspended;
        let decision = decide(&Facts { has_checkpoint, has_requests, ..Facts::from_ending(ending.clone()) });
        Ok(self.end_attempt(&attempt_end(caller, &decision))?.state)
    }

    /// Answers a question.
    pub(crate) fn answer(&self, question: RequestId, text: &str) -> Result<Question> {
        self.record_answer(question, text, &Origin::default(), false)
    }

    pub(crate) fn try_again(&self, frame: FrameId) -> Result<FrameState> {
        Ok(self.change_state(frame, StateChange::TryAgain { top: frame })?.expect("it is tried again or refused"))
    }

    /// Whether it has ended.
    pub(crate) fn end_group(&self, group: FrameId) -> Result<bool> {
        Ok(self.change_state(group, StateChange::EndGroup)?.is_some())
    }

    /// A root that ran and asked this.
    pub(crate) fn asking(&self, question: &str) -> (FrameId, RequestId) {
        let caller = self.start(self.root());
        let request = self.request(caller, None, &[ask(question)]).unwrap()[0];
        self.end(caller, &Ending::Suspended);
        (caller.frame, request)
    }
}
