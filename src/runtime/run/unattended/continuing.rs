//! Continues every chain that can continue: once, or as soon as it can, until a person stops it.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use futures_util::stream::{FuturesUnordered, StreamExt};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::core::chain::check_schedule::{CheckOutcome, CheckPlan, CheckSchedule, ContinueReason, RefusedAnswer, TICK};
use crate::core::id::FrameId;
use crate::core::requests::question_form::Form;
use crate::core::waits::conditions::External;
use crate::core::waits::wait_progress::WaitProgress;
use crate::runtime::requests::answer_files;
use crate::runtime::requests::posted::filing;
use crate::runtime::run::driven::Driven;
use crate::runtime::run::scheduler::host_lease::HostLease;
use crate::runtime::run::signals::Signals;
use crate::runtime::run::unattended::change_watch::ChangeWatch;
use crate::runtime::run::{external_waits, scheduler, status};
use crate::runtime::{RunSettings, RuntimeError};
use crate::store::hosts::Wanted;
use crate::store::{Store, StoreError, Watching};

/// How long chains are continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// As long as one of them can continue, including new ones.
    Idle,
    /// Until a person stops it.
    Stopped,
    /// Until the first signal. Then the running agents end their turns; with the next signal, they are stopped.
    Drained,
}

impl Until {
    /// Whether chains are also continued later, when they can.
    fn keeps_running(self) -> bool {
        self != Self::Idle
    }
}

/// Events while chains are continued.
#[derive(Debug)]
pub(crate) enum Course {
    /// A process begins to run a chain.
    Begins(FrameId),
    /// The run of a chain has ended.
    Ended(FrameId, Result<Driven, RuntimeError>),
    /// The content of a file does not count as an answer.
    Refused(RefusedAnswer),
}

/// The chains that can continue without a person, and the answers that do not count.
#[derive(Debug)]
pub(crate) struct ToContinue {
    /// The roots of the chains that can continue.
    pub(crate) roots: Vec<FrameId>,
    pub(crate) refused: Vec<RefusedAnswer>,
}

/// Continues every chain that can continue. Failed agents are not retried. A chain that cannot be run does not affect the
/// others.
pub(crate) async fn continue_chains(
    store: &Store,
    settings: &RunSettings,
    stop: watch::Receiver<Signals>,
    until: Until,
    mut course: impl FnMut(Course),
) -> Result<(), RuntimeError> {
    store.changes().version_of_others()?;
    // Without the mark, people are told to continue chains, and nothing is lost.
    let lease = HostLease::hold(store, &settings.host)?;
    let signals = stop;
    let stop = if until == Until::Drained { later(&signals) } else { signals.clone() };
    let mut watching = until.keeps_running().then(|| Watching::mark(store.dir()).ok()).flatten();
    // A single pass needs no watch.
    let mut changes = until.keeps_running().then(|| ChangeWatch::new(store));
    // Each of these chains has an agent that is running or waits for a place.
    let at_once = settings.places.as_ref().map_or(usize::MAX, |places| places.most() as usize);
    let (mut signalled, mut stopped) = (signals.clone(), stop.clone());
    if until.keeps_running() {
        lease.keep_when_idle();
    }
    let (mut schedule, mut chains) = (CheckSchedule::default(), FuturesUnordered::new());
    let mut driving = HashMap::<FrameId, Vec<ContinueReason>>::new();
    let mut reported = Causes::new();
    let mut looked_for_lost = LookedForLost::default();
    let mut was_warned = false;
    let mut trouble = None;
    loop {
        // Nothing may continue in a database that no longer exists.
        store.changes().version_of_others()?;
        let now = Timestamp::now();
        let is_drained = until == Until::Drained && signals.borrow().any();
        if is_drained {
            lease.drain();
        }
        let has_taken =
            take(store, settings, &lease, &mut looked_for_lost, at_once.saturating_sub(count(&driving, false)));
        let looked = looked(&mut schedule, store, now, &mut reported, until, &mut course);
        let (due, next, files) = match looked {
            Ok(looked) => {
                trouble = None;
                looked
            }
            // A process that keeps running tries again: a full disk may have room then.
            Err(error) if until.keeps_running() => {
                let why = error.to_string();
                if trouble.as_ref() != Some(&why) {
                    tracing::warn!("chains cannot be looked at, and are looked at again every minute: {why}");
                }
                trouble = Some(why);
                (Vec::new(), None, Vec::new())
            }
            Err(error) => return Err(error),
        };
        if let Some(changes) = &mut changes {
            changes.watch_for(store.dir(), &files);
            if !changes.sees_all() && !std::mem::replace(&mut was_warned, true) {
                tracing::warn!("the system does not tell this process of all changes, so it looks every second");
            }
        }
        let is_stopped = stop.borrow().any();
        if is_stopped {
            drop(watching.take());
        }
        for root in due {
            if is_stopped || lease.is_draining() {
                break;
            }
            let reasons = schedule.reasons(root);
            let polls = only_polls(&reasons);
            if driving.contains_key(&root) || count(&driving, polls) >= if polls { POLLS } else { at_once } {
                continue;
            }
            match status::can_continue(store, root) {
                Ok(true) => {}
                Ok(false) => {
                    schedule.checked(root, reasons, now, CheckOutcome::NotRun);
                    continue;
                }
                Err(error) => {
                    // Unless no chain can be read.
                    store.changes().version_of_others()?;
                    schedule.checked(root, reasons, now, CheckOutcome::Failed);
                    course(Course::Ended(root, Err(error)));
                    continue;
                }
            }
            driving.insert(root, reasons);
            course(Course::Begins(root));
            let stop = stop.clone();
            chains.push(async move { (root, scheduler::drive(store, settings, root, stop).await) });
        }
        // Those that it has taken may wait, so there may be room for more.
        if has_taken && !is_stopped && count(&driving, false) < at_once {
            continue;
        }
        if driving.is_empty() && (is_stopped || is_drained || until == Until::Idle) {
            return Ok(());
        }
        tokio::select! {
            Some((root, driven)) = chains.next(), if !chains.is_empty() => {
                let reasons = driving.remove(&root).unwrap_or_default();
                schedule.checked(root, reasons, Timestamp::now(), look_of(driven.as_ref().ok()));
                course(Course::Ended(root, driven));
            }
            changed = next_change(changes.as_mut(), store) => changed?,
            () = tokio::time::sleep(until_next(next, now).min(lease.lost_hosts_are_found_within())) => {}
            _ = stopped.wait_for(|signals| signals.any()), if !is_stopped => {}
            _ = signalled.wait_for(|signals| signals.any()), if until == Until::Drained && !is_drained => {}
        }
    }
}

/// The signals after the first.
fn later(signals: &watch::Receiver<Signals>) -> watch::Receiver<Signals> {
    let (sender, later) = watch::channel(Signals::default());
    let mut signals = signals.clone();
    tokio::spawn(async move {
        while signals.changed().await.is_ok() {
            let now = *signals.borrow();
            sender.send_modify(|later| *later = Signals { sent: now.sent.saturating_sub(1), ..now });
        }
    });
    later
}

/// When this process last looked for lost hosts, and what went wrong then.
#[derive(Debug, Default)]
struct LookedForLost {
    at: Option<Instant>,
    trouble: Option<String>,
}

/// Takes up to `most` chains that no host has taken yet and, if it is time to look for them, chains of lost hosts. Returns whether
/// there were any. Trouble with other hosts' chains does not affect those of this host, and is reported once.
fn take(store: &Store, settings: &RunSettings, lease: &HostLease, looked: &mut LookedForLost, most: usize) -> bool {
    let Some(hosts) = store.hosts() else { return false };
    if most == 0 || lease.is_draining() {
        return false;
    }
    let is_time = looked.at.is_none_or(|at| at.elapsed() >= lease.lost_hosts_are_found_within());
    let wanted = if is_time { Wanted::Any } else { Wanted::Free };
    for taken in 0..most {
        match hosts.take(wanted, &settings.host.offer) {
            Ok(Some(root)) => tracing::info!("{}: this host runs the chain from now on", root.short()),
            Ok(None) => {
                if is_time {
                    *looked = LookedForLost { at: Some(Instant::now()), trouble: None };
                }
                return taken > 0;
            }
            Err(error) => {
                let why = error.to_string();
                if looked.trouble.as_ref() != Some(&why) {
                    tracing::warn!("a chain is left to other hosts: {why}");
                }
                *looked = LookedForLost { at: Some(Instant::now()), trouble: Some(why) };
                return taken > 0;
            }
        }
    }
    true
}

/// The chains that are due, when the next one is, and the files that chains wait for. Reports answers that no longer count
/// first.
#[expect(clippy::type_complexity, reason = "it is taken apart at once")]
fn looked(
    schedule: &mut CheckSchedule,
    store: &Store,
    now: Timestamp,
    reported: &mut Causes,
    until: Until,
    course: &mut impl FnMut(Course),
) -> Result<(Vec<FrameId>, Option<Timestamp>, Vec<PathBuf>), RuntimeError> {
    let CheckPlan { due, next, mut files, refused } = planned(schedule, store, now)?;
    *reported = report(store, refused, reported, until, course)?;
    files.extend(filing::awaited(store)?);
    Ok((due, next, files))
}

/// How many chains for which only commands are run are run at once, besides the others: a command may take minutes.
const POLLS: usize = 64;

/// Whether a chain is only run so that a command says whether one of its waits has ended. If so, agents of it are started.
fn only_polls(reasons: &[ContinueReason]) -> bool {
    let is_poll =
        |reason: &ContinueReason| matches!(reason, ContinueReason::Outside(wait) if wait.polled_every().is_some());
    !reasons.is_empty() && reasons.iter().all(is_poll)
}

/// How many chains are run only to poll, or how many are run for another reason.
fn count(driving: &HashMap<FrameId, Vec<ContinueReason>>, polls: bool) -> usize {
    driving.values().filter(|reasons| only_polls(reasons) == polls).count()
}

/// The result of running a chain; `None`: an error that concerns all of it.
fn look_of(driven: Option<&Driven>) -> CheckOutcome {
    match driven {
        Some(driven) if driven.got_on && driven.errors.is_empty() => CheckOutcome::Progressed,
        Some(driven) if driven.no_place.is_some() && driven.errors.is_empty() => CheckOutcome::NoSlot,
        Some(_) => CheckOutcome::NoProgress,
        None => CheckOutcome::Failed,
    }
}

async fn next_change(changes: Option<&mut ChangeWatch>, store: &Store) -> Result<(), StoreError> {
    match changes {
        Some(changes) => changes.next(store).await,
        None => std::future::pending().await,
    }
}

/// The chain, the file, and why nothing in it counts.
type Causes = HashSet<(FrameId, PathBuf, String)>;

/// Reports the answers that do not count, once for each new cause. Returns the causes. A single pass records that a person was
/// told, because the next one would repeat it.
fn report(
    store: &Store,
    refused: Vec<RefusedAnswer>,
    reported: &Causes,
    until: Until,
    course: &mut impl FnMut(Course),
) -> Result<Causes, RuntimeError> {
    let mut refused_now = HashSet::new();
    for refused in refused {
        let cause = (refused.root, refused.path.clone(), refused.why.clone());
        if !reported.contains(&cause) {
            if until == Until::Idle && !refused.was_reported {
                answer_files::record_reported(store, &refused)?;
            }
            course(Course::Refused(refused));
        }
        refused_now.insert(cause);
    }
    Ok(refused_now)
}

/// The chains that can continue without a person, except failed and interrupted ones.
pub(crate) fn to_continue(store: &Store) -> Result<ToContinue, RuntimeError> {
    let now = Timestamp::now();
    let CheckPlan { due, refused, .. } = planned(&mut CheckSchedule::default(), store, now)?;
    // A chain that cannot be read is tried, too, so that the reason is reported.
    let roots = due.into_iter().filter(|root| status::can_continue(store, *root).unwrap_or(true)).collect();
    Ok(ToContinue { roots, refused })
}

fn planned(schedule: &mut CheckSchedule, store: &Store, now: Timestamp) -> Result<CheckPlan, RuntimeError> {
    filing::file_ended(store, None)?;
    let is_met = |wait: &External| external_waits::is_met(store, wait);
    let in_file = |form: &Form, seen: &WaitProgress| answer_files::state(form, seen, now);
    Ok(schedule.plan(store.candidates(now)?, now, is_met, in_file))
}

/// How long no check is needed. A clock can be set, and a machine can sleep: it is never long.
fn until_next(next: Option<Timestamp>, now: Timestamp) -> Duration {
    let left = next.map_or(TICK, |next| next.duration_since(now).min(TICK));
    Duration::try_from(left).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_looked_at_before_it_is_due_but_never_long_after() {
        let now = Timestamp::from_second(10_000).unwrap();
        let in_seconds = |seconds: i64| until_next(Timestamp::from_second(10_000 + seconds).ok(), now);
        let tick = Duration::try_from(TICK).unwrap();
        assert_eq!(until_next(None, now), tick);
        assert_eq!(in_seconds(2), Duration::from_secs(2));
        assert_eq!(in_seconds(1_000_000), tick);
        assert_eq!(in_seconds(-5), Duration::ZERO);
    }
}
