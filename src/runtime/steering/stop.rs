//! Stops or pauses agents: records the order first, then waits until their runners have carried it out, or does so itself.

use std::thread;
use std::time::{Duration, Instant};

use crate::claude::processes::orphan_processes::{self, LeftBy};
use crate::claude::processes::process::{self, ProcessExit};
use crate::claude::stream::output_reader::OutputFollower;
use crate::core::agent::usage::prices::Prices;
use crate::core::chain::frame::Frame;
use crate::core::chain::frame_state::FrameState;
use crate::core::housekeeping::hosting::Elsewhere;
use crate::core::id::FrameId;
use crate::core::steering::stop_order::{Stop, StopKind};
use crate::failpoint::{self, Step};
use crate::runtime::conclude::{self, Begun, report};
use crate::runtime::steering::stop_notice;
use crate::runtime::{RuntimeError, Stopping, while_trying};
use crate::store::{Attempts, Lease, StateChange, Store};

/// The interval between checks whether an agent has ended.
const LOOK: Duration = Duration::from_millis(50);
/// How long the runner of an agent may take to notice that it must stop. It checks several times a second.
const NOTICES: Duration = Duration::from_secs(5);

/// How long it may then take to conclude the ended attempt.
const CONCLUDES: Duration = Duration::from_secs(30);

/// The result of a stop.
#[derive(Debug)]
pub(crate) struct Stopped {
    /// The state of the named agent before, which was recorded at that time.
    pub before: FrameState,
    /// Its state now.
    pub after: FrameState,
    /// All agents that had to stop, with their states now. The named one is among them, unless there was nothing to stop.
    pub agents: Vec<(FrameId, FrameState)>,
}

/// Stops an agent and all below it. `waits`: how long a running tool may take to finish; `None`: does not wait for the end.
pub(crate) fn stop(
    store: &Store,
    frame: &Frame,
    stop: &Stop,
    waits: Option<Stopping>,
) -> Result<Stopped, RuntimeError> {
    let reports = match stop.how {
        StopKind::Pause => Vec::new(),
        StopKind::Stop => report::read_resting(store, frame.id, stop)?,
    };
    let ordered = store.order_stop(frame.id, stop, &reports)?;
    for agent in &ordered.running {
        stop_notice::ask(store, *agent, stop.now)?;
    }
    if stop.how == StopKind::Stop {
        ordered.ended.iter().try_for_each(|agent| clear(store, *agent))?;
    }
    if let Some(Stopping { grace, tell }) = waits {
        let grace = if stop.now { Duration::ZERO } else { grace };
        for agent in &ordered.running {
            wait_for_end(store, *agent, grace, tell)?;
        }
    }
    if frame.task.is_group() {
        store.change_state(frame.id, StateChange::EndGroup)?;
    }
    let state = |id| Ok::<_, RuntimeError>(store.frame(id)?.map_or(FrameState::Cancelled, |frame| frame.state));
    let agents = ordered.running.iter().chain(&ordered.ended).map(|id| Ok((*id, state(*id)?)));
    Ok(Stopped {
        before: frame.state.clone(),
        after: state(frame.id)?,
        agents: agents.collect::<Result<_, RuntimeError>>()?,
    })
}

/// Removes files that only an attempt needs from the folder of an agent that will have no more attempts.
fn clear(store: &Store, agent: FrameId) -> Result<(), RuntimeError> {
    if store.dir().frame_path(agent).is_dir()
        && let Some(_lease) = Lease::try_take(store.dir(), agent)?
    {
        store.dir().clear_attempt(agent).map_err(while_trying("remove what the agent needed"))?;
    }
    Ok(())
}

/// Concludes the attempt of an agent that is recorded as running, if its processes have ended. Returns whether they have.
pub(crate) fn conclude_ended(store: &Store, id: FrameId) -> Result<bool, RuntimeError> {
    let runs = || Ok::<_, RuntimeError>(store.frame(id)?.filter(|it| matches!(it.state, FrameState::Running { .. })));
    if runs()?.is_none() {
        return Ok(true);
    }
    let Some(lease) = Lease::try_take(store.dir(), id)? else { return Ok(false) };
    // Its runner may have just ended it, and recorded that.
    if let Some(frame) = runs()? {
        // A command that only stops agents has no prices. What `claude` has reported counts.
        let prices = Prices::default();
        let harvested = || conclude::conclude(store, &prices, &frame, Begun::Earlier, ProcessExit::Unknown, &lease);
        failpoint::around(Step::Harvest, harvested)?;
    }
    Ok(true)
}

/// Waits until a running agent has ended. If it has no runner, this ends it. A suspended or hanging runner is not waited for
/// indefinitely: it follows the record when it continues.
fn wait_for_end(store: &Store, id: FrameId, grace: Duration, tell: fn(&str)) -> Result<(), RuntimeError> {
    let (asked, elsewhere) = (Instant::now(), store.elsewhere(id)?);
    let (mut is_told, mut gives_up) = (false, grace + NOTICES + CONCLUDES);
    let mut output: Option<OutputFollower> = None;
    loop {
        let Some(frame) = store.frame(id)? else { return Ok(()) };
        if !matches!(frame.state, FrameState::Running { .. }) {
            return Ok(());
        }
        if elsewhere.is_none() && conclude_ended(store, id)? {
            return Ok(());
        }
        if asked.elapsed() >= gives_up {
            let runner = match &elsewhere {
                Some(Elsewhere::Host(host)) => Some(format!("the host {host}")),
                Some(Elsewhere::Waiting) => Some("the next host".to_owned()),
                None => {
                    store.attempts(Attempts::RunningOf(id))?.pop().map(|attempt| format!("process {}", attempt.runner))
                }
            };
            let runner = runner.unwrap_or_else(|| "the process".to_owned());
            tell(&format!(
                "{runner}, which runs {}, does not respond; it stops the agent as soon as it does",
                id.short()
            ));
            return Ok(());
        }
        if elsewhere.is_none() && asked.elapsed() >= NOTICES && !store.dir().is_stop_noticed(id) {
            // Its runner has ended, or is suspended. A hook still ends the agent after the running tool.
            let attempt = store.attempts(Attempts::RunningOf(id))?.pop();
            if !is_told && let Some(attempt) = &attempt {
                let (runner, id) = (attempt.runner, id.short());
                tell(&if process::lives(runner) {
                    format!("waiting for process {runner}, which runs {id} and has not responded")
                } else {
                    format!("waiting for claude: process {runner}, which ran {id}, has ended")
                });
                is_told = true;
            }
            let from = attempt.map_or(0, |attempt| attempt.output_from);
            let output = output.get_or_insert_with(|| OutputFollower::new(store.dir().printed(id), from));
            let runs_a_tool =
                output.read().is_ok_and(|digest| digest.result.is_none() && !digest.calls.open.is_empty());
            if !runs_a_tool || asked.elapsed() >= grace {
                let ended = failpoint::around(Step::Sweep, || {
                    orphan_processes::end(store.dir().path(), id, LeftBy::Another { ended: None })
                });
                tracing::info!("{}: ended {ended} processes that no runner ended", id.short());
                gives_up = gives_up.min(asked.elapsed() + NOTICES);
            }
        }
        thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::steering::stop_order::By;
    use crate::store::testing;

    #[test]
    fn of_an_agent_that_is_over_nothing_stays_that_only_attempts_need() {
        for (how, stays) in [(StopKind::Pause, true), (StopKind::Stop, false)] {
            let (_temp, store) = testing::store();
            let (root, _) = store.asking("When?");
            let frame = store.frame(root).unwrap().unwrap();
            store.dir().frame_dir(root).unwrap();
            store.dir().note_message(root).unwrap();
            let wanted = Stop { how, now: false, by: By::Person, reason: None, of: root, report: None };
            stop(&store, &frame, &wanted, None).unwrap();
            assert_eq!(store.dir().message_file(root).exists(), stays, "{how:?}");
        }
    }
}
