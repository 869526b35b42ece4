//! Lets a call linger: its request is recorded, and its hook waits a little for the result before it suspends the call.
//!
//! Nothing depends on it. If the wait, or this process, ends in any way, the request is recorded like any other.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use crate::claude::settings::user_hooks;
use crate::claude::stream::output_reader::OutputFollower;
use crate::core::chain::frame::Frame;
use crate::core::requests::lingering::Lingering;
use crate::core::requests::request::{Request, RequestResult};
use crate::runtime::activity::look_times::LookTimes;
use crate::runtime::activity::reports::{Report, Reports};
use crate::runtime::protocol::Asking;
use crate::runtime::requests::agent_lookup;
use crate::runtime::{READ_PRINTED, RuntimeError, while_trying};
use crate::store::{Attempts, Attending, Driving, Requests, ResultUse, Store};

/// How long calls may linger, and next to how many agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Patience {
    /// Zero: not at all.
    pub time: Duration,
    /// How many agents of all chains may run; `None`: as many as their chains admit.
    pub parallel_total: Option<u32>,
}

/// The longest time between checks whether another process has written something.
const LOOK: Duration = Duration::from_millis(20);
/// How often conditions that no process records are checked, too.
const CLOSELY: Duration = Duration::from_millis(500);

/// The results of the requests that `call` has just made, if all of them arrive in time. If they do, the call must return
/// them.
fn wait(
    asking: &Asking,
    store: &Store,
    frame: &Frame,
    call: &str,
) -> Result<Option<Vec<(Request, RequestResult)>>, RuntimeError> {
    let (caller, time) = (asking.caller, asking.patience.time);
    let running = store.attempts(Attempts::RunningOf(frame.id))?.pop().filter(|attempt| attempt.id == caller.attempt);
    let (false, Some(attempt)) = (time.is_zero(), running) else { return Ok(None) };
    let mut output = OutputFollower::new(store.dir().printed(frame.id), attempt.output_from);
    let since = Timestamp::now();
    let until = since.saturating_add(SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX)).unwrap_or(since);
    let lingering = Lingering { frame: frame.id, call, since, until, is_attended: false };
    let (mut version, mut is_recorded, mut closely) = (None, false, Instant::now());
    let mut writes = Writes::new(store);
    loop {
        // Claude Code asks about the calls of a message one after the other, also while the model still writes it. Others would wait
        // for this one.
        let calls = &output.read().map_err(while_trying(READ_PRINTED))?.calls;
        // If it has a result, Claude Code did not want to wait as long.
        let is_last = calls.open.iter().all(|open| open.id == call) && !calls.has_result(call);
        if !is_last || store.dir().stop_file(frame.id).exists() {
            return Ok(None);
        }
        let now = store.changes().version_of_others()?;
        let is_written = version.replace(now) != Some(now);
        if is_written {
            writes.times.notice(Instant::now());
        }
        if is_written || closely.elapsed() >= CLOSELY {
            closely = Instant::now();
            if let Some(returned) = in_time(asking, store, frame, call)? {
                return Ok(Some(returned));
            }
            if !is_worth_it(asking, store, frame, lingering)? {
                return Ok(None);
            }
            if !is_recorded {
                let made: Vec<_> = of_call(store, frame, call)?.into_iter().map(|(request, _)| request.id).collect();
                store.use_results(caller, ResultUse::Awaited(&made, until))?;
                is_recorded = true;
            }
        }
        writes.wait();
    }
}

/// Waits until the next look for writes.
struct Writes {
    times: LookTimes,
    reported: mpsc::Receiver<()>,
    /// Watches until it is dropped.
    _reports: Reports,
}

impl Writes {
    fn new(store: &Store) -> Self {
        let (sender, reported) = mpsc::channel();
        let mut reports = Reports::new(store, move |report| {
            if report == Report::Records {
                // This process may no longer wait.
                let _ = sender.send(());
            }
        });
        reports.watch(store.dir().path());
        Self { times: LookTimes::new(LOOK), reported, _reports: reports }
    }

    fn wait(&mut self) {
        let now = Instant::now();
        let pause = self.times.pause(now);
        if self.times.is_soon(now) {
            thread::sleep(pause);
            self.reported.try_iter().for_each(drop);
            return;
        }
        match self.reported.recv_timeout(pause) {
            Ok(()) => self.times.report(Instant::now()),
            Err(RecvTimeoutError::Timeout) => {}
            // The system reports nothing.
            Err(RecvTimeoutError::Disconnected) => thread::sleep(pause),
        }
    }
}

fn of_call(store: &Store, frame: &Frame, call: &str) -> Result<Vec<(Request, Option<RequestResult>)>, RuntimeError> {
    Ok(store.requests(Requests::OfCall(frame.id, call))?)
}

/// The results of the requests, once it is recorded that the call returns them.
fn in_time(
    asking: &Asking,
    store: &Store,
    frame: &Frame,
    call: &str,
) -> Result<Option<Vec<(Request, RequestResult)>>, RuntimeError> {
    let results = of_call(store, frame, call)?.into_iter().map(|(request, result)| Some((request, result?)));
    let Some(results) = results.collect::<Option<Vec<_>>>() else { return Ok(None) };
    let read: Vec<_> = results.iter().map(|(request, result)| (request.id, result.clone())).collect();
    let used = store.use_results(asking.caller, ResultUse::InTime(&read))?;
    // A failed child may have been retried since.
    Ok((!used.is_empty()).then_some(results))
}

/// Whether a call that asks a person may linger: a person is present, and no hook of the user, which runs at the same time,
/// can deny it.
pub(super) fn is_attended(asking: &Asking, store: &Store, frame: &Frame, tool: &str) -> Result<bool, RuntimeError> {
    let is_there = !asking.patience.time.is_zero() && Attending::is_marked(store.dir(), frame.root)?;
    Ok(is_there && is_alone(store, frame, tool)?)
}

/// Whether no hook of the user sees the call before it is made.
pub(super) fn is_alone(store: &Store, frame: &Frame, tool: &str) -> Result<bool, RuntimeError> {
    let dirs = agent_lookup::settings_dirs(store, frame)?;
    Ok(dirs.iter().all(|dir| !user_hooks::run_before(tool, dir, &frame.launch)))
}

/// The results that the call returns, if it lingers until they are available. After an error, the call is suspended.
pub(super) fn or_suspended(
    asking: &Asking,
    store: &Store,
    frame: &Frame,
    call: &str,
) -> Option<Vec<(Request, RequestResult)>> {
    wait(asking, store, frame, call).unwrap_or_else(|error| {
        tracing::warn!("the call is suspended at once: {error}");
        None
    })
}

/// Whether the result is expected soon, from a chain that a process runs.
fn is_worth_it(asking: &Asking, store: &Store, frame: &Frame, lingering: Lingering<'_>) -> Result<bool, RuntimeError> {
    let is_driven = Driving::is_marked(store.dir(), frame.root)?;
    let is_full = match asking.patience.parallel_total {
        // Which other chain needs a place is not recorded.
        Some(most) => store.attempts(Attempts::Running)?.len() >= most as usize,
        None => false,
    };
    let lingering = Lingering { is_attended: Attending::is_marked(store.dir(), frame.root)?, ..lingering };
    Ok(is_driven && !is_full && store.tree(frame.root)?.lingers(lingering, Timestamp::now()))
}
