//! Keeps the lease of this host in a shared database while its agents run.
//!
//! Each renewal writes to a file until when agents may run, and the guards of the agents end them at that time
//! ([`crate::claude::processes::guard`]), before another host can continue them. Time counts from before a renewal was sent, by a
//! clock that does not stop while the machine sleeps, so this host considers its lease over before the server does.

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use jiff::SignedDuration;

use crate::claude::processes::guard::{self, Permit, now};
use crate::claude::processes::orphan_processes::{self, LeftBy};
use crate::core::id::FrameId;
use crate::failpoint::Step;
use crate::runtime::{HostTerms, RuntimeError, while_trying};
use crate::store::files::durable::{Durability, replace};
use crate::store::hosts::{CLOCKS_AGREE_WITHIN, Renewed, Terms};
use crate::store::{Store, StoreError};

/// How often a host without agents renews its lease, so that others see it, and looks for lost ones.
const IDLE: Duration = Duration::from_secs(30);

/// The longest lease, in milliseconds.
const LONGEST: u64 = 3_600_000;

/// The lease of this host, as long as this value exists; empty if the database is a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostLease(Option<Arc<Held>>);

/// Ends the thread when the last run of this process has ended.
#[derive(Debug)]
struct Held(Arc<Kept>);

#[derive(Debug)]
struct Kept {
    dir: PathBuf,
    terms: Terms,
    /// When the last confirmed renewal was sent, in milliseconds.
    renewed: AtomicU64,
    /// The same, including renewals that did not make the lease longer.
    looked: AtomicU64,
    /// Whether a person drains the host.
    is_draining: AtomicBool,
    /// How far the clock of this host is ahead of the server's, in milliseconds, if that is too far to start agents; otherwise 0.
    clock_off: AtomicI64,
    /// Whether this process ends when its agents have ended their turns.
    is_ending: AtomicBool,
    /// Whether the lease is also renewed while no agent runs.
    is_worker: AtomicBool,
    agents: Mutex<HashSet<FrameId>>,
    is_over: Mutex<bool>,
    ended: Condvar,
}

/// The lease that this process has.
static HELD: Mutex<Weak<Held>> = Mutex::new(Weak::new());

impl HostLease {
    /// Begins or joins this process's lease.
    pub(crate) fn hold(store: &Store, terms: &HostTerms) -> Result<Self, RuntimeError> {
        if store.hosts().is_none() {
            return Ok(Self::default());
        }
        let mut held = locked(&HELD);
        if let Some(held) = held.upgrade().filter(|held| held.0.dir == store.dir().path()) {
            return Ok(Self(Some(held)));
        }
        let kept = Arc::new(Kept {
            dir: store.dir().path().to_owned(),
            terms: Terms { lease: terms.lease, labels: terms.offer.labels.clone(), runs_agents: false },
            renewed: AtomicU64::new(0),
            looked: AtomicU64::new(0),
            is_draining: AtomicBool::new(false),
            clock_off: AtomicI64::new(0),
            is_ending: AtomicBool::new(false),
            is_worker: AtomicBool::new(false),
            agents: Mutex::default(),
            is_over: Mutex::new(false),
            ended: Condvar::new(),
        });
        kept.renew(store)?;
        let new = Arc::new(Held(Arc::clone(&kept)));
        let started = thread::Builder::new().name("lease".into()).spawn(move || kept.keep_renewing());
        started.map_err(while_trying("start a thread for the lease"))?;
        *held = Arc::downgrade(&new);
        Ok(Self(Some(new)))
    }

    /// Renews the lease also while no agent runs, because this host takes chains.
    pub(crate) fn keep_when_idle(&self) {
        self.kept().into_iter().for_each(|kept| kept.is_worker.store(true, Ordering::Release));
    }

    /// How often to look for hosts whose leases have ended, which nobody reports.
    pub(crate) fn lost_hosts_are_found_within(&self) -> Duration {
        self.kept().map_or(Duration::MAX, |kept| kept.terms.lease.min(IDLE))
    }

    /// Makes this process start no more agents.
    pub(crate) fn drain(&self) {
        self.kept().into_iter().for_each(|kept| kept.is_ending.store(true, Ordering::Release));
    }

    /// Whether this process ends when its agents have ended their turns.
    pub(crate) fn is_ending(&self) -> bool {
        self.kept().is_some_and(|kept| kept.is_ending.load(Ordering::Acquire))
    }

    /// Whether this process starts no more agents.
    pub(crate) fn is_draining(&self) -> bool {
        self.kept().is_some_and(Kept::starts_nothing)
    }

    /// Fails if no agent may start now. Renews the lease if that is due.
    pub(crate) fn check(&self, store: &Store) -> Result<(), RuntimeError> {
        let Some(kept) = self.kept() else { return Ok(()) };
        // If this fails, the lease is what it was.
        let renewed = if kept.age() >= kept.terms.lease / 4 { kept.renew(store) } else { Ok(()) };
        if kept.is_draining.load(Ordering::Acquire) {
            return Err(StoreError::Draining(host(store)).into());
        }
        if let Some(ahead) = kept.clock_off() {
            return Err(StoreError::ClockOff(ahead).into());
        }
        if kept.age() < kept.terms.lease / 2 {
            return Ok(());
        }
        renewed?;
        Err(StoreError::LeaseEnded(host(store)).into())
    }

    /// Notes that an agent runs, until [`Self::has_ended`].
    pub(crate) fn runs(&self, frame: FrameId) {
        if let Some(kept) = self.kept() {
            locked(&kept.agents).insert(frame);
        }
    }

    pub(crate) fn has_ended(&self, frame: FrameId) {
        if let Some(kept) = self.kept() {
            locked(&kept.agents).remove(&frame);
        }
    }

    /// Whether agents of this process may continue to run, perhaps only for a while.
    pub(crate) fn holds(&self) -> bool {
        self.kept().is_some_and(|kept| kept.age() < agents_run_for(kept.terms.lease))
    }

    /// Ends these agents, because nothing in this process follows them any longer.
    pub(crate) fn end(&self, frames: impl Iterator<Item = FrameId>) {
        let Some(kept) = self.kept() else { return };
        for frame in frames {
            kept.end(frame);
        }
    }

    fn kept(&self) -> Option<&Kept> {
        self.0.as_deref().map(|held| &*held.0)
    }
}

/// The name of this host.
fn host(store: &Store) -> String {
    store.dir().server().ok().flatten().map(|server| server.host).unwrap_or_default()
}

impl Kept {
    fn renew(&self, store: &Store) -> Result<(), RuntimeError> {
        let Some(hosts) = store.hosts() else { return Ok(()) };
        let sent = now();
        let lets_it_end = self.lets_its_lease_end();
        // A drained host still learns when it may start agents again.
        let lease = if lets_it_end { Duration::ZERO } else { self.terms.lease };
        let terms = Terms { lease, runs_agents: self.has_agents(), ..self.terms.clone() };
        let Renewed { since, is_draining, ahead } = hosts.renew(&terms)?;
        self.looked.store(sent, Ordering::Release);
        self.is_draining.store(is_draining, Ordering::Release);
        let off = if ahead.abs() > CLOCKS_AGREE_WITHIN { ahead.as_millis() } else { 0 };
        self.clock_off.store(i64::try_from(off).unwrap_or(i64::MAX), Ordering::Release);
        if lets_it_end || self.lets_its_lease_end() {
            return Ok(());
        }
        let file = store.dir().lease_end();
        let written = Permit::read(&file);
        self.renewed.fetch_max(sent, Ordering::AcqRel);
        let end = sent + u64::try_from(agents_run_for(self.terms.lease).as_millis()).unwrap_or_default();
        // Another process of this host may have a longer lease. Where no start of the machine can be told from another, a time from before
        // the last one may be ahead. An answer that took longer than the lease says nothing about the present.
        let is_longer = written.since == since && written.end > end && written.end < sent + LONGEST;
        if is_longer || end <= now() { Ok(()) } else { write_permit(&file, Permit { end, since }) }
    }

    /// How long ago the last confirmed renewal was sent.
    fn age(&self) -> Duration {
        Duration::from_millis(now().saturating_sub(self.renewed.load(Ordering::Acquire)))
    }

    fn starts_nothing(&self) -> bool {
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Acquire);
        is_set(&self.is_draining) || is_set(&self.is_ending) || self.clock_off().is_some()
    }

    /// How far the clock of this host is ahead of the server's, if it is too far off.
    fn clock_off(&self) -> Option<SignedDuration> {
        let ahead = self.clock_off.load(Ordering::Acquire);
        (ahead != 0).then(|| SignedDuration::from_millis(ahead))
    }

    fn has_agents(&self) -> bool {
        !locked(&self.agents).is_empty()
    }

    /// The interval between two renewals; `None`: there are none.
    fn renewed_after(&self) -> Option<Duration> {
        match (self.has_agents(), self.is_worker.load(Ordering::Acquire)) {
            (true, _) => Some(self.terms.lease / 4),
            (false, true) => Some(IDLE.min(self.terms.lease / 2)),
            (false, false) => None,
        }
    }

    /// Whether other hosts may take the chains of this one as soon as possible.
    fn lets_its_lease_end(&self) -> bool {
        self.starts_nothing() && !self.has_agents()
    }

    fn keep_renewing(&self) {
        let mut store = None;
        let (mut was_reported, mut was_off) = (false, false);
        while !self.is_over_after(self.pace()) {
            let age = Duration::from_millis(now().saturating_sub(self.looked.load(Ordering::Acquire)));
            if self.renewed_after().is_none_or(|after| age < after) {
                continue;
            }
            let renewed = match &store {
                Some(store) => self.renew(store),
                // A connection of its own: that of the run may be waiting for the server.
                None => Store::open(&self.dir).map_err(RuntimeError::from).and_then(|opened| {
                    let renewed = self.renew(&opened);
                    store = Some(opened);
                    renewed
                }),
            };
            let off = self.clock_off();
            if let Some(ahead) = off.filter(|_| !was_off) {
                tracing::warn!("{}", StoreError::ClockOff(ahead));
            }
            was_off = off.is_some();
            match renewed {
                Ok(()) => was_reported = false,
                Err(error) if !std::mem::replace(&mut was_reported, true) => {
                    tracing::warn!("the lease of this host cannot be renewed: {error}");
                }
                Err(_) => {}
            }
        }
    }

    fn end(&self, frame: FrameId) {
        locked(&self.agents).remove(&frame);
        orphan_processes::end(&self.dir, frame, LeftBy::Another { ended: None });
    }

    /// How often the thread looks at the lease.
    fn pace(&self) -> Duration {
        (self.terms.lease / 40).min(Duration::from_millis(500))
    }

    fn is_over_after(&self, time: Duration) -> bool {
        let is_over = locked(&self.is_over);
        *self.ended.wait_timeout(is_over, time).unwrap_or_else(PoisonError::into_inner).0
    }
}

/// How long agents may run after a renewal was sent. The rest of the lease is for their guards.
fn agents_run_for(lease: Duration) -> Duration {
    lease.saturating_sub((lease / 4).max(Duration::from_millis(guard::ENDS_WITHIN)))
}

fn write_permit(file: &Path, permit: Permit) -> Result<(), RuntimeError> {
    let written = replace(Step::Renew, file, Durability::Process, |file| file.write_all(permit.text().as_bytes()));
    written.map_err(while_trying("write the lease"))
}

impl Drop for Held {
    fn drop(&mut self) {
        *locked(&self.0.is_over) = true;
        self.0.ended.notify_all();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
