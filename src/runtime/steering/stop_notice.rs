//! Notices that a running agent was asked to stop, or has reached its timeout.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::core::chain::frame::Frame;
use crate::core::id::FrameId;
use crate::core::steering::stop_order::{By, Stop, StopKind};
use crate::runtime::{RuntimeError, while_trying};
use crate::store::{Attempt, Attempts, StateDir, Steering, Store, StoreError};

/// The interval between checks for the file.
const LOOK: Duration = Duration::from_millis(150);

/// Returns when it is recorded that an agent must stop. When it has run for `timeout`, this records it.
pub(crate) async fn to_stop(dir: &StateDir, frame: FrameId, timeout: Option<Timeout>) -> Stop {
    let (began, mut lingered) = (Instant::now(), Duration::ZERO);
    loop {
        tokio::time::sleep(LOOK).await;
        let is_over = |lingered| timeout.is_some_and(|timeout| began.elapsed() >= timeout.rest + lingered);
        if is_over(lingered) {
            // What it waited meanwhile does not count.
            lingered = self::lingered(dir, frame).unwrap_or(lingered);
        }
        let over = timeout.filter(|_| is_over(lingered)).map(|timeout| timeout.whole);
        if over.is_none() && !dir.stop_file(frame).exists() {
            continue;
        }
        match recorded(dir, frame, over) {
            Ok(Some(stop)) => return stop,
            // The file alone means nothing.
            Ok(None) => {}
            Err(error) => tracing::warn!("{} cannot be stopped: {error}", frame.short()),
        }
    }
}

/// For how long calls of the running attempt of a frame have lingered.
fn lingered(dir: &StateDir, frame: FrameId) -> Result<Duration, StoreError> {
    let running = Store::open(dir.path())?.attempts(Attempts::RunningOf(frame))?.pop();
    Ok(running.map(|attempt| attempt.lingered_until(Timestamp::now())).unwrap_or_default())
}

/// The recorded order to stop an agent whose hook may have seen it.
pub(crate) fn ordered(dir: &StateDir, frame: FrameId) -> Option<Stop> {
    if dir.stop_file(frame).exists() { recorded(dir, frame, None).ok().flatten() } else { None }
}

/// Asks a running agent to stop.
pub(crate) fn ask(store: &Store, frame: FrameId, now: bool) -> Result<(), RuntimeError> {
    store.dir().ask_to_stop(frame, now).map_err(while_trying("write the file that stops an agent"))
}

/// Asks the running agents that must stop according to the records, and announces their messages: the process that recorded
/// them may have died before it could, or runs on another host.
pub(crate) fn tell(store: &Store, running: impl Iterator<Item = FrameId>) -> Result<(), RuntimeError> {
    for frame in running {
        let Steering { stop, messages } = store.steering(frame)?;
        if let Some(stop) = stop
            && !store.dir().stop_file(frame).exists()
        {
            ask(store, frame, stop.now)?;
        }
        if messages.iter().any(|message| message.delivered_in.is_none()) && !store.dir().message_file(frame).exists() {
            store.dir().note_message(frame).map_err(while_trying("write the file that names messages"))?;
        }
    }
    Ok(())
}

/// How long an agent may run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeout {
    /// In total.
    pub(crate) whole: Duration,
    /// In this attempt.
    pub(crate) rest: Duration,
}

/// How long the agent of a frame may run from now on; `None`: no limit.
pub(crate) fn timeout(store: &Store, frame: &Frame) -> Result<Option<Timeout>, StoreError> {
    let Some(whole) = frame.launch.timeout.map(Duration::from_secs) else { return Ok(None) };
    Ok(Some(Timeout { whole, rest: whole.saturating_sub(ran(store, frame.id)?) }))
}

/// How long an agent has run, in all its ended attempts that began since its last instruction.
fn ran(store: &Store, frame: FrameId) -> Result<Duration, StoreError> {
    let instructed =
        store.steering(frame)?.messages.iter().filter(|message| message.instructs).map(|message| message.made).max();
    let attempts = store.attempts(frame)?;
    let counted = attempts.iter().filter(|attempt| instructed.is_none_or(|instructed| attempt.began >= instructed));
    Ok(counted.filter_map(length).sum())
}

/// How long an ended attempt ran, without what its calls lingered. The difference of the times is only used if the duration was not measured, because the
/// runner died: the clock may have jumped in the meantime, and the machine may have slept.
fn length(attempt: &Attempt) -> Option<Duration> {
    let ended = attempt.ended?;
    let by_clock = || Duration::try_from(ended.duration_since(attempt.began)).ok();
    Some(attempt.ran.or_else(by_clock)?.saturating_sub(attempt.lingered_until(ended)))
}

/// The stop of an agent that has reached its timeout.
pub(crate) fn over(frame: &Frame) -> Stop {
    out_of_time(frame.id, frame.launch.timeout.unwrap_or_default())
}

fn out_of_time(of: FrameId, seconds: u64) -> Stop {
    Stop { how: StopKind::Stop, now: false, by: By::Timeout(seconds), reason: None, of, report: None }
}

fn recorded(dir: &StateDir, frame: FrameId, over: Option<Duration>) -> Result<Option<Stop>, StoreError> {
    let store = Store::open(dir.path())?;
    let wanted = store.steering(frame)?.stop;
    let Some(whole) = over.filter(|_| wanted.is_none()) else { return Ok(wanted) };
    let ordered = store.order_stop(frame, &out_of_time(frame, whole.as_secs()), &[])?;
    for below in ordered.running.into_iter().filter(|below| *below != frame) {
        // Its runner finds it in the records if this fails.
        let _ = dir.ask_to_stop(below, false);
    }
    Ok(store.steering(frame)?.stop)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::core::agent::launch::Launch;
    use crate::core::attempt::decision::decide;
    use crate::core::attempt::ending::Ending;
    use crate::core::attempt::facts::Facts;
    use crate::store::testing::{self, attempt_end, new};
    use crate::store::{AttemptEnd, NewFrame};

    fn limited(seconds: Option<u64>) -> (tempfile::TempDir, Store, FrameId) {
        let (temp, store) = testing::store();
        let launch = Launch { timeout: seconds, ..Launch::default() };
        let root = store.create_root(&NewFrame { launch, ..new("a task") }).unwrap();
        (temp, store, root)
    }

    #[test]
    fn an_agent_has_the_time_that_its_launch_gives_it() {
        for (seconds, rest) in
            [(None, None), (Some(90), Some(Duration::from_secs(90))), (Some(0), Some(Duration::ZERO))]
        {
            let (_temp, store, root) = limited(seconds);
            let timeout = timeout(&store, &store.frame(root).unwrap().unwrap()).unwrap();
            assert_eq!(timeout.map(|timeout| timeout.rest), rest);
            assert_eq!(timeout.map(|timeout| timeout.whole), rest);
        }
        let (_temp, store, root) = limited(Some(90));
        let stop = over(&store.frame(root).unwrap().unwrap());
        assert_eq!((stop.by, stop.how, stop.now), (By::Timeout(90), StopKind::Stop, false));
    }

    #[test]
    fn time_in_which_the_machine_slept_is_not_counted() {
        let (_temp, store, root) = limited(Some(60));
        let caller = store.start(root);
        let decision = decide(&Facts::from_ending(Ending::Suspended));
        let end = AttemptEnd { ran: Some(Duration::from_secs(20)), ..attempt_end(caller, &decision) };
        store.end_attempt(&end).unwrap();
        let rest = || timeout(&store, &store.frame(root).unwrap().unwrap()).unwrap().unwrap().rest.as_secs();
        assert_eq!(rest(), 40, "as it was measured");
        let ended = store.attempts(root).unwrap().remove(0);
        let slept = Attempt { began: ended.began - SignedDuration::from_hours(8), ..ended };
        assert_eq!(length(&slept), Some(Duration::from_secs(20)));
        let unseen = Attempt { ran: None, ended: Some(slept.began + SignedDuration::from_secs(9)), ..slept };
        assert_eq!(length(&unseen), Some(Duration::from_secs(9)), "its runner died");
        let (early, late) = (unseen.began + SignedDuration::from_secs(5), unseen.began + SignedDuration::from_secs(60));
        let lingered = Attempt { lingered_for: Duration::from_secs(2), lingers: Some((early, late)), ..unseen };
        assert_eq!(length(&lingered), Some(Duration::from_secs(3)), "waiting does not count");
    }

    #[test]
    fn an_agent_that_ran_too_long_is_stopped_on_record_unless_somebody_was_faster() {
        let (_temp, store, root) = limited(Some(60));
        store.start(root);
        let dir = store.dir();
        assert_eq!(recorded(dir, root, None).unwrap(), None, "a file alone says nothing");
        let over = recorded(dir, root, Some(Duration::from_secs(60))).unwrap().unwrap();
        assert_eq!((over.by, over.of), (By::Timeout(60), root));
        let later = recorded(dir, root, Some(Duration::from_secs(61))).unwrap().unwrap();
        assert_eq!(later.by, By::Timeout(60), "the first stop counts");
    }

    #[test]
    fn only_agents_of_this_process_are_asked_to_stop_and_only_once() {
        let (_temp, store, root) = limited(None);
        store.start(root);
        store.dir().frame_dir(root).unwrap();
        let stop = Stop { now: true, by: By::Person, ..out_of_time(root, 0) };
        store.order_stop(root, &stop, &[]).unwrap();
        tell(&store, [store.root()].into_iter()).unwrap();
        assert!(!store.dir().stop_file(root).exists());
        tell(&store, [root].into_iter()).unwrap();
        assert!(store.dir().is_to_stop_now(root));
        // A later request remains.
        store.dir().ask_to_stop(root, false).unwrap();
        let asked = std::fs::read(store.dir().stop_file(root)).unwrap();
        tell(&store, [root].into_iter()).unwrap();
        assert_eq!(std::fs::read(store.dir().stop_file(root)).unwrap(), asked);
    }
}
