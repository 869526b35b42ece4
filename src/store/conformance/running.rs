//! Tests running chains: new agents, attempts, requests and results.

use std::sync::Barrier;
use std::thread;

use jiff::Timestamp;

use crate::core::attempt::decision::decide;
use crate::core::attempt::ending::Ending;
use crate::core::attempt::facts::Facts;
use crate::core::chain::admission::NotAdmitted;
use crate::core::chain::frame::Detached;
use crate::core::chain::frame_state::{FrameState, Wait};
use crate::core::chain::limits::Limits;
use crate::core::events::log_entry::LogEntry;
use crate::core::housekeeping::retention::Retention;
use crate::core::id::{FrameId, SessionId};
use crate::core::requests::request::{RequestKind, RequestResult, SpawnForm};
use crate::core::steering::fresh_start::testing::SUMMARY;
use crate::core::waits::conditions::External;
use crate::store::conformance::people::person;
use crate::store::conformance::{Open, fresh};
use crate::store::error::StoreError;
use crate::store::housekeeping::removable::Decided;
use crate::store::records::{
    AskedFor, Attempts, Caller, ChainChange, Chains, Counting, EventRecord, Extent, NewAttempt, NewChain, NewFrame,
    PrintedRequests, Recovery, Requests, ResultUse, Seen, StateChange, Telling, TreeOf,
};
use crate::store::testing::{ask, attempt, attempt_end, group, new, refused, reply};

pub(crate) fn a_chain_is_created_whole_or_not_at_all(open: Open) {
    let (_temp, store) = fresh(open);
    let limits = Limits { max_agents: 3, ..Limits::default() };
    let root = store.create(&NewFrame { limits, ..new("root") }, None).unwrap();
    let caller = store.start(root);
    let too_many = store.request_child(caller, None, &group(&["a", "b", "c"]), "three");
    assert!(matches!(too_many, Err(StoreError::Limit(_))));
    let unknown = FrameId::random();
    let trees = store.trees(&[TreeOf::Whole(root), TreeOf::Whole(unknown), TreeOf::Family(root)]).unwrap();
    let counted: Vec<_> = trees.iter().map(|tree| (tree.top(), tree.all().count())).collect();
    assert_eq!(counted, [(root, 1), (unknown, 0), (root, 1)]);
    let (request, both) = store.request_child(caller, Some("toolu_1"), &group(&["a", "b"]), "both").unwrap();
    assert_eq!(store.tree(TreeOf::Family(both)).unwrap().children(both).len(), 2);
    assert_eq!(store.replies(both).unwrap().members.len(), 2);
    assert_eq!(store.frame(both).unwrap().unwrap().parent, Some(root));
    assert_eq!(store.chain_of(both).unwrap().root, root);
    assert_eq!(store.chain_of(crate::store::Target::Request(request)).unwrap().frame, root);
    assert_eq!(store.change_state(both, StateChange::EndGroup).unwrap(), None, "its members are not finished");
}

pub(crate) fn detached_chains_share_what_is_limited(open: Open) {
    let (_temp, store) = fresh(open);
    let limits = Limits { max_depth: 3, max_agents: 5, max_budget_usd: Some(0.5), ..Limits::default() };
    let root = store.start(store.create(&NewFrame { limits, ..new("root") }, None).unwrap());
    let (_, child) = store.request_child(root, None, &new("child"), "child").unwrap();
    let child = store.start(child);
    let from =
        |caller: Caller| Detached { by: caller.frame, cwd: "/srv".into(), base: "/".into(), worktrees: Vec::new() };
    let detach_all = |caller: Caller, new: NewChain<'_>| {
        let (title, form, from) = ("task", SpawnForm::Background, from(caller));
        store.create(new, Some(AskedFor { caller, call: None, title, form, json: false, detached: Some(&from) }))
    };
    let detach = |caller: Caller, task: &str| detach_all(caller, (&new(task)).into());
    let begins = || -> Vec<_> {
        let found = store.chains(Chains::NewDetached(root.frame)).unwrap().chains;
        found.into_iter().map(|chain| chain.id).collect()
    };
    let one = detach(child, "one").unwrap();
    let of_one = store.chain_of(one).unwrap();
    assert_eq!((of_one.root, of_one.limits.max_depth, of_one.limits.max_agents), (one, 1, 5));
    assert_eq!((of_one.detached, of_one.family), (Some(from(child)), Some(root.frame)));
    assert_eq!(store.frame(one).unwrap().unwrap().parent, None);
    assert_eq!(store.chain_of(root.frame).unwrap().detached, None);
    let entries = store.events(Extent::One(child.frame), 0).unwrap();
    assert!(entries.iter().any(|event| matches!(&event.entry, LogEntry::Detached { chain, .. } if *chain == one)));
    // No agent waits for the detached chain, and it is listed until it begins.
    assert!(!store.requests(Requests::Undelivered(child.attempt)).unwrap().iter().any(|_| true));
    assert_eq!(begins(), [one]);
    let group = group(&["two", "three"]);
    let both = detach_all(root, (&group).into()).unwrap();
    assert_eq!(begins().len(), 2);
    let one = store.start(one);
    assert_eq!(begins(), [both]);
    // There are five agents in three chains. One that is deeper than its chain may be is refused in any case.
    for caller in [root, one] {
        assert!(matches!(detach(caller, "many"), Err(StoreError::Limit(_))));
        assert!(matches!(store.request_child(caller, None, &new("many"), "many"), Err(StoreError::Limit(_))));
    }
    // All chains of the family share their spending.
    store.end(one, &reply("done"));
    let others_usd = |of| store.chain_of(of).unwrap().others_usd;
    assert!((others_usd(root.frame) - 0.25).abs() < 1e-9);
    store.end(child, &reply("done"));
    let member = store.replies(both).unwrap().members[0].id;
    assert!((others_usd(member) - 0.5).abs() < 1e-9);
    let refused = store.begin(member, &attempt(Vec::new()));
    let spent = NotAdmitted::Budget { max_usd: 0.5, spent_usd: 0.5 };
    assert!(matches!(refused, Err(StoreError::NotAdmitted(why)) if why == spent));
    // A caller that has ended detaches nothing.
    assert!(matches!(detach(child, "late"), Err(StoreError::StaleCaller { .. })));
    // Removing chains leaves the others, which get no budget and no agents back.
    store.end(root, &reply("done"));
    let decided = |root: FrameId| {
        let found = store.housekeeping().removable(root.into()).unwrap().pop().unwrap();
        Decided { root, attempts: found.attempts }
    };
    let used = others_usd(member);
    let all = [one.frame, root.frame].map(decided);
    assert_eq!(store.remove_trees(&all, Retention::NOTHING), [one.frame, root.frame]);
    assert!((others_usd(member) - used).abs() < 1e-9 && used > 0.7, "{used}");
    assert!(matches!(
        store.begin(member, &attempt(Vec::new())),
        Err(StoreError::NotAdmitted(NotAdmitted::Budget { .. }))
    ));
    assert_eq!(store.chain_of(member).unwrap().family, Some(root.frame));
}

pub(crate) fn a_summary_ends_a_session(open: Open) {
    let (_temp, store) = fresh(open);
    let afresh = |frame| store.change_chain(frame, ChainChange { afresh: true, ..ChainChange::default() });
    let root = store.root();
    assert!(matches!(afresh(root), Err(StoreError::NoConversation(_))), "it has not begun");
    let first = store.start(root);
    let asked = store.request(first, Some("toolu_1"), &[ask("When?")]).unwrap()[0];
    store.end(first, &Ending::Suspended);
    store.answer(asked, "now").unwrap();
    let waiting = store.frame(root).unwrap().unwrap();
    for _ in 0..2 {
        afresh(root).unwrap();
    }
    assert_eq!(store.frame(root).unwrap().unwrap().summary_lacks(), Some(&[][..]));
    let ends = |summary: &str, lacks: &[&str]| {
        let new = NewAttempt { summarises: waiting.checkpoint, session: waiting.session, ..attempt(Vec::new()) };
        store.begin(root, &new).unwrap();
        let lacks = lacks.iter().map(|name| (*name).to_owned()).collect();
        let facts = Facts { summarises: Some(lacks), has_checkpoint: true, ..Facts::from_ending(reply(summary)) };
        let caller = Caller { frame: root, attempt: new.id };
        let decision = decide(&facts);
        let end = store.end_attempt(&attempt_end(caller, &decision)).unwrap();
        (end, store.frame(root).unwrap().unwrap())
    };
    let (end, lacking) = ends("I am done.", &[]);
    assert_eq!(
        (&end.state, &lacking.checkpoint, lacking.session),
        (&waiting.state, &waiting.checkpoint, waiting.session)
    );
    assert_eq!(lacking.summary_lacks().map(<[String]>::len), Some(4));
    let (end, fresh) = ends(SUMMARY, &["Goal"]);
    assert_eq!((end.state, fresh.checkpoint, fresh.suspended.as_deref()), (waiting.state, None, None));
    assert!(fresh.session != waiting.session && fresh.summary() == Some(SUMMARY));
    assert_eq!(Some(end.copies), waiting.checkpoint.map(|copy| vec![copy]), "a person can open it");
    assert_eq!(store.results(root).len(), 1, "its new session gets the result");
    assert!(matches!(afresh(root), Err(StoreError::NoConversation(_))), "the new one has not begun");
    let kinds: Vec<_> = store.events(root, 0).unwrap().iter().map(EventRecord::kind).collect();
    assert_eq!(kinds[kinds.len() - 2..], ["ended", "afresh"]);
    store.end(store.start(root), &reply("SGN_PEND_STARTED"));
    let kept = store.frame(root).unwrap().unwrap();
    assert_eq!((kept.session, kept.summary()), (fresh.session, None), "it is in the conversation");
    afresh(root).unwrap();
    store.end(store.start(root), &reply("done"));
    store.tell(root, Telling::Instruction, "Again.", &person()).unwrap();
    assert_eq!(
        store.frame(root).unwrap().unwrap().afresh,
        None,
        "an instruction is for the conversation that it is given"
    );
}

pub(crate) fn the_reply_of_a_handoff_is_the_reply_of_its_caller(open: Open) {
    let (_temp, store) = fresh(open);
    let hand_off = |caller| {
        let asked = AskedFor {
            caller,
            call: Some("toolu_1"),
            title: "child",
            form: SpawnForm::Handoff,
            json: false,
            detached: None,
        };
        store.ask_for(asked, &new("child")).unwrap().1
    };
    let (root, told) = (store.start(store.root()), store.start(store.root()));
    let [child, other] = [root, told].map(hand_off);
    store.end(root, &Ending::Suspended);
    let middle = store.start(child);
    let grandchild = hand_off(middle);
    let end = |frame| store.change_state(frame, StateChange::EndHandoff).unwrap();
    assert_eq!(end(child), None, "it runs");
    store.end(middle, &Ending::Suspended);
    assert_eq!((end(child), end(root.frame)), (None, None), "no agent has replied");
    store.end(store.start(grandchild), &reply("42"));
    assert_eq!(store.tree(root.frame).unwrap().handoffs_to_end(), [child, root.frame]);
    assert_eq!([end(child), end(child), end(root.frame)], [Some(FrameState::Done), None, Some(FrameState::Done)]);
    assert_eq!(store.replies(root.frame).unwrap().reply.as_deref(), Some("42"));
    // A new instruction continues the conversation, so the call returns.
    store.tell(root.frame, Telling::Instruction, "Why?", &person()).unwrap();
    assert_eq!(store.deliveries(root.frame).unwrap()[0].result, RequestResult::Text("42".into()));

    // An agent that is sent a message must read it.
    store.end(told, &Ending::Suspended);
    store.tell(told.frame, Telling::Message, "Hurry.", &person()).unwrap();
    store.end(store.start(other), &reply("42"));
    assert_eq!((end(told.frame), store.deliveries(told.frame).unwrap().len()), (None, 1));
}

pub(crate) fn results_are_objects_for_who_asks_for_json(open: Open) {
    let (_temp, store) = fresh(open);
    let asked =
        |caller| AskedFor { caller, call: None, title: "children", form: SpawnForm::Call, json: true, detached: None };
    let root = store.start(store.root());
    let (_, only) = store.ask_for(asked(root), &new("child")).unwrap();
    let (_, both) = store.ask_for(asked(root), &group(&["a", "b"])).unwrap();
    store.end(root, &Ending::Suspended);
    store.end(store.start(only), &reply("42"));
    let members: Vec<_> = store.replies(both).unwrap().members.into_iter().map(|member| member.id).collect();
    store.end(store.start(members[0]), &reply("A"));
    store.end(store.start(members[1]), &Ending::Error("max turns".into()));
    store.change_state(both, StateChange::EndGroup).unwrap();
    let results: Vec<_> = store.deliveries(root.frame).unwrap().into_iter().map(|delivery| delivery.result).collect();
    let [RequestResult::Text(one), RequestResult::PartlyFailed(several)] = &results[..] else { panic!("{results:?}") };
    assert!(one.starts_with(&format!("{{\"id\":\"{only}\",\"status\":\"done\",\"result\":\"42\"")), "{one}");
    assert!(
        several.starts_with('[') && several.contains("\"result\":\"A\"") && several.contains("max turns"),
        "{several}"
    );
}

pub(crate) fn one_runner_begins_an_attempt(open: Open) {
    let (temp, store) = fresh(open);
    let (root, barrier) = (store.root(), Barrier::new(4));
    let begins = || {
        let store = open(&temp.path().join("state"));
        barrier.wait();
        store.begin(root, &attempt(Vec::new())).is_ok()
    };
    let won = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(begins)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|won| *won).count()
    });
    assert_eq!((won, store.attempts(Attempts::Running).unwrap().len()), (1, 1));
}

pub(crate) fn limits_apply_in_the_transaction_that_begins(open: Open) {
    let (_temp, store) = fresh(open);
    store.start(store.root());
    let second = store.root();
    let limited = NewAttempt { max_parallel_total: Some(1), ..attempt(Vec::new()) };
    assert!(matches!(store.begin(second, &limited), Err(StoreError::NotAdmitted(_))));
    assert_eq!(store.frame(second).unwrap().unwrap().state, FrameState::Ready);
    assert_eq!(store.attempts(second).unwrap(), []);
}

pub(crate) fn an_attempt_that_is_not_kept_asks_nothing(open: Open) {
    let (_temp, store) = fresh(open);
    let caller = store.start(store.root());
    let asked = store.request(caller, Some("toolu_1"), &[ask("When?"), ask("Where?")]).unwrap();
    assert_eq!(store.requests(Requests::OfCall(caller.frame, "toolu_1")).unwrap().len(), 2);
    store.end(caller, &refused("not logged in"));
    assert_eq!(store.requests(Requests::One(asked[0])).unwrap().len(), 0);
    assert!(matches!(store.request(caller, None, &[ask("Why?")]), Err(StoreError::StaleCaller { .. })));
}

pub(crate) fn an_ended_attempt_counts_with_its_cost(open: Open) {
    let (_temp, store) = fresh(open);
    let caller = store.start(store.root());
    let begun = store.attempts(Attempts::RunningOf(caller.frame)).unwrap().remove(0);
    assert_eq!(store.end(caller, &reply("42")), FrameState::Done);
    assert_eq!(store.replies(caller.frame).unwrap().reply.as_deref(), Some("42"));
    let ended = store.attempts(Attempts::Of(Extent::Below(caller.frame))).unwrap().remove(0);
    assert_eq!((ended.id, ended.kept, ended.spending.usd), (begun.id, Some(true), 0.25));
    let costs = store.spent_below(&[caller.frame, FrameId::random(), caller.frame]).unwrap();
    assert_eq!(costs.iter().map(|spent| spent.cost_usd).collect::<Vec<_>>(), [0.25, 0.0, 0.25]);
    let counted = store.counted(Counting::Since(Timestamp::UNIX_EPOCH)).unwrap();
    assert_eq!(counted.iter().map(|counted| counted.spent.cost_usd).collect::<Vec<_>>(), [0.25]);
    let moved = Recovery::Moved("/new.jsonl".as_ref());
    store.record_recovery(caller.frame, ended.session, moved).unwrap();
    assert_eq!(store.attempts(caller.frame).unwrap()[0].transcript, Some("/new.jsonl".into()));
    store.record_recovery(caller.frame, ended.session, Recovery::SetAside(SessionId::random())).unwrap();
}

pub(crate) fn results_are_delivered_once(open: Open) {
    let (_temp, store) = fresh(open);
    let (frame, question) = store.asking("When?");
    store.answer(question, "now").unwrap();
    let given = RequestResult::Text("now".into());
    let undelivered = |frame| store.undelivered(&store.frame(frame).unwrap().unwrap()).unwrap().results.len();
    assert_eq!((store.results(frame), undelivered(frame)), (vec![(question, given)], 1));
    let caller = store.start(frame);
    assert_eq!(store.use_results(caller, ResultUse::Permission(question)).unwrap(), [question]);
    assert_eq!(store.use_results(caller, ResultUse::Returned(&[])).unwrap(), []);
    let at_end = store.at_end(frame, caller.attempt).unwrap();
    assert_eq!((at_end.given.len(), at_end.has_open), (1, false));
    store.end(caller, &Ending::Died { worked: false, how: "killed".into() });
    assert_eq!(undelivered(frame), 1, "its agent has not seen it");
    store.end(store.start(frame), &reply("done"));
    assert_eq!(undelivered(frame), 0);
}

pub(crate) fn a_result_that_changed_is_not_delivered(open: Open) {
    let (_temp, store) = fresh(open);
    let (frame, question) = store.asking("When?");
    store.answer(question, "now").unwrap();
    let read = attempt(store.results(frame));
    store.record_answer(question, "later", &Default::default(), true).unwrap();
    assert!(matches!(store.begin(frame, &read), Err(StoreError::ResultChanged(id)) if id == question));
    assert_eq!(store.attempts(Attempts::RunningOf(frame)).unwrap(), []);
}

pub(crate) fn calls_that_are_not_open_are_withdrawn(open: Open) {
    let (_temp, store) = fresh(open);
    let caller = store.start(store.root());
    store.request(caller, Some("toolu_1"), &[ask("When?")]).unwrap();
    let kept = store.request(caller, Some("toolu_2"), &[ask("Where?")]).unwrap();
    // Their calls lingered, and the hooks were killed.
    let answered = store.request(caller, Some("toolu_3"), &[ask("Who?")]).unwrap();
    store.answer(answered[0], "Ann").unwrap();
    let (begun, child) = store.request_child(caller, Some("toolu_4"), &new("child"), "child").unwrap();
    store.start(child);
    let (unborn, _) = store.request_child(caller, Some("toolu_5"), &new("another"), "another").unwrap();
    let kept = [kept, answered, vec![begun]].concat();
    assert!(!kept.contains(&unborn));
    let printed = PrintedRequests { open: Some(&["toolu_2"]), ..PrintedRequests::default() };
    for _ in 0..2 {
        store.complete_requests(caller, printed).unwrap();
        let open = store.requests(Requests::Undelivered(caller.attempt)).unwrap();
        assert_eq!(open.iter().map(|(request, _)| request.id).collect::<Vec<_>>(), kept);
    }
}

pub(crate) fn a_wait_ends_with_its_condition(open: Open) {
    let (_temp, store) = fresh(open);
    let caller = store.start(store.root());
    let wait = RequestKind::Wait(External::Time(Timestamp::UNIX_EPOCH));
    let request = store.request(caller, None, &[wait]).unwrap()[0];
    store.end(caller, &Ending::Suspended);
    let waiting: Vec<_> = store.candidates(Timestamp::now()).unwrap().iter().map(|found| found.root).collect();
    assert!(waiting.contains(&caller.frame), "it may be able to continue");
    store.resolve_wait(request).unwrap();
    assert!(!store.looked(request, &Seen::Time(Timestamp::now())).unwrap(), "it has ended");
    assert!(store.result_of(request).unwrap().is_some());
    assert!(matches!(
        store.looked(crate::core::id::RequestId::random(), &Seen::Filed),
        Err(StoreError::UnknownRequest(_))
    ));
}

pub(crate) fn a_frame_is_put_off_and_tried_again(open: Open) {
    let (_temp, store) = fresh(open);
    let root = store.root();
    let why = "no claude";
    let wait = Wait::Restart { tries: 1, why: why.into() };
    let put_off = store.change_state(root, StateChange::PutOff(why)).unwrap();
    assert_eq!(put_off, Some(FrameState::Waiting { wait }));
    assert_eq!(store.change_state(root, StateChange::PutOff(why)).unwrap(), None, "another process was faster");
    assert_eq!(store.try_again(root).unwrap(), FrameState::Ready);
    let again = store.change_state(root, StateChange::TryAgain { top: root });
    assert!(matches!(again, Err(StoreError::Illegal(_))), "it can run");
}

pub(crate) fn what_happened_is_logged_in_order(open: Open) {
    let (_temp, store) = fresh(open);
    let caller = store.start(store.root());
    let (_, child) = store.request_child(caller, None, &new("child"), "child").unwrap();
    store.end(caller, &Ending::Suspended);
    let below = store.events(Extent::Below(caller.frame), 0).unwrap();
    assert!(below.windows(2).all(|pair| pair[0].seq < pair[1].seq));
    assert_eq!(below.iter().filter(|event| event.frame == child).count(), store.events(child, 0).unwrap().len());
    let rest = store.events(Extent::Below(caller.frame), below[0].seq).unwrap();
    assert_eq!(rest, below[1..]);
    let stale = Caller { attempt: crate::core::id::AttemptId::random(), ..caller };
    assert!(store.use_results(stale, ResultUse::Shown(&[])).is_err());
}
