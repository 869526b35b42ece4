use std::path::PathBuf;

use jiff::SignedDuration;
use proptest::prelude::*;

use super::*;
use crate::core::attempt::decision::decide;
use crate::core::attempt::ending::Ending;
use crate::core::attempt::facts::Facts;
use crate::core::chain::runnable::Attempted;
use crate::core::id::{FrameId, RequestId};
use crate::core::requests::request::{External, SpawnForm};
use crate::core::steering::message::MessageSender;
use crate::core::steering::origin::Origin;
use crate::core::steering::stop_order::{By, Stop, StopKind};
use crate::core::waits::scheduled::{Scheduled, Scheduler};
use crate::store::handle::Store;
use crate::store::records::{
    AskedFor, AtEnd, AttemptEnd, Caller, ChainChange, Chains as Listed, Instruction, NewAttempt, Seen, StateChange,
};
use crate::store::testing::{ask, attempt, attempt_end, group, new, reply, store};

fn found(store: &Store) -> Vec<(FrameId, ContinueReason)> {
    let candidates = store.candidates(Timestamp::now()).unwrap();
    candidates.into_iter().map(|candidate| (candidate.root, candidate.reason)).collect()
}

#[test]
fn a_chain_that_waits_for_an_answer_is_none_until_it_has_one() {
    let (_temp, store) = store();
    let root = store.root();
    assert!(matches!(found(&store)[..], [(of, ContinueReason::Until(_))] if of == root), "whoever made it starts it");
    let caller = store.start(root);
    assert_eq!(found(&store), [(root, ContinueReason::Running)]);
    let question = store.request(caller, None, &[ask("When?")]).unwrap()[0];
    store.end(caller, &Ending::Suspended);
    assert_eq!(found(&store), []);
    store.answer(question, "now").unwrap();
    assert_eq!(found(&store), [(root, ContinueReason::Free)]);
    store.end(store.start(root), &reply("done"));
    assert_eq!(found(&store), []);
}

#[test]
fn a_question_that_expires_is_one_for_its_time() {
    let (_temp, store) = store();
    let caller = store.start(store.root());
    let expires_at = "2100-01-01T00:00:00Z".parse().unwrap();
    let form = Form { expires_at: Some(expires_at), ..Form::text("When?") };
    let question = store.request(caller, None, &[RequestKind::Ask(form)]).unwrap()[0];
    store.end(caller, &Ending::Suspended);
    assert_eq!(found(&store), [(caller.frame, ContinueReason::Until(expires_at))]);
    store.looked(question, &Seen::Time(Timestamp::now())).unwrap();
    assert_eq!(found(&store), [(caller.frame, ContinueReason::Until(expires_at))], "its time has not come");
    store.looked(question, &Seen::Time(expires_at)).unwrap();
    assert_eq!(found(&store), [(caller.frame, ContinueReason::Free)]);
}

#[test]
fn a_parent_is_one_as_soon_as_its_child_is_finished() {
    for ending in [reply("done"), Ending::Error("max turns".into())] {
        let (_temp, store) = store();
        let parent = store.start(store.root());
        let (_, child) = store.request_child(parent, None, &new("child"), "child").unwrap();
        store.end(parent, &Ending::Suspended);
        let caller = store.start(child);
        let question = store.request(caller, None, &[ask("When?")]).unwrap()[0];
        store.end(caller, &Ending::Suspended);
        assert_eq!(found(&store), []);
        store.answer(question, "now").unwrap();
        assert_eq!(found(&store), [(parent.frame, ContinueReason::Free)], "its child can go on");
        store.end(store.start(child), &ending);
        assert_eq!(found(&store), [(parent.frame, ContinueReason::Free)], "its child is finished");
        // The usage limit that it meets when it gets the message.
        let resets_at = "2100-01-01T00:00:00Z".parse().unwrap();
        store.end(store.start(parent.frame), &Ending::UsageLimit { resets_at, worked: false });
        assert_eq!(found(&store), [(parent.frame, ContinueReason::Until(resets_at))]);
    }
}

#[test]
fn a_group_is_one_when_its_last_member_is_finished() {
    let (_temp, store) = store();
    let group = group(&["a", "b"]);
    let parent = store.start(store.root());
    let (_, id) = store.request_child(parent, None, &group, "both").unwrap();
    store.end(parent, &Ending::Suspended);
    let members = store.tree(id).unwrap().children(id).to_vec();
    let callers = members.iter().map(|member| store.start(*member)).collect::<Vec<_>>();
    let questions: Vec<_> =
        callers.iter().map(|caller| store.request(*caller, None, &[ask("When?")]).unwrap()[0]).collect();
    callers.iter().for_each(|caller| drop(store.end(*caller, &Ending::Suspended)));
    assert_eq!(found(&store), []);
    for (member, question) in members.iter().zip(questions) {
        store.answer(question, "now").unwrap();
        store.end(store.start(*member), &reply("done"));
    }
    assert_eq!(found(&store), [(parent.frame, ContinueReason::Free)]);
}

#[test]
fn a_job_for_later_keeps_no_answer_from_an_agent_and_wakes_nobody_by_itself() {
    let (_temp, store) = store();
    let caller = store.start(store.root());
    store.request(caller, None, &[job()]).unwrap();
    let question = store.request(caller, None, &[ask("When?")]).unwrap()[0];
    store.end(caller, &Ending::Suspended);
    let reasons =
        |store: &Store| found(store).into_iter().map(|(_, reason)| reason == ContinueReason::Free).collect::<Vec<_>>();
    assert_eq!(reasons(&store), [false], "the time of the job");
    store.answer(question, "now").unwrap();
    assert_eq!(reasons(&store), [true, false]);
    store.end(store.start(caller.frame), &Ending::Suspended);
    assert_eq!(reasons(&store), [false], "it waits for its job");
}

#[test]
fn what_a_paused_agent_waits_for_is_none() {
    let (_temp, store) = store();
    let wait = External::Command("test -e x".into());
    let caller = store.start(store.root());
    store.request(caller, None, &[RequestKind::Wait(wait.clone())]).unwrap();
    store.end(caller, &Ending::Suspended);
    assert_eq!(found(&store), [(caller.frame, ContinueReason::Outside(wait))]);
    stop(&store, caller.frame, StopKind::Pause);
    assert_eq!(found(&store), []);
}

#[test]
fn a_damaged_row_is_left_to_whoever_looks_at_its_chain() {
    let (_temp, store) = store();
    let (damaged, _) = store.asking("When?");
    let (whole, question) = store.asking("Where?");
    store.answer(question, "here").unwrap();
    let sql = "UPDATE frames SET state = '{\"state\":\"waiting\",\"wait\":7}' WHERE id = ?1";
    store.execute(sql, [crate::store::sql::database::codec::Id(damaged)]);
    store.execute(
        "UPDATE requests SET state = '{\"state\":\"withdrawn\"}' WHERE frame = ?1",
        [crate::store::sql::database::codec::Id(damaged)],
    );
    assert_eq!(found(&store), [(damaged, ContinueReason::Free), (whole, ContinueReason::Free)]);
}

fn job() -> RequestKind {
    let by = Scheduler::Job { id: "j1".into() };
    let at = "2100-01-01T00:00:00Z".parse().unwrap();
    RequestKind::Wait(External::Scheduled(Scheduled { at, prompt: "look".into(), by }))
}

fn stop(store: &Store, frame: FrameId, how: StopKind) {
    let stop = Stop { how, now: false, by: By::Person, reason: None, of: frame, report: None };
    store.order_stop(frame, &stop, &[]).unwrap();
}

/// Chains that events happen to.
struct Chains {
    store: Store,
    _temp: tempfile::TempDir,
    running: Vec<Caller>,
    frames: Vec<FrameId>,
    open: Vec<RequestId>,
}

impl Chains {
    fn new() -> Self {
        let (temp, store) = store();
        if let Some(sqlite) = store.database().connection.sqlite() {
            sqlite.pragma_update(None, "synchronous", "off").unwrap();
        }
        Self { store, _temp: temp, running: Vec::new(), frames: Vec::new(), open: Vec::new() }
    }

    /// Applies an event to a chain, if possible.
    fn happen(&mut self, (what, which, how): (u8, u8, u8)) {
        let any = |count: usize| usize::from(which) % count.max(1);
        let (running, store) = (any(self.running.len()), &self.store);
        // Frames that were no longer needed may have been removed.
        let root = |frame: FrameId| store.frame(frame).unwrap().map(|frame| frame.root);
        let frame = self.frames.get(any(self.frames.len())).copied().filter(|frame| root(*frame).is_some());
        match what % 13 {
            0 => self.frames.push(store.root()),
            1..=3 => {
                let Some(frame) = frame else { return };
                let tree = store.tree(root(frame).unwrap()).unwrap();
                let runnable = tree.runnable(&Attempted::default(), far());
                let Some(frame) = runnable.get(any(runnable.len())).copied() else { return };
                let results = store.deliveries(frame).unwrap();
                let attempt =
                    attempt(results.iter().map(|delivery| (delivery.request, delivery.result.clone())).collect());
                let messages = store.steering(frame).unwrap().messages.into_iter();
                let messages = messages.filter(|message| message.delivered_in.is_none()).map(|message| message.id);
                let attempt = NewAttempt { messages: messages.collect(), ..attempt };
                // It may have been stopped in between.
                if store.begin(frame, &attempt).is_ok() {
                    self.running.push(Caller { frame, attempt: attempt.id });
                }
            }
            4 if running < self.running.len() => {
                let caller = self.running[running];
                let children = if how.is_multiple_of(2) {
                    let form = match how % 6 {
                        0 => SpawnForm::Handoff,
                        2 => SpawnForm::Background,
                        _ => SpawnForm::Call,
                    };
                    let asked = AskedFor { caller, call: None, title: "child", form, json: false, detached: None };
                    vec![store.ask_for(asked, &new("child")).unwrap().1]
                } else {
                    let group = group(&["a", "b"]);
                    let group = store.request_child(caller, None, &group, "both").unwrap().1;
                    store.tree(group).unwrap().children(group).to_vec()
                };
                self.frames.extend(children);
            }
            5 | 6 if running < self.running.len() => {
                let expires_at = Some("2026-01-01T00:00:00Z".parse().unwrap());
                let kind = match how % 5 {
                    0 | 1 => ask("When?"),
                    2 => RequestKind::Ask(Form { expires_at, ..Form::text("When?") }),
                    3 => RequestKind::Wait(External::Command("true".into())),
                    _ => job(),
                };
                self.open.extend(store.request(self.running[running], None, &[kind]).unwrap());
            }
            7 | 8 if running < self.running.len() => {
                let caller = self.running.remove(running);
                let resets_at = "2026-01-01T00:00:00Z".parse().unwrap();
                let ending = match how % 9 {
                    0..=3 => Ending::Suspended,
                    4 => reply("done"),
                    5 => reply("SGN_PEND_STARTED"),
                    6 => Ending::Error("max turns".into()),
                    7 => Ending::UsageLimit { resets_at, worked: how > 99 },
                    _ => Ending::Unavailable { why: "overloaded".into(), worked: how > 99 },
                };
                let has_checkpoint = store.frame(caller.frame).unwrap().unwrap().checkpoint.is_some();
                let AtEnd { has_open, has_background, .. } = store.at_end(caller.frame, caller.attempt).unwrap();
                // Its caller may have failed.
                let stop = store.steering(caller.frame).unwrap().stop;
                let facts = Facts {
                    has_checkpoint,
                    has_requests: has_open,
                    has_background,
                    stop: stop.clone(),
                    ..Facts::from_ending(ending)
                };
                let decision = decide(&facts);
                store.end_attempt(&AttemptEnd { stop, ..attempt_end(caller, &decision) }).unwrap();
            }
            9 => {
                let Some(question) = self.open.get(any(self.open.len())) else { return };
                // It may not be a question, or be closed.
                let _ = store.answer(*question, "now");
                let _ = store.looked(*question, &Seen::Time(Timestamp::now()));
            }
            10 => {
                // A running agent would have to end according to the stop.
                let rests = |frame: &FrameId| self.running.iter().all(|it| root(it.frame) != root(*frame));
                let Some(frame) = frame.filter(rests) else { return };
                stop(store, frame, if how.is_multiple_of(3) { StopKind::Stop } else { StopKind::Pause });
            }
            11 => {
                let Some(frame) = frame else { return };
                let sender = MessageSender { by: By::Person, origin: Origin::default() };
                let instruction = Instruction { text: "Once more.".into(), sender };
                // It may not have ended.
                let _ = store.change_chain(frame, ChainChange { instruction: Some(instruction), ..Default::default() });
            }
            _ => {
                let Some(frame) = frame else { return };
                let _ = store.change_state(frame, StateChange::TryAgain { top: frame });
                if how.is_multiple_of(3) {
                    // It may have no conversation.
                    let _ = store.change_chain(frame, ChainChange { afresh: true, ..ChainChange::default() });
                }
                let tree = store.tree(root(frame).unwrap()).unwrap();
                tree.groups_to_end().into_iter().for_each(|group| drop(store.end_group(group)));
                for handoff in tree.handoffs_to_end() {
                    store.change_state(handoff, StateChange::EndHandoff).unwrap();
                }
            }
        }
    }

    /// The chains that have ended, but for agents that a person has continued, and that lists would leave out.
    fn unlisted(&self) -> Vec<FrameId> {
        let listed = self.store.chains(Listed::Continued).unwrap().chains;
        let is_listed = |root: &FrameId| listed.iter().any(|chain| chain.id == *root && chain.has_continued);
        let roots = self.store.roots().into_iter().filter(|root| root.state.is_over()).map(|root| root.id);
        roots.filter(|root| !self.store.tree(*root).unwrap().has_ended() && !is_listed(root)).collect()
    }

    /// The chains that the rule allows to continue now, but that are not among the candidates.
    fn forgotten(&self, now: Timestamp) -> Vec<FrameId> {
        let is_due = |candidate: &ChangedChain| !matches!(candidate.reason, ContinueReason::Until(time) if time > now);
        let candidates = self.store.candidates(now).unwrap().into_iter().filter(is_due);
        let candidates: Vec<_> = candidates.map(|candidate| candidate.root).collect();
        let continues = |root: &FrameId| {
            let tree = self.store.tree(*root).unwrap();
            !tree.runnable(&Attempted::default(), now).is_empty() || tree.has_frames_to_end()
        };
        let roots = self.store.roots().into_iter().map(|root| root.id);
        roots.filter(|root| !candidates.contains(root)).filter(continues).collect()
    }
}

fn far() -> Timestamp {
    Timestamp::now().saturating_add(SignedDuration::from_hours(2)).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(40)
    ))]

    /// Selection and decision are separate code: whatever happened, the selection omits no chain.
    #[test]
    fn no_chain_that_can_go_on_is_left_out(happenings in proptest::collection::vec(any::<(u8, u8, u8)>(), 1..60)) {
        let mut chains = Chains::new();
        chains.happen((0, 0, 0));
        for happening in happenings {
            chains.happen(happening);
            // The creator of a frame has had the time to start it.
            let soon = Timestamp::now().saturating_add(SignedDuration::from_secs(20)).unwrap();
            for now in [soon, far()] {
                prop_assert_eq!(chains.forgotten(now), vec![], "after {:?}", happening);
            }
            prop_assert_eq!(chains.unlisted(), vec![], "after {:?}", happening);
        }
    }
}

#[test]
fn what_keeps_a_chain_is_named() {
    let (_temp, store) = store();
    let limited = store.root();
    let resets_at = "2100-01-01T00:00:00Z".parse().unwrap();
    store.end(store.start(limited), &Ending::UsageLimit { resets_at, worked: true });
    let caller = store.start(store.root());
    let wait = External::File(PathBuf::from("/p/report"));
    store.request(caller, None, &[RequestKind::Wait(wait.clone())]).unwrap();
    store.end(caller, &Ending::Suspended);
    let judging = store.root();
    store.end(store.start(judging), &reply("SGN_PEND_STARTED"));
    let named = [
        (limited, ContinueReason::Until(resets_at)),
        (judging, ContinueReason::AgentDecides),
        (caller.frame, ContinueReason::Outside(wait)),
    ];
    assert_eq!(found(&store), named);
}

#[test]
fn a_failed_chain_is_none() {
    let (_temp, store) = store();
    let root = store.root();
    store.end(store.start(root), &Ending::Error("max turns".into()));
    assert_eq!(found(&store), []);
}
