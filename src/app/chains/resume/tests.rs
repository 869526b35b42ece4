//! Tests what `resume` does and refuses, rule by rule.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::*;
use crate::app::chains::run::testing::TestShell;
use crate::app::{Asker, testing};
use crate::core::attempt::ending::Ending;
use crate::core::chain::frame_state::Wait;
use crate::core::requests::request::RequestResult;
use crate::core::steering::stop_order::By;
use crate::store::testing::{ask, group, new, refused, reply};
use crate::store::{self, Caller, NewFrame};

fn input(id: impl Into<String>) -> Input {
    Input {
        id: id.into(),
        limits: NewLimits::default(),
        repair: Repair::default(),
        prompt: None,
        afresh: false,
        now: false,
        stale_check: true,
    }
}

fn prompt(text: &str) -> Option<DeferredText> {
    let text = text.to_owned();
    Some(Box::new(|| Ok(text)))
}

fn unread() -> Option<DeferredText> {
    Some(Box::new(|| panic!("it is not read")))
}

fn depth(max_depth: u32) -> NewLimits {
    NewLimits { max_depth: Some(max_depth), ..NewLimits::default() }
}

fn model(model: &str) -> Repair {
    Repair { model: Some(model.into()), ..Repair::default() }
}

fn resumed(app: &App<'_>, input: Input) -> Resumed {
    match resume(app, input, &TestShell).unwrap() {
        Outcome::Chain(resumed) => resumed,
        Outcome::Result(result) => panic!("{result:?}"),
    }
}

fn message_of_refusal(app: &App<'_>, input: Input) -> String {
    resume(app, input, &TestShell).unwrap_err().to_string()
}

fn done(store: &Store) -> FrameId {
    let caller = store.start(store.root());
    store.end(caller, &reply("yes"));
    caller.frame
}

/// Surroundings that must not be used.
struct Unneeded;

impl RunSurroundings for Unneeded {
    fn run_settings(&self, _: Option<PathBuf>) -> Result<RunSettings, AppError> {
        panic!("settings are not read")
    }

    fn launch(&self) -> Result<Launch, AppError> {
        panic!("nothing is started")
    }

    fn claude(&self, _: Option<&Path>) -> Result<PathBuf, AppError> {
        panic!("nothing is started")
    }
}

#[test]
fn what_agents_left_running_changes_no_chain() {
    let (_temp, store) = store::testing::store();
    let id = done(&store).to_string();
    let app = App { asker: Asker { runner: Some(7), ..Asker::default() }, ..testing::app(&store) };
    for input in [
        Input { limits: depth(9), ..input(&id) },
        Input { repair: model("other"), ..input(&id) },
        Input { prompt: unread(), ..input(&id) },
        Input { afresh: true, ..input(&id) },
        Input { now: true, ..input(&id) },
    ] {
        assert_eq!(message_of_refusal(&app, input), "agents cannot change how chains continue");
    }
    resumed(&app, input(&id));
}

#[test]
fn a_chain_that_waits_has_a_status_and_needs_no_settings() {
    let (_temp, store) = store::testing::store();
    let (waits, question) = store.asking("When?");
    let app = testing::app(&store);
    for id in [waits.to_string(), waits.short(), question.to_string()] {
        let Outcome::Chain(resumed) = resume(&app, input(id.as_str()), &Unneeded).unwrap() else { panic!("{id}") };
        assert_eq!((resumed.top, resumed.repaired), (waits, 0));
        assert!(matches!(resumed.next, NextRun::Nothing(ChainStatus::Waits { .. })), "{id}");
    }
    for id in [waits.to_string(), question.short()] {
        assert!(matches!(look(&store, &id), Ok(Some((top, ChainStatus::Waits { .. }))) if top == waits), "{id}");
    }
    assert!(look(&store, "a-name").unwrap().is_none());
    assert!(look(&store, &store.root().to_string()).unwrap().is_none(), "it can run");
}

#[test]
fn a_chain_that_can_run_gets_settings_as_the_asker_wants() {
    let (_temp, store) = store::testing::store();
    let run = |stale_check| {
        let resumed = resumed(&testing::app(&store), Input { stale_check, ..input(store.root().to_string()) });
        let NextRun::Run(settings) = resumed.next else { panic!("{:?}", resumed.next) };
        settings.stale_check
    };
    assert!(run(true) && !run(false));
}

#[test]
fn whatever_changes_a_chain_is_more_than_a_look() {
    assert!(input("4f2c").changes_nothing());
    for changing in [
        Input { limits: depth(3), ..input("4f2c") },
        Input { repair: model("opus"), ..input("4f2c") },
        Input { prompt: unread(), ..input("4f2c") },
        Input { now: true, ..input("4f2c") },
    ] {
        assert!(!changing.changes_nothing());
    }
}

#[test]
fn agents_look_up_results_and_change_nothing() {
    let (_temp, store) = store::testing::store();
    let caller = store.start(store.root());
    let question = store.request(caller, None, &[ask("When?")]).unwrap().remove(0);
    let app = App { asker: Asker { agent: Some(caller), ..Asker::default() }, ..testing::app(&store) };
    let message = |input| message_of_refusal(&app, input);
    let cannot_change = "agents cannot use --now or change how claude is started";
    assert_eq!(
        message(Input { limits: depth(3), ..input(question.to_string()) }),
        "agents cannot set limits (--max-…, --stall-after)"
    );
    assert_eq!(
        message(Input { prompt: unread(), ..input(question.to_string()) }),
        "agents cannot give others new instructions"
    );
    assert_eq!(message(Input { now: true, ..input(question.to_string()) }), cannot_change);
    assert_eq!(message(Input { repair: model("opus"), ..input(question.to_string()) }), cannot_change);
    assert!(message(input(store.root().to_string())).starts_with("no agent or question matches"));
    let looked_up = |app: &App<'_>| match resume(app, input(question.to_string()), &Unneeded).unwrap() {
        Outcome::Result(looked_up) => looked_up,
        Outcome::Chain(resumed) => panic!("{resumed:?}"),
    };
    let none = looked_up(&app);
    assert_eq!(none.result, None);
    none.record_read(&app).unwrap();
    store.answer(question, "Jan 1st").unwrap();
    let answered = looked_up(&app);
    assert_eq!(answered.result, Some(RequestResult::Text("Jan 1st".into())));
    assert!(store.has_undelivered_requests(caller.attempt).unwrap());
    answered.record_read(&app).unwrap();
    assert!(!store.has_undelivered_requests(caller.attempt).unwrap(), "it is not delivered again");
    let ended = Caller { attempt: crate::core::id::AttemptId::random(), ..caller };
    let asker = Asker { agent: Some(ended), ..Asker::default() };
    answered.record_read(&App { asker, ..testing::app(&store) }).unwrap();
}

#[test]
fn an_agent_that_has_ended_gets_a_new_instruction_from_whom_gives_it() {
    let (_temp, store) = store::testing::store();
    let mut asker = Asker::default();
    asker.origin.process = 42;
    let app = App { asker, ..testing::app(&store) };
    let agent = done(&store);
    let resumed = resumed(&app, Input { prompt: prompt("And now?"), ..input(agent.to_string()) });
    assert!(matches!(resumed.next, NextRun::Run(_)), "{resumed:?}");
    let message = store.steering(agent).unwrap().messages.remove(0);
    let sender = message.sender.unwrap();
    assert_eq!((message.text.as_str(), message.instructs), ("And now?", true));
    assert_eq!((sender.by, sender.origin.process), (By::Person, 42));
    let empty = Input { prompt: prompt(" "), ..input(done(&store).to_string()) };
    assert_eq!(message_of_refusal(&app, empty), "the text is empty");
}

#[test]
fn a_refused_resume_changes_nothing() {
    let (_temp, store) = store::testing::store();
    let app = testing::app(&store);
    let (waits, _) = store.asking("When?");
    let before = store.chain_of(waits).unwrap().limits;
    let refusal = message_of_refusal(&app, Input { limits: depth(3), prompt: unread(), ..input(waits.to_string()) });
    assert_eq!(refusal, format!("{} is still waiting", waits.short()));
    let caller = store.start(store.root());
    let (_, several) = store.request_child(caller, None, &group(&["one", "other"]), "one other").unwrap();
    let refusal = message_of_refusal(&app, Input { prompt: unread(), ..input(several.to_string()) });
    assert_eq!(refusal, format!("{} is a group of agents", several.short()));
    // This program does not exist.
    let repair = Repair { claude: Some("/nowhere/claude".into()), ..model("opus") };
    message_of_refusal(&app, Input { limits: depth(3), repair, ..input(waits.to_string()) });
    assert_eq!(store.chain_of(waits).unwrap().limits, before);
    assert_eq!(store.frame(waits).unwrap().unwrap().launch.model, None);
    let resumed = resumed(&app, Input { limits: depth(3), ..input(waits.to_string()) });
    assert!(matches!(resumed.next, NextRun::Nothing(_)));
    assert_eq!(store.chain_of(waits).unwrap().limits.max_depth, 3);
}

#[test]
fn options_are_changed_only_for_a_whole_chain_that_has_not_ended() {
    let (_temp, store) = store::testing::store();
    let app = testing::app(&store);
    let caller = store.start(store.root());
    let (_, child) = store.request_child(caller, None, &new("a task"), "a task").unwrap();
    let repair = |id: FrameId| message_of_refusal(&app, Input { repair: model("opus"), ..input(id.to_string()) });
    assert_eq!(
        repair(child),
        format!("{} was started by an agent: options can be changed only for the whole chain", child.short())
    );
    let done = done(&store);
    assert_eq!(repair(done), format!("{} is done: it starts no more agents", done.short()));
}

#[test]
fn a_usage_limit_is_waited_for_unless_the_asker_retries_now() {
    let (_temp, store) = store::testing::store();
    let app = testing::app(&store);
    let caller = store.start(store.root());
    let resets_at = Timestamp::now() + jiff::SignedDuration::from_hours(1);
    store.end(caller, &Ending::UsageLimit { resets_at, worked: false });
    let pauses = || {
        let state = store.frame(caller.frame).unwrap().unwrap().state;
        matches!(state, FrameState::Waiting { wait: Wait::UsageLimit { .. } })
    };
    assert!(pauses());
    resumed(&app, input(caller.frame.to_string()));
    assert!(pauses());
    let resumed = resumed(&app, Input { now: true, ..input(caller.frame.to_string()) });
    assert!(matches!(resumed.next, NextRun::Run(_)) && !pauses());
}

#[test]
fn a_name_is_lost_once_another_chain_has_it() {
    let (_temp, store) = store::testing::store();
    let app = testing::app(&store);
    let named = || store.create_root(&NewFrame { name: Some("licences".parse().unwrap()), ..new("a task") });
    let failed = store.start(named().unwrap());
    store.end(failed, &refused("Please run /login"));
    let before = resumed(&app, input(failed.frame.to_string())).named.unwrap();
    assert_eq!((before.root, before.name.as_str(), before.is_lost(&store)), (failed.frame, "licences", false));
    assert!(resumed(&app, input(store.root().to_string())).named.is_none());
}

#[test]
fn an_adopted_session_is_started_as_in_these_surroundings() {
    let given = Repair { permission_mode: Some("acceptEdits".into()), ..model("opus") };
    let launch = adopted(&given, &TestShell).unwrap();
    assert_eq!(launch.claude, Path::new("/usr/bin/claude"));
    assert_eq!((launch.model.as_deref(), launch.permission_mode.as_deref()), (Some("opus"), Some("acceptEdits")));
    let named = Repair { claude: Some("other".into()), ..Repair::default() };
    let launch = adopted(&named, &TestShell).unwrap();
    assert_eq!(launch.claude, Path::new("/usr/bin/other"));
    assert_eq!((launch.model, launch.permission_mode.as_deref()), (None, Some("plan")));
}

#[test]
fn what_nobody_has_is_unknown() {
    let (_temp, store) = store::testing::store();
    let unknown = resume(&testing::app(&store), input("0123abcd"), &Unneeded).unwrap_err();
    assert!(matches!(unknown, AppError::Store(StoreError::Unknown(_))), "{unknown}");
}
