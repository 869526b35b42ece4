//! The events that the loop of a run waits for: the end of an agent or of a command, a free place, a person's signal, and
//! anything that may change without this process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::core::id::FrameId;
use crate::runtime::activity::look_times::{LookTimes, RecordReports};
use crate::runtime::run::external_waits::tries::{Tried, Tries};
use crate::runtime::run::external_waits::watched::Watched;
use crate::runtime::run::places::{self, Places};
use crate::runtime::run::running_agent::TurnEnd;
use crate::runtime::run::signals::Signals;
use crate::runtime::{RuntimeError, while_trying};
use crate::store::{Store, StoreError};

/// The longest time between checks whether another process has written something or a scheduled time has arrived. There is no
/// longer wait, because a clock can be set, and a machine can sleep.
const LOOK: Duration = Duration::from_millis(50);
/// How often files, other agents and other runners are checked, too.
const CLOSELY: Duration = Duration::from_millis(600);

/// Why the loop continues.
pub(crate) enum RunEvent {
    /// An agent of this process has ended.
    Ended(FrameId, TurnEnd),
    /// A command of this process has ended.
    Tried(Tried),
    /// Another process may have changed something.
    Changed,
    /// Nothing is running in this process.
    Idle,
}

/// Where events come from.
pub(crate) struct RunEvents {
    /// The agents that run.
    pub(crate) exits: JoinSet<(FrameId, TurnEnd)>,
    /// The commands that agents wait for.
    pub(crate) tries: Tries,
    stop: watch::Receiver<Signals>,
    /// The version of the records after another process's last write.
    seen_version: Option<i64>,
    look_times: LookTimes,
    reported: watch::Receiver<u64>,
    /// Kept for the reports.
    _reports: Arc<RecordReports>,
}

impl RunEvents {
    pub(crate) fn new(store: &Store, stop: watch::Receiver<Signals>) -> Self {
        let reports = RecordReports::of_process(store);
        Self {
            exits: JoinSet::new(),
            tries: Tries::default(),
            stop,
            seen_version: None,
            look_times: LookTimes::new(LOOK),
            reported: reports.receiver(),
            _reports: reports,
        }
    }

    /// Whether another process has written something since the last call.
    pub(crate) fn is_written_by_others(&mut self, store: &Store) -> Result<bool, StoreError> {
        let version = store.changes().version_of_others()?;
        Ok(self.seen_version.replace(version) != Some(version))
    }

    /// Whether the chain must be checked because other processes have written something.
    pub(crate) fn has_news(&self, store: &Store) -> Result<bool, StoreError> {
        Ok(self.seen_version != Some(store.changes().version_of_others()?))
    }

    /// Notes that this process has changed the chain since the last check.
    pub(crate) fn look_again(&mut self) {
        self.seen_version = None;
    }

    /// Waits for the next event. `missing`: the limit that keeps an agent from starting; `ended`: how many agents of this
    /// process had ended at that time.
    pub(crate) async fn next(
        &mut self,
        store: &Store,
        watched: &Watched,
        missing: Option<&Places>,
        ended: u64,
    ) -> Result<RunEvent, RuntimeError> {
        let place = places::freed(missing, ended, self.stop.clone());
        tokio::pin!(place);
        let mut closely = Instant::now();
        loop {
            let (runs, tries, is_stopped) = (!self.exits.is_empty(), !self.tries.is_empty(), self.stop.borrow().any());
            let (now, waits) = (Instant::now(), runs || tries || missing.is_some());
            tokio::select! {
                Some(ended) = self.exits.join_next(), if runs => {
                    let (frame, end) = ended.map_err(|error| while_trying("wait for claude")(error.into()))?;
                    return Ok(RunEvent::Ended(frame, end));
                }
                tried = self.tries.next(), if tries => return Ok(tried.map_or(RunEvent::Changed, RunEvent::Tried)),
                () = &mut place, if missing.is_some() => return Ok(RunEvent::Changed),
                _ = self.stop.wait_for(|signals| signals.any()), if tries && !is_stopped => self.tries.end().await,
                Ok(()) = self.reported.changed(), if waits && !self.look_times.is_soon(now) => {
                    self.look_times.report(Instant::now());
                }
                () = tokio::time::sleep(self.look_times.pause(now)), if waits => {
                    let is_written = self.seen_version != Some(store.changes().version_of_others()?);
                    if is_written {
                        self.look_times.notice(Instant::now());
                    }
                    let has_come = || watched.is_due(Timestamp::now());
                    if is_written || has_come() {
                        return Ok(RunEvent::Changed);
                    }
                    if closely.elapsed() >= CLOSELY {
                        closely = Instant::now();
                        if watched.has_changed(store) {
                            return Ok(RunEvent::Changed);
                        }
                    }
                }
                else => return Ok(RunEvent::Idle),
            }
        }
    }
}
