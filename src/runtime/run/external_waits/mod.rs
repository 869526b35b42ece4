//! Checks whether the external waits of frames have ended.

mod command;
mod condition;
mod open_requests;
pub(crate) mod run_events;
pub(crate) mod tries;
pub(crate) mod watched;

use jiff::Timestamp;

pub(crate) use condition::is_within;

use crate::core::chain::runnable::Attempted;
use crate::core::chain::tree::Tree;
use crate::core::id::RequestId;
use crate::core::requests::question_form::Form;
use crate::core::requests::request::{Request, RequestKind};
use crate::core::waits::conditions::External;
use crate::core::waits::outlook::of_time;
use crate::core::waits::wait_progress::{CheckResult, WaitProgress};
use crate::runtime::RuntimeError;
use crate::runtime::requests::posted::filing;
use crate::runtime::requests::{answer_files, posted};
use crate::store::{Seen, Store, StoreError, Trying};

/// Records the progress of the chain's external waits, as far as it can be determined without starting a process, and which
/// questions have expired. Returns whether there are commands to run now.
pub(crate) fn without_processes(store: &Store, tree: &Tree, now: Timestamp) -> Result<bool, RuntimeError> {
    answer_files::update_posted(store, tree, now)?;
    let mut to_run = false;
    for (request, frame, wait, recorded) in open_requests::waits(tree) {
        let mut seen = WaitProgress::default();
        for at in 0..wait.conditions().len() {
            if let Some(look @ CheckResult::Met(_)) = look_at(store, wait, recorded, at, now)? {
                seen.note(at, look, now);
            }
        }
        if seen != WaitProgress::default() {
            check_clock(store)?;
            store.looked(request, &Seen::Progress(&seen))?;
        }
        let progress = recorded.with(&seen);
        let is_due = !progress.is_over(wait) && tries::due(wait, &progress, Timestamp::MAX, now).next().is_some();
        to_run |= is_due && !Trying::is_taken(store.dir(), frame)?;
    }
    // An existing answer counts, even if it was not noticed in time.
    for (request, form) in in_files(tree) {
        answer_files::take(store, request, form, now)?;
    }
    for (question, _) in expiring(tree).filter(|(_, form)| form.is_over(now)) {
        check_clock(store)?;
        store.looked(question, &Seen::Time(now))?;
    }
    filing::file_ended(store, Some(tree.top()))?;
    Ok(to_run)
}

/// Fails if the clock of this host may be wrong, so that no time that has not come is recorded as over.
fn check_clock(store: &Store) -> Result<(), StoreError> {
    match store.hosts() {
        Some(hosts) => hosts.check_clock(),
        None => Ok(()),
    }
}

/// Whether a single condition that is neither a time nor a command is met. A condition that cannot be checked is not met.
pub(crate) fn is_met(store: &Store, condition: &External) -> bool {
    let look = look_at(store, condition, &WaitProgress::default(), 0, Timestamp::UNIX_EPOCH);
    matches!(look, Ok(Some(CheckResult::Met(_))))
}

/// Adds the current state of the conditions to the tree, for people. Nothing is written.
pub(crate) fn observe(store: &Store, tree: &mut Tree, now: Timestamp) -> Result<(), RuntimeError> {
    answer_files::observe(store, tree, now)?;
    for request in tree.requests_mut() {
        let RequestKind::Wait(wait) = &request.kind else { continue };
        if request.state.is_resolved() {
            continue;
        }
        for at in 0..wait.conditions().len() {
            if let Some(look) = look_at(store, wait, &request.progress, at, now)? {
                request.progress.note(at, look, now);
            }
        }
    }
    Ok(())
}

/// The chain as people see it at `now`: everything that its next check would record counts as recorded. Nothing is written.
/// Returns the time at which it will look different without a new record.
pub(crate) fn as_of(store: &Store, tree: &mut Tree, now: Timestamp) -> Result<Option<Timestamp>, RuntimeError> {
    observe(store, tree, now)?;
    for request in tree.requests_mut() {
        if let Some(state) = request.event_to_record(now).and_then(|event| request.state.clone().after(event).ok()) {
            request.state = state;
        }
    }
    Ok(tree.next_by_time(&Attempted::default(), now, now))
}

/// Whether the chain waits for anything outside it that only its runner notices.
pub(crate) fn has_outside_waits(tree: &Tree) -> bool {
    let waits = open_requests::waits(tree).next().is_some() || expiring(tree).next().is_some();
    waits || posted::any(tree) || in_files(tree).next().is_some()
}

/// The open questions in files.
fn in_files(tree: &Tree) -> impl Iterator<Item = (&Request, &Form)> {
    open_requests::requests(tree).filter_map(|request| match &request.kind {
        RequestKind::Ask(form) if form.file.is_some() => Some((request, form)),
        _ => None,
    })
}

/// The state of one condition that was not met before; `None`: only a process can tell, or there is no need to check.
fn look_at(
    store: &Store,
    wait: &External,
    progress: &WaitProgress,
    at: usize,
    now: Timestamp,
) -> Result<Option<CheckResult>, RuntimeError> {
    if progress.is_met(at) {
        return Ok(None);
    }
    Ok(match &wait.conditions()[at] {
        External::File(path) => Some(condition::exists(path)),
        External::Matching(matching) => Some(condition::matches(matching)),
        External::Agent(agent) => Some(condition::look_at(store, agent)?),
        condition => of_time(condition, now),
    })
}

fn expiring(tree: &Tree) -> impl Iterator<Item = (RequestId, &Form)> {
    open_requests::requests(tree).filter_map(|request| match &request.kind {
        RequestKind::Ask(form) if form.expires_at.is_some() => Some((request.id, form)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::attempt::ending::Ending;
    use crate::core::id::FrameId;
    use crate::core::waits::conditions::Polled;
    use crate::store::testing;

    fn command(every: Option<u64>) -> External {
        External::Polled(Polled { command: "true".into(), every, timeout: None })
    }

    /// A chain whose agent waits for this.
    fn waiting(wait: External) -> (tempfile::TempDir, Store, FrameId) {
        let (temp, store) = testing::store();
        let caller = store.start(store.root());
        store.request(caller, None, &[RequestKind::Wait(wait)]).unwrap();
        store.end(caller, &Ending::Suspended);
        (temp, store, caller.frame)
    }

    #[test]
    fn a_command_is_run_if_it_is_due_and_still_needed() {
        let now = Timestamp::from_second(1_000).unwrap();
        let wait = External::Any(vec![External::Time(Timestamp::MAX), command(None), command(Some(600))]);
        let mut progress = WaitProgress::default();
        let due = |progress: &WaitProgress, since, now| {
            tries::due(&wait, progress, since, now).map(|(at, _)| at).collect::<Vec<_>>()
        };
        assert_eq!(due(&progress, now, now), [1, 2]);
        progress.note_try(1, CheckResult::NotYet("exit status 1".into()), now);
        progress.note_try(2, CheckResult::NotYet("exit status 1".into()), now);
        assert_eq!(due(&progress, Timestamp::MAX, now), [1], "the other one has just been tried");
        assert!(due(&progress, now, now).is_empty(), "both have been tried in this run");
        let later = Timestamp::from_second(1_600).unwrap();
        assert_eq!(due(&progress, now, later), [1, 2]);
        progress.note_try(1, CheckResult::Met(None), later);
        assert_eq!(due(&progress, now, Timestamp::MAX), [2]);
    }

    #[test]
    fn a_look_records_what_is_met_and_says_whether_commands_remain_to_be_run() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("report");
        let wait = External::All(vec![External::File(file.clone()), command(None)]);
        let (_temp, store, root) = waiting(wait.clone());
        let look = |now| without_processes(&store, &store.tree(root).unwrap(), now).unwrap();
        let met = || {
            let tree = store.tree(root).unwrap();
            let (_, _, _, progress) = open_requests::waits(&tree).next().expect("it waits");
            [progress.is_met(0), progress.is_met(1)]
        };
        let now = Timestamp::now();
        assert!(look(now));
        assert_eq!(met(), [false, false]);
        std::fs::write(&file, "").unwrap();
        assert!(look(now));
        assert_eq!(met(), [true, false]);
        // A condition that was met remains met.
        std::fs::remove_file(&file).unwrap();
        assert!(look(now));
        assert_eq!(met(), [true, false]);
    }

    #[test]
    fn a_wait_without_commands_needs_no_process_and_ends_when_its_time_has_come() {
        let at = Timestamp::from_second(2_000).unwrap();
        let (_temp, store, root) = waiting(External::Time(at));
        let waits = || has_outside_waits(&store.tree(root).unwrap());
        for (second, still) in [(1_999, true), (2_000, false)] {
            let now = Timestamp::from_second(second).unwrap();
            assert!(!without_processes(&store, &store.tree(root).unwrap(), now).unwrap());
            assert_eq!(waits(), still, "{second}");
        }
    }

    #[test]
    fn a_single_condition_is_met_if_it_can_be_seen_without_a_process() {
        let (temp, store) = testing::store();
        assert!(is_met(&store, &External::File(temp.path().to_owned())));
        assert!(!is_met(&store, &External::File(temp.path().join("missing"))));
        assert!(!is_met(&store, &command(None)));
    }

    #[test]
    fn people_are_shown_how_a_wait_stands_and_nothing_is_written() {
        let (_temp, store, root) = waiting(External::File("/nowhere/report".into()));
        let mut tree = store.tree(root).unwrap();
        observe(&store, &mut tree, Timestamp::now()).unwrap();
        let (_, _, _, shown) = open_requests::waits(&tree).next().unwrap();
        assert_eq!(shown.seen(0).why_not.as_deref(), Some("does not exist yet"));
        let tree = store.tree(root).unwrap();
        assert_eq!(open_requests::waits(&tree).next().unwrap().3, &WaitProgress::default());
    }

    #[test]
    fn people_see_at_once_what_time_has_ended() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let question = RequestKind::Ask(Form { expires_at: Some(at(2_000)), ..Form::text("When?") });
        for kind in [RequestKind::Wait(External::Time(at(2_000))), question] {
            let (_temp, store) = testing::store();
            let caller = store.start(store.root());
            store.request(caller, None, &[kind]).unwrap();
            store.end(caller, &Ending::Suspended);
            let seen = |second| {
                let mut tree = store.tree(caller.frame).unwrap();
                let next = as_of(&store, &mut tree, at(second)).unwrap();
                (tree.shown_state(false, at(second)).name(), next)
            };
            let (before, next) = seen(1_999);
            assert!(["waits", "asks"].contains(&before) && next == Some(at(2_000)), "{before} {next:?}");
            assert_eq!(seen(2_000), ("can_continue", None));
            assert_eq!(store.tree(caller.frame).unwrap().blockers(at(2_000)).len(), 1, "nothing was written");
        }
    }

    #[test]
    fn a_question_that_nobody_answered_in_time_expires_at_the_look() {
        let (_temp, store) = testing::store();
        let caller = store.start(store.root());
        let at = Timestamp::from_second(2_000).unwrap();
        let form = Form { expires_at: Some(at), ..Form::text("When?") };
        let asked = store.request(caller, None, &[RequestKind::Ask(form)]).unwrap()[0];
        store.end(caller, &Ending::Suspended);
        for (second, is_expired) in [(1_999, false), (2_000, true)] {
            let tree = store.tree(caller.frame).unwrap();
            let now = Timestamp::from_second(second).unwrap();
            assert!(!without_processes(&store, &tree, now).unwrap());
            assert_eq!(store.questions(asked, false).unwrap()[0].expired.is_some(), is_expired);
        }
    }
}
