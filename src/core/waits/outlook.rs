//! Whether there is a reason to check a wait now, as far as can be determined without a process.

use jiff::Timestamp;

use crate::core::waits::conditions::{External, Try, USUAL_INTERVAL};
use crate::core::waits::scheduled::Scheduled;
use crate::core::waits::wait_progress::{CheckResult, WaitProgress};

/// What is known about a wait at some time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WaitOutlook {
    /// The part of the wait that needs action: the conditions that are met, and the commands. Empty if nothing is due.
    pub(crate) due: Option<External>,
    /// When the passage of time may next change something.
    pub(crate) next: Option<Timestamp>,
}

/// Judges a time.
pub(crate) fn of_time(condition: &External, now: Timestamp) -> Option<CheckResult> {
    match condition {
        External::Time(at) | External::Scheduled(Scheduled { at, .. }) => {
            Some(if now >= *at { CheckResult::Met(None) } else { CheckResult::NotYet(String::new()) })
        }
        External::File(_) | External::Matching(_) | External::Command(_) | External::Polled(_) | External::Agent(_) => {
            None
        }
        External::Any(_) | External::All(_) => None,
    }
}

/// When a command must be tried next; `None`: now. A command without an interval is due if it was not tried since `since`, and
/// otherwise as often as a process that keeps running tries it.
pub(crate) fn next_try(
    condition: &External,
    progress: &WaitProgress,
    at: usize,
    since: Timestamp,
    now: Timestamp,
) -> Option<Timestamp> {
    let tried = progress.seen(at).tried?;
    let every = match condition.command_to_try()?.every {
        None if tried < since => return None,
        every => every.unwrap_or(USUAL_INTERVAL),
    };
    // If the clock was set back, the next try could be far away.
    let next = tried.saturating_add(every).ok().filter(|_| tried <= now)?;
    (next > now).then_some(next)
}

/// The command of a condition, if it is due.
pub(crate) fn to_try<'a>(
    condition: &'a External,
    progress: &WaitProgress,
    at: usize,
    since: Timestamp,
    now: Timestamp,
) -> Option<Try<'a>> {
    let is_due = !progress.is_met(at) && next_try(condition, progress, at, since, now).is_none();
    condition.command_to_try().filter(|_| is_due)
}

/// The outlook of a wait. `is_met` judges files and agents. Commands without an interval are due if they were not tried since `since`.
pub(crate) fn outlook(
    wait: &External,
    progress: &WaitProgress,
    since: Timestamp,
    now: Timestamp,
    is_met: impl Fn(&External) -> bool,
) -> WaitOutlook {
    let mut next: Option<Timestamp> = None;
    let mut look_again = |time: Timestamp| next = Some(next.map_or(time, |next| next.min(time)));
    let mut due = Vec::new();
    for (at, condition) in wait.conditions().iter().enumerate().filter(|(at, _)| !progress.is_met(*at)) {
        let is_due = match condition {
            External::Time(time) | External::Scheduled(Scheduled { at: time, .. }) => {
                let is_due = now >= *time;
                if !is_due {
                    look_again(*time);
                }
                is_due
            }
            condition if condition.command_to_try().is_some() => {
                let next = next_try(condition, progress, at, since, now);
                next.into_iter().for_each(&mut look_again);
                next.is_none()
            }
            condition => is_met(condition),
        };
        if is_due {
            due.push(condition.clone());
        }
    }
    let due = match (due.is_empty(), wait) {
        (true, _) => None,
        (false, External::Any(_)) => Some(External::Any(due)),
        (false, External::All(_)) => Some(External::All(due)),
        (false, single) => Some(single.clone()),
    };
    WaitOutlook { due, next }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::waits::conditions::Polled;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn polled(every: u64) -> External {
        External::Polled(Polled { command: "true".into(), every: Some(every), timeout: None })
    }

    #[test]
    fn a_command_is_tried_at_its_intervals() {
        let mut progress = WaitProgress::default();
        let look = |progress: &WaitProgress, now| outlook(&polled(60), progress, Timestamp::MAX, at(now), |_| false);
        assert_eq!(look(&progress, 0).due, Some(polled(60)));
        progress.note_try(0, CheckResult::NotYet("exit status 1".into()), at(0));
        assert_eq!(look(&progress, 59), WaitOutlook { due: None, next: Some(at(60)) });
        assert_eq!(look(&progress, 60).due, Some(polled(60)));
        assert!(look(&progress, -1).due.is_some(), "the clock was set back");
    }

    #[test]
    fn a_command_without_an_interval_is_due_again_in_a_run_after_a_minute() {
        let mut progress = WaitProgress::default();
        progress.note_try(0, CheckResult::NotYet("exit status 1".into()), at(100));
        let next = |since, now| next_try(&External::Command("true".into()), &progress, 0, at(since), at(now));
        assert_eq!(next(101, 102), None, "it was tried before");
        assert_eq!([next(100, 102), next(100, 159), next(100, 160)], [Some(at(160)), Some(at(160)), None]);
    }

    #[test]
    fn a_command_without_an_interval_is_always_due() {
        let mut progress = WaitProgress::default();
        progress.note_try(0, CheckResult::NotYet("exit status 1".into()), at(0));
        let command = External::Command("true".into());
        assert_eq!(outlook(&command, &progress, Timestamp::MAX, at(0), |_| false).due, Some(command));
    }

    #[test]
    fn what_is_met_and_known_needs_no_look() {
        let [a, b] = ["/a", "/b"].map(|path| External::File(path.into()));
        let all = External::All(vec![a.clone(), b.clone(), External::Time(at(100))]);
        let is_a = |condition: &External| *condition == a;
        let mut progress = WaitProgress::default();
        assert_eq!(outlook(&all, &progress, Timestamp::MAX, at(0), is_a).due, Some(External::All(vec![a.clone()])));
        progress.note(0, CheckResult::Met(None), at(0));
        assert_eq!(
            outlook(&all, &progress, Timestamp::MAX, at(0), is_a),
            WaitOutlook { due: None, next: Some(at(100)) }
        );
        let is_there = |condition: &External| *condition == a || *condition == b;
        assert_eq!(outlook(&all, &progress, Timestamp::MAX, at(0), is_there).due, Some(External::All(vec![b])));
    }
}
