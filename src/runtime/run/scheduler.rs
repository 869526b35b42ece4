//! The loop that runs a chain: start every agent that can run, wait for one to end, decide about it, and repeat.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use tokio::sync::watch;
use tracing::Instrument;

use crate::core::attempt::continuation::Way;
use crate::core::attempt::decision::{Decision, Fate, Next};
use crate::core::chain::admission::NotAdmitted;
use crate::core::chain::frame::Frame;
use crate::core::chain::frame_state::Ended;
use crate::core::chain::progress_lines::step;
use crate::core::chain::runnable::Attempted;
use crate::core::chain::tree::Tree;
use crate::core::id::FrameId;
use crate::runtime::conclude::{self, Begun};
use crate::runtime::programs::{self, Program};
use crate::runtime::recovery::portable_worktree::PortableWorktree;
use crate::runtime::run::attempt_start::{self, AttemptStart, RunningAttempt};
use crate::runtime::run::driven::Driven;
use crate::runtime::run::external_waits;
use crate::runtime::run::external_waits::run_events::{RunEvent, RunEvents};
use crate::runtime::run::external_waits::watched::{Prints, Watched};
use crate::runtime::run::frame_error::FrameErrorKind;
use crate::runtime::run::places::{Places, TakenPlace};
use crate::runtime::run::running_agent::RunningAgent;
use crate::runtime::run::running_agent::TurnEnd;
use crate::runtime::run::scheduler::budget::BudgetWatch;
use crate::runtime::run::scheduler::host_lease::HostLease;
use crate::runtime::run::scheduler::queue::{After, Queue};
use crate::runtime::run::signals::Signals;
use crate::runtime::run::stopping;
use crate::runtime::steering::try_again;
use crate::runtime::steering::{self, stop_notice};
use crate::runtime::{RunSettings, RuntimeError, agent_span};
use crate::store::{Driving, Store, StoreError};

mod budget;
mod harvest;
pub(crate) mod host_lease;
mod outcomes;
pub(crate) mod own_process;
mod queue;
mod worktree_fetch;

/// Runs the chain below `top` until nothing in it can run.
///
/// # Errors
///
/// [`RuntimeError`] if the state directory cannot be used. Agents that are running then finish their turns, and the next
/// `resume` finds their results.
pub(crate) async fn drive(
    store: &Store,
    settings: &RunSettings,
    top: FrameId,
    stop: watch::Receiver<Signals>,
) -> Result<Driven, RuntimeError> {
    let frame = store.frame_here(top)?;
    let _driving = mark(store, &frame)?;
    let drive = Drive {
        lease: HostLease::hold(store, &settings.host)?,
        store,
        settings,
        top,
        events: RunEvents::new(store, stop.clone()),
        stop,
        attempted: Attempted::default(),
        live: HashMap::new(),
        taken: HashMap::new(),
        ways: HashMap::new(),
        refused_forks: HashMap::new(),
        began: Timestamp::now(),
        worked: Timestamp::now(),
        driven: Driven::default(),
        detached: HashSet::new(),
        root: frame.root,
        budget: BudgetWatch::start(store.dir().clone(), frame.root, settings.prices.clone()),
    };
    drive.run_or_end().instrument(tracing::info_span!("chain", chain = %frame.root)).await
}

/// Runs the chain below `top` after frames that failed or were stopped were made ready again.
pub(crate) async fn resume(
    store: &Store,
    settings: &RunSettings,
    top: FrameId,
    stop: watch::Receiver<Signals>,
) -> Result<Driven, RuntimeError> {
    // Before a frame is ready: otherwise, a process that continues all chains could run it first.
    let _driving = mark(store, &store.frame_here(top)?)?;
    try_again::all(store, top)?;
    drive(store, settings, top, stop).await
}

/// Marks the chain of `top` as run by this process, if all of it is: a process that runs a part of a chain only checks that part.
fn mark(store: &Store, top: &Frame) -> Result<Option<Driving>, StoreError> {
    (top.root == top.id).then(|| Driving::mark(store.dir(), top.id)).transpose()
}

struct Drive<'a> {
    store: &'a Store,
    settings: &'a RunSettings,
    top: FrameId,
    stop: watch::Receiver<Signals>,
    attempted: Attempted,
    live: HashMap<FrameId, RunningAttempt>,
    /// The places of the running agents, if there is a limit over all chains.
    taken: HashMap<FrameId, TakenPlace>,
    /// How to continue frames whose `claude` refused the earlier ways.
    ways: HashMap<FrameId, Way>,
    /// The programs that refused to continue frames in a fork, and now resume them in place.
    refused_forks: HashMap<FrameId, Program>,
    events: RunEvents,
    began: Timestamp,
    /// When an agent last ended.
    worked: Timestamp,
    driven: Driven,
    root: FrameId,
    /// The chains for which this run has started a process.
    detached: HashSet<FrameId>,
    budget: BudgetWatch,
    lease: HostLease,
}

impl Drive<'_> {
    async fn run(&mut self) -> Result<Driven, RuntimeError> {
        let mut looked_again = false;
        loop {
            let (tree, prints) = self.tree_as_it_is()?;
            self.start_detached()?;
            let seen = self.settings.places.as_ref().map_or(0, Places::ended);
            self.driven.no_place = None;
            let (look_again, queue) = self.start_what_can_run(&tree).await?;
            if !self.stop.borrow().any() {
                // A process that only runs commands would otherwise never end if a try takes longer than the interval.
                let once = self.live.is_empty();
                self.events.tries.start(self.store, &tree, self.tries_since(), once)?;
            }
            let busy = self.driven.busy.iter().map(|busy| busy.frame).collect();
            let watched = Watched::new(&tree, &prints, &self.attempted, busy, self.tries_since());
            let missing = self.missing_place();
            let is_idle = self.wait(&watched, missing.as_ref(), seen, queue).await?;
            // While this process held the lease of a frame that the limits did not admit, another process may have made room
            // and been unable to start the frame. Also, a frame that could not be started has ended for its parent.
            if is_idle && (looked_again || !look_again) {
                break;
            }
            looked_again = is_idle;
        }
        let is_interrupted = self.stop.borrow().any();
        Ok(std::mem::take(&mut self.driven).finish(&self.store.tree(self.top)?, is_interrupted))
    }

    /// Waits until the whole chain must be checked. Returns whether nothing of this process has run since the last check.
    async fn wait(
        &mut self,
        watched: &Watched,
        missing: Option<&Places>,
        seen: u64,
        mut queue: Queue,
    ) -> Result<bool, RuntimeError> {
        let mut is_unseen = false;
        loop {
            match self.events.next(self.store, watched, missing, seen).await? {
                RunEvent::Ended(frame, end) => {
                    let decision = self.conclude(frame, end)?;
                    let is_alike =
                        missing.is_none() && !self.stop.borrow().any() && !self.events.has_news(self.store)?;
                    let after = decision.filter(|_| is_alike).map(|decision| queue.after(frame, &decision));
                    match after.unwrap_or(After::Unknown) {
                        After::Next(next) if !self.start(next).await? && self.live.contains_key(&next) => {}
                        After::Nothing => {}
                        After::Next(_) | After::Unknown => return Ok(false),
                    }
                    is_unseen = true;
                }
                RunEvent::Tried(tried) => {
                    self.events.tries.record(self.store, &tried)?;
                    return Ok(false);
                }
                RunEvent::Changed => return Ok(false),
                RunEvent::Idle => return Ok(!is_unseen),
            }
        }
    }

    /// Commands without an interval are due if they were not tried since this time. They are tried once when the run
    /// begins, and once more when everything else is done.
    fn tries_since(&self) -> Timestamp {
        if self.live.is_empty() { self.worked } else { self.began }
    }

    /// The limit over all chains, if an agent of this chain only lacks a place that this process uses for another chain.
    fn missing_place(&self) -> Option<Places> {
        let is_missing = self.driven.no_place.is_some() && !self.stop.borrow().any();
        self.settings.places.clone().filter(|places| is_missing && places.has_more_than(self.taken.len()))
    }

    /// Records what happened to the tree outside this process, and returns the tree and the earlier state of the files that
    /// it waits for. Reading a large tree costs more than everything else, so it is only read again if it may have changed.
    fn tree_as_it_is(&mut self) -> Result<(Tree, Prints), RuntimeError> {
        tracing::debug!("{}: the whole chain is looked at", self.top.short());
        if self.events.is_written_by_others(self.store)? {
            stop_notice::tell(self.store, self.live.keys().copied())?;
        }
        self.driven.busy.clear();
        let mut tree = self.store.tree(self.top)?;
        if self.harvest(&tree)? {
            tree = self.store.tree(self.top)?;
        }
        let now = Timestamp::now();
        let prints = Prints::new(&tree, now);
        loop {
            if external_waits::has_outside_waits(&tree) {
                external_waits::without_processes(self.store, &tree, now)?;
                tree = self.store.tree(self.top)?;
            }
            // The end of a group may end the group that contains it, an agent that handed off to it, or a wait for it.
            if !self.end_without_attempts(&tree)? {
                return Ok((tree, prints));
            }
            tree = self.store.tree(self.top)?;
        }
    }

    /// Starts agents. Returns whether to check again: a frame that could not be started may let another one run, or may
    /// start once other processes have finished with it. Also returns which frames take the places of agents that end.
    async fn start_what_can_run(&mut self, tree: &Tree) -> Result<(bool, Queue), RuntimeError> {
        let mut look_again = false;
        let (runnable, ready) = tree.runnable_and_ready(&self.attempted, Timestamp::now());
        for frame in runnable {
            if self.stop.borrow().any() || self.lease.is_ending() {
                return Ok((false, Queue::default()));
            }
            look_again |= self.start(frame).instrument(agent_span(frame)).await?;
        }
        Ok((look_again, Queue::new(tree, ready)))
    }

    async fn start(&mut self, id: FrameId) -> Result<bool, RuntimeError> {
        if self.lease.is_ending() {
            return Ok(false);
        }
        // The lease is renewed while the agent is being prepared, too.
        self.lease.runs(id);
        let started = self.start_with_lease(id).await;
        if !self.live.contains_key(&id) {
            self.lease.has_ended(id);
        }
        started
    }

    async fn start_with_lease(&mut self, id: FrameId) -> Result<bool, RuntimeError> {
        // The records do not have yet what running agents spend.
        if !self.live.is_empty() && self.budget.is_spent() {
            return Ok(false);
        }
        let Some(frame) = self.store.frame(id)? else { return Ok(false) };
        match self.lease.check(self.store) {
            // The agents that run end their turns, or are ended with the lease.
            Err(_) if !self.live.is_empty() => return Ok(false),
            checked => checked?,
        }
        let program = match programs::usable(self.store, self.settings, &frame.launch).await {
            Ok(program) => program,
            Err(error) => {
                let why = FrameErrorKind::at_start(frame.launch.worktree, error, || self.anew())?;
                self.fail(id, why)?;
                return Ok(false);
            }
        };
        let timeout = stop_notice::timeout(self.store, &frame)?;
        if timeout.is_some_and(|timeout| timeout.rest.is_zero()) {
            steering::stop::stop(self.store, &frame, &stop_notice::over(&frame), None)?;
            return Ok(true);
        }
        let way = self.way(id, &program);
        let fetched = self.fetch_worktree(&frame).await;
        let start = |()| attempt_start::start(self.store, self.settings, id, &self.attempted, &program, way);
        match fetched.and_then(start) {
            Ok(AttemptStart::Started { running, live, output_from, has_stop_hook, transcript }) => {
                let begins = if frame.checkpoint.is_some() { "continues" } else { "started" };
                tracing::info!("{}", step(id, &frame.task.title(), begins));
                let agent = RunningAgent {
                    frame: id,
                    attempt: live.attempt,
                    running,
                    dir: self.store.dir().clone(),
                    output_from,
                    cwd: frame.cwd.clone(),
                    has_stop_hook,
                    transcript,
                    background_grace: frame.launch.background_grace(),
                    timeout,
                    budget_spent: self.budget.spent(),
                    portable: PortableWorktree::of(self.store, &frame)?,
                };
                self.started(agent, live);
            }
            Ok(AttemptStart::NotStarted(_lease, why)) => {
                self.events.look_again();
                if let Some(decision) = conclude::conclude_unstarted(self.store, &frame, why)? {
                    self.report_end(id)?;
                    self.take_note(id, &decision)?;
                }
                return Ok(true);
            }
            Ok(AttemptStart::Busy) => {
                self.note_busy(id)?;
                return Ok(true);
            }
            Ok(AttemptStart::Changed) => return Ok(true),
            Ok(AttemptStart::NotAdmitted(why)) => {
                if let NotAdmitted::ParallelTotal { .. } = why {
                    self.driven.no_place = Some((id, why));
                }
                return Ok(true);
            }
            Err(error) => {
                let why = FrameErrorKind::at_start(frame.launch.worktree, error, || self.anew())?;
                self.fail(id, why)?;
            }
        }
        Ok(false)
    }

    /// How a frame continues its conversation, as its `claude` accepts it.
    fn way(&mut self, id: FrameId, program: &Program) -> Way {
        let way = Way::first(self.ways.get(&id).copied(), program.refuses_forks);
        if way.shows_refusal_of_forks(program.refuses_forks) {
            self.refused_forks.insert(id, program.clone());
        }
        way
    }

    /// Records that an agent is running, until [`Self::conclude`].
    fn started(&mut self, agent: RunningAgent, live: RunningAttempt) {
        let id = agent.frame;
        self.attempted.begin(id);
        self.live.insert(id, live);
        self.taken.extend(self.settings.places.as_ref().map(|places| (id, places.take())));
        let ended = stopping::ended(agent, self.stop.clone(), self.settings.stopping);
        self.events.exits.spawn(async move { (id, ended.await) }.instrument(agent_span(id)));
    }

    fn conclude(&mut self, id: FrameId, end: TurnEnd) -> Result<Option<Decision>, RuntimeError> {
        let _span = agent_span(id).entered();
        let Some(live) = self.live.remove(&id) else { return Ok(None) };
        let concluded = self.conclude_live(id, &live, end);
        if concluded.is_err() {
            // Whoever finds the attempt without a lease concludes it. What it has left behind must not outlive the lease of the host.
            self.lease.end(std::iter::once(id));
        }
        self.lease.has_ended(id);
        concluded
    }

    fn conclude_live(
        &mut self,
        id: FrameId,
        live: &RunningAttempt,
        TurnEnd { exit, pushed }: TurnEnd,
    ) -> Result<Option<Decision>, RuntimeError> {
        let Some(frame) = self.store.frame(id)? else { return Ok(None) };
        let begun = Begun::Here { silent: live.is_silent.then_some(live.way), ran: Some(live.began.elapsed()), pushed };
        let concluded = conclude::conclude(self.store, &self.settings.prices, &frame, begun, exit, &live.lease)?;
        self.taken.remove(&id);
        self.worked = Timestamp::now();
        let Some(decision) = concluded else { return Ok(None) };
        if matches!(decision.frame, Ended::Fail(_)) || decision.session == Fate::Discard {
            // Agents in its background may have to stop now.
            self.events.look_again();
        }
        if let Next::Continue(way) = decision.next {
            self.ways.insert(id, way);
            let how = match way {
                Way::Prompt => "claude refused to continue the suspended call; delivering its result by prompt",
                Way::Input | Way::Fork => {
                    "claude did not take the result of the suspended call; continuing at the call"
                }
                Way::InPlace => "claude refused to continue the suspended call in a fork; continuing in place",
            };
            tracing::info!("{}", step(id, &frame.task.title(), how));
            self.trace_end(id);
            return Ok(Some(decision));
        }
        // Only a program that accepts one and refuses the other certainly objects to forks.
        if let Some(program) = self.refused_forks.remove(&id).filter(|_| live.way.shows_refusal_of_forks(false)) {
            program.remember_refusal_of_forks(self.store)?;
        }
        self.report_end(id)?;
        self.take_note(id, &decision)?;
        Ok(Some(decision))
    }
}
