//! Tests what people see and do: questions, lists, changes, messages, stops and notifications.

use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};

use crate::core::agent::overrides::Repair;
use crate::core::attempt::ending::Ending;
use crate::core::chain::frame_state::{AgentStatus, FrameState};
use crate::core::chain::limits::NewLimits;
use crate::core::id::FrameId;
use crate::core::notifications::occasion::Occasion;
use crate::core::steering::message::MessageSender;
use crate::core::steering::origin::Origin;
use crate::core::steering::stop_order::{By, Stop, StopKind};
use crate::store::conformance::{Open, fresh};
use crate::store::error::StoreError;
use crate::store::handle::Store;
use crate::store::outbox::{Notifications, SendOutcome, Subscribing, Subscription};
use crate::store::records::{Asked, ChainFilter, Chains, NewFrame, Scope, SearchIn, Target, Telling};
use crate::store::testing::{new, reply};

pub(super) fn person() -> MessageSender {
    MessageSender { by: By::Person, origin: Origin::default() }
}

fn root_in(store: &Store, cwd: &str) -> FrameId {
    store.create_root(&NewFrame { cwd: cwd.into(), ..new("a task") }).unwrap()
}

pub(crate) fn the_first_answer_counts(open: Open) {
    let (_temp, store) = fresh(open);
    let (frame, question) = store.asking("When?");
    let by = |user: &str| Origin { user: Some(user.into()), ..Origin::default() };
    let early = store.record_answer(question, "now", &by("ann"), true);
    assert!(matches!(early, Err(StoreError::NotAnswered(_))));
    assert_eq!(store.record_answer(question, "now", &by("ann"), false).unwrap().answer.as_deref(), Some("now"));
    let second = store.record_answer(question, "later", &by("bob"), false);
    assert!(matches!(second, Err(StoreError::AlreadyAnswered { answer, replaceable: true, .. }) if answer == "now"));
    store.record_answer(question, "later", &by("bob"), true).unwrap();
    let found = store.exchanges(Asked::One(question), Timestamp::MIN, 9, None).unwrap().exchanges;
    let users: Vec<_> = found[0].records.iter().filter_map(|record| record.entry.origin()?.user.as_deref()).collect();
    assert_eq!(users, ["ann", "bob"]);
    store.start(frame);
    let third = store.record_answer(question, "never", &by("cid"), true);
    assert!(matches!(third, Err(StoreError::Delivered(_))));
}

pub(crate) fn questions_are_listed_by_directory(open: Open) {
    let (_temp, store) = fresh(open);
    let (frame, first) = store.asking("When?");
    let (_, second) = store.asking("Where?");
    let of = |asked: Option<FrameId>| store.questions(asked, true).unwrap().len();
    assert_eq!((of(None), of(Some(frame))), (2, 1));
    let listed = |most, directory: &str| {
        let found = store.first_questions(most, Some(&[directory.into()]), true).unwrap();
        (found.questions.iter().map(|question| question.id).collect::<Vec<_>>(), found.more, found.elsewhere)
    };
    assert_eq!(listed(9, "/srv"), (vec![first, second], 0, 0));
    assert_eq!((listed(1, "/srv"), listed(9, "/")), ((vec![first], 1, 0), (vec![], 0, 2)));
    store.answer(first, "now").unwrap();
    assert_eq!(listed(9, "/srv").0, [second]);
    assert_eq!(store.first_questions(9, None, false).unwrap().questions.len(), 2);
}

pub(crate) fn ids_are_found_by_their_beginning(open: Open) {
    let (_temp, store) = fresh(open);
    let (frame, question) = store.asking("When?");
    let other = store.root();
    let found = |scope, id: String| store.lookup(scope, &id.parse().unwrap());
    assert_eq!(found(Scope::All, frame.short().to_string()).unwrap(), Target::Frame(frame));
    assert_eq!(found(Scope::QuestionsFirst, question.to_string()).unwrap(), Target::Request(question));
    let hidden = found(Scope::Below(frame), other.to_string());
    assert!(matches!(hidden, Err(StoreError::Unknown(_))), "outside of its scope nothing exists");
}

pub(crate) fn chains_are_listed_by_kind_and_directory(open: Open) {
    let (_temp, store) = fresh(open);
    let [first, second, third] = ["/a", "/b", "/a"].map(|cwd| root_in(&store, cwd));
    store.end(store.start(third), &reply("done"));
    let kinds = store.chain_kinds().unwrap();
    assert_eq!(kinds.iter().map(|kind| kind.count).sum::<u64>(), 3);
    let ids = |of: Chains<'_>| {
        let found = store.chains(of).unwrap();
        (found.chains.iter().map(|chain| chain.id).collect::<Vec<_>>(), found.more)
    };
    assert_eq!(ids(Chains::Newest { most: 2, kinds: None }), (vec![third, second], 1));
    let ready: Vec<_> = kinds.into_iter().filter(|kind| kind.status == AgentStatus::Ready).collect();
    assert_eq!(ids(Chains::Newest { most: 9, kinds: Some(&ready) }), (vec![second, first], 0));
    let matching = |filter| store.matching_chains(&ready, &filter).unwrap();
    assert_eq!(matching(ChainFilter::default()), [second, first]);
    let texts = ["TASK", "a%", "täsk", "/B"].map(|text| ChainFilter { text: Some(text.into()), ..Default::default() });
    let found = texts.clone().map(matching);
    assert_eq!(found, [vec![second, first], vec![], vec![], vec![]]);
    let places = texts.map(|filter| matching(ChainFilter { search_in: SearchIn::WordsAndPlace, ..filter }));
    assert_eq!(places[3], [second]);
    assert_eq!(matching(ChainFilter { asks: true, ..Default::default() }), []);
    let last_in = |directory: &str| ids(Chains::LastIn(&[PathBuf::from(directory)])).0;
    assert_eq!((last_in("/a"), last_in("/b"), last_in("/c")), (vec![third], vec![second], vec![]));
    store.start(first);
    assert_eq!(ids(Chains::With { status: AgentStatus::Running, most: 9 }).0, [first]);
}

pub(crate) fn a_chain_can_be_changed(open: Open) {
    let (_temp, store) = fresh(open);
    let root = store.root();
    store.change_chain(root, NewLimits { max_agents: Some(7), ..NewLimits::default() }).unwrap();
    assert_eq!(store.chain_of(root).unwrap().limits.max_agents, 7);
    let repair = || Repair { model: Some("opus".into()), ..Repair::default() };
    assert_eq!(store.change_chain(root, repair()).unwrap(), 1);
    store.start(root);
    assert!(matches!(store.change_chain(root, repair()), Err(StoreError::Running(_))));
}

pub(crate) fn messages_are_given_once(open: Open) {
    let (_temp, store) = fresh(open);
    let caller = store.start(store.root());
    store.tell(caller.frame, Telling::Message, "stop at ten", &person()).unwrap();
    assert!(store.steering(caller.frame).unwrap().has_news());
    assert_eq!(store.give_messages(caller, 1).unwrap(), [], "it is too long");
    assert_eq!(store.give_messages(caller, 1 << 20).unwrap().len(), 1);
    assert_eq!(store.give_messages(caller, 1 << 20).unwrap(), []);
    let early = store.tell(caller.frame, Telling::Instruction, "again", &person());
    assert!(matches!(early, Err(StoreError::Illegal(_))));
    store.end(caller, &reply("done"));
    assert!(matches!(store.tell(caller.frame, Telling::Message, "late", &person()), Err(StoreError::IsOver(_))));
    store.tell(caller.frame, Telling::Instruction, "again", &person()).unwrap();
    assert_eq!(store.frame(caller.frame).unwrap().unwrap().state, FrameState::Ready);
}

pub(crate) fn a_stop_reaches_everything_below(open: Open) {
    let (_temp, store) = fresh(open);
    let caller = store.start(store.root());
    let (_, child) = store.request_child(caller, None, &new("child"), "child").unwrap();
    store.end(caller, &Ending::Suspended);
    let running = store.start(child);
    let stop = Stop { how: StopKind::Stop, now: false, by: By::Person, reason: None, of: caller.frame, report: None };
    let ordered = store.order_stop(caller.frame, &stop, &[]).unwrap();
    assert_eq!((ordered.running, ordered.ended), (vec![running.frame], vec![caller.frame]));
    assert_eq!(store.steering(child).unwrap().stop.map(|stop| stop.of), Some(caller.frame));
    let unknown = store.order_stop(FrameId::random(), &stop, &[]);
    assert!(matches!(unknown, Err(StoreError::UnknownFrame(_))));
}

pub(crate) fn an_event_is_sent_once(open: Open) {
    let (temp, store) = fresh(open);
    let wanted = Subscription { config: "/c".into(), events: vec![Occasion::Question, Occasion::Stalled] };
    store.outbox().subscribe(&Subscribing::To(wanted)).unwrap();
    let (_, question) = store.asking("When?");
    let other = open(&temp.path().join("state"));
    let claimed = store.outbox().claim(SignedDuration::from_hours(1)).unwrap().unwrap();
    assert_eq!(claimed.request, Some(question));
    assert_eq!(other.outbox().claim(SignedDuration::from_hours(1)).unwrap(), None, "it is being sent");
    assert!(store.outbox().end(&claimed, SendOutcome::Failed("no network")).unwrap().is_some(), "it is due again");
    let listed = store.outbox().list(Notifications::Newest(9)).unwrap();
    assert_eq!(listed.iter().map(|it| (it.status.as_str(), it.failures)).collect::<Vec<_>>(), [("pending", 1)]);
    let running = store.start(store.root());
    for _ in 0..2 {
        store.outbox().note_stall(running.frame, running.attempt, Timestamp::UNIX_EPOCH).unwrap();
    }
    assert_eq!(store.outbox().list(Notifications::Newest(9)).unwrap().len(), 2);
}

pub(crate) fn a_subscription_ends(open: Open) {
    let (_temp, store) = fresh(open);
    let wanted = Subscription { config: "/c".into(), events: vec![Occasion::Question] };
    store.outbox().subscribe(&Subscribing::To(wanted.clone())).unwrap();
    store.outbox().subscribe(&Subscribing::NoLonger("/other".into())).unwrap();
    assert_eq!(store.outbox().subscription().unwrap(), Some(wanted));
    store.outbox().subscribe(&Subscribing::NoLonger("/c".into())).unwrap();
    assert_eq!(store.outbox().subscription().unwrap(), None);
    store.asking("When?");
    assert_eq!(store.outbox().list(Notifications::NextDue).unwrap(), []);
}
