use std::sync::Barrier;

use serde_json::json;

use super::*;
use crate::core::attempt::ending::Ending;
use crate::core::chain::backoff::MOST_TRIES;
use crate::core::chain::limits::{Limits, NewLimits};
use crate::core::housekeeping::retention::Retention;
use crate::store::housekeeping::removable::Decided;
use crate::store::outbox::{Notifications, Subscribing, Subscription};
use crate::store::testing::{ask, new, refused, reply, store};
use crate::store::{NewFrame, Store};

const LASTS: SignedDuration = SignedDuration::from_secs(40);

/// A store in which a person has subscribed to all events.
fn subscribed() -> (tempfile::TempDir, Store) {
    let (temp, store) = store();
    subscribe(&store, &Occasion::ALL);
    (temp, store)
}

fn subscribe(store: &Store, events: &[Occasion]) {
    let wanted = Subscription { config: "/home/me/config.toml".into(), events: events.to_vec() };
    store.outbox().subscribe(&Subscribing::To(wanted)).unwrap();
}

fn subscription(store: &Store) -> Option<Subscription> {
    store.outbox().subscription().unwrap()
}

fn next_due(store: &Store) -> Option<Timestamp> {
    store.outbox().list(Notifications::NextDue).unwrap().pop().map(|next| next.due)
}

fn claim(store: &Store) -> Option<Occasion> {
    store.outbox().claim(LASTS).unwrap().map(|claimed| claimed.about.event)
}

fn time_passes(store: &Store, seconds: i64) {
    store.execute("UPDATE notifications SET due = due - ?1", [seconds * 1000]);
}

fn status(store: &Store) -> Vec<String> {
    let sql = "SELECT status FROM notifications ORDER BY seq";
    store.database().query(|connection| connection.read_all(sql, [], |row| row.get(0))).unwrap()
}

#[test]
fn nothing_is_noted_unless_somebody_wants_it() {
    let (_temp, store) = store();
    store.asking("When?");
    assert_eq!((claim(&store), status(&store)), (None, vec![]));
    subscribe(&store, &[Occasion::Done]);
    store.asking("When?");
    assert_eq!(status(&store), Vec::<String>::new());
    assert!(subscription(&store).is_some());
    subscribe(&store, &[]);
    assert_eq!(subscription(&store), None);
}

#[test]
fn a_notification_is_claimed_by_one_and_sent_once() {
    let (_temp, store) = subscribed();
    let (frame, question) = store.asking("When?");
    let claimed = store.outbox().claim(LASTS).unwrap().unwrap();
    assert_eq!((claimed.about.agent.id, claimed.request), (frame, Some(question)));
    assert_eq!((claimed.about.chain.task.as_str(), claimed.about.chain.cwd.as_str()), ("a task", "/srv"));
    assert_eq!(claim(&store), None, "it is claimed");
    assert!(next_due(&store).unwrap() > Timestamp::now());
    store.outbox().end(&claimed, SendOutcome::Sent).unwrap();
    time_passes(&store, 1_000);
    assert_eq!((claim(&store), status(&store)), (None, vec!["sent".to_owned()]));
    assert_eq!(next_due(&store), None);
}

#[test]
fn the_claim_of_a_dead_process_ends_and_its_late_word_counts_for_nothing() {
    let (_temp, store) = subscribed();
    store.asking("When?");
    let dead = store.outbox().claim(LASTS).unwrap().unwrap();
    time_passes(&store, 39);
    assert_eq!(claim(&store), None);
    time_passes(&store, 2);
    let next = store.outbox().claim(LASTS).unwrap().unwrap();
    assert_eq!(next.about.id, dead.about.id);
    store.outbox().end(&dead, SendOutcome::Sent).unwrap();
    assert_eq!(status(&store), ["pending"]);
    store.outbox().end(&next, SendOutcome::GivenBack).unwrap();
    assert_eq!(claim(&store), Some(Occasion::Question), "it was given back");
}

#[test]
fn a_clock_that_is_set_back_does_not_delay_it() {
    let (_temp, store) = subscribed();
    store.asking("When?");
    time_passes(&store, -100_000);
    assert_eq!(claim(&store), Some(Occasion::Question));
}

#[test]
fn a_failure_is_tried_again_later_and_not_for_ever() {
    let (_temp, store) = subscribed();
    store.asking("When?");
    for failures in 1..=MOST_TRIES {
        let claimed = store.outbox().claim(LASTS).unwrap().unwrap();
        assert_eq!(claimed.about.failures, failures - 1);
        let next = store.outbox().end(&claimed, SendOutcome::Failed("exit status 1")).unwrap();
        assert_eq!(next.is_some(), failures < MOST_TRIES);
        assert_eq!(claim(&store), None);
        time_passes(&store, 1_000);
    }
    assert_eq!((claim(&store), status(&store)), (None, vec!["failed".to_owned()]));
}

#[test]
fn of_many_processes_one_gets_it() {
    let (_temp, store) = subscribed();
    for _ in 0..4 {
        store.asking("When?");
    }
    let barrier = Barrier::new(8);
    let claimed: usize = std::thread::scope(|scope| {
        let claims = |()| {
            let (barrier, dir) = (&barrier, store.dir().path());
            scope.spawn(move || {
                let store = Store::open(dir).unwrap();
                barrier.wait();
                std::iter::from_fn(|| claim(&store)).count()
            })
        };
        let threads: Vec<_> = [(); 8].map(claims).into_iter().collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(claimed, 4);
}

#[test]
fn what_is_no_longer_so_is_not_sent() {
    let (_temp, store) = subscribed();
    let (_, answered) = store.asking("When?");
    store.answer(answered, "now").unwrap();
    let withdrawn = store.start(store.root());
    store.request(withdrawn, None, &[ask("Why?")]).unwrap();
    store.end(withdrawn, &refused("no"));
    store.try_again(withdrawn.frame).unwrap();
    assert_eq!((claim(&store), status(&store).len()), (None, 3));
    assert!(status(&store).iter().all(|status| status == "outdated"));
}

#[test]
fn only_the_last_end_of_a_chain_is_sent() {
    let (_temp, store) = subscribed();
    let root = store.root();
    store.end(store.start(root), &Ending::Error("first".into()));
    store.execute("UPDATE notifications SET made = made - 1", []);
    store.try_again(root).unwrap();
    store.end(store.start(root), &Ending::Error("second".into()));
    let claimed = store.outbox().claim(LASTS).unwrap().unwrap();
    assert_eq!(claimed.about.detail, json!({"why": "second"}));
    assert_eq!((claim(&store), status(&store)), (None, vec!["outdated".to_owned(), "pending".to_owned()]));
}

#[test]
fn of_the_replies_of_a_chain_that_was_continued_the_last_is_sent() {
    let (_temp, store) = subscribed();
    store.end(store.start(store.root()), &reply("done"));
    store.execute("UPDATE notifications SET made = made - 1", []);
    assert_eq!((claim(&store), status(&store)), (None, vec!["outdated".to_owned()]));
}

#[test]
fn a_child_that_ends_is_its_parents_business() {
    let (_temp, store) = subscribed();
    let caller = store.start(store.root());
    let (_, child) = store.request_child(caller, None, &new("child"), "child").unwrap();
    store.end(caller, &Ending::Suspended);
    store.end(store.start(child), &reply("ok"));
    assert_eq!(claim(&store), None);
    store.end(store.start(caller.frame), &reply("done"));
    assert_eq!(claim(&store), Some(Occasion::Done));
}

#[test]
fn one_usage_limit_and_one_budget_are_reported_once() {
    let (_temp, store) = subscribed();
    let limits = Limits { max_budget_usd: Some(0.5), ..Limits::default() };
    let caller = store.start(store.create_root(&NewFrame { limits, ..new("root") }).unwrap());
    let children = [1, 2].map(|_| store.request_child(caller, None, &new("child"), "child").unwrap().1);
    let children = children.map(|child| store.start(child));
    let resets_at = "2100-01-01T00:00:00Z".parse().unwrap();
    for child in children {
        store.end(child, &Ending::UsageLimit { resets_at, worked: true });
    }
    assert_eq!((claim(&store), claim(&store), claim(&store)), (Some(Occasion::Limit), Some(Occasion::Budget), None));
    time_passes(&store, 1_000);
    store.change_chain(caller.frame, NewLimits { max_budget_usd: Some(9.0), ..NewLimits::default() }).unwrap();
    assert_eq!((claim(&store), claim(&store)), (Some(Occasion::Limit), None), "the budget was raised");
}

#[test]
fn what_is_no_longer_wanted_is_not_sent_and_a_removed_chain_takes_its_own_with_it() {
    let (_temp, store) = subscribed();
    let (root, _) = store.asking("When?");
    subscribe(&store, &[Occasion::Done]);
    assert_eq!((claim(&store), status(&store)), (None, vec!["outdated".to_owned()]));
    store.execute("DELETE FROM notifications WHERE frame <> ?1", [Id(root)]);
    let caller = store.start(store.root());
    store.end(caller, &reply("done"));
    let tree = store.housekeeping().removable(caller.frame.into()).unwrap().remove(0);
    let decided = Decided { root: tree.root, attempts: tree.attempts };
    store.remove_trees(&[decided], Retention::NOTHING);
    assert_eq!((claim(&store), status(&store).len()), (None, 1));
}
