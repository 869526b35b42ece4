//! Chains in a database, recorded as the program itself does.

use std::path::Path;

use agent_cli::records::{
    AskedFor, AttemptEnd, AttemptId, Caller, Ending, Facts, Form, FrameId, Launch, Limits, NewAttempt, NewFrame,
    Origin, RequestKind, SessionId, Situation, SpawnForm, Spending, Store, Task, Totals, decide,
};

/// How many agents a chain has, one below the other.
pub(crate) const DEPTH: usize = 4;

/// Chains that wait for an answer at their leaf. Returns the last one.
pub(crate) fn fill(state: &Path, frames: usize) -> FrameId {
    let store = Store::open(state).expect("the folder can be written to");
    let mut last = None;
    for _ in 0..frames / DEPTH {
        last = Some(chain(&store, false));
    }
    last.expect("there is a chain")
}

/// A separate frame, or one of a chain.
pub(crate) fn new_frame() -> NewFrame {
    NewFrame {
        id: FrameId::random(),
        task: Task::File("/project/ins1.md".into()),
        cwd: "/project".into(),
        launch: Launch { claude: "/usr/bin/claude".into(), ..Launch::default() },
        limits: Limits::default(),
        baseline: None,
        started_from: None,
        name: None,
    }
}

/// A chain whose last agent asks. With `done`, all of them have replied.
pub(crate) fn chain(store: &Store, done: bool) -> FrameId {
    let root = store.create(&new_frame(), None).expect("a frame can be made");
    let mut frames = vec![root];
    for level in 1..=DEPTH {
        let frame = frames[level - 1];
        let caller = begin(store, frame, SessionId::from(frame));
        if level < DEPTH {
            frames.push(
                store
                    .create(
                        &new_frame(),
                        Some(AskedFor {
                            caller,
                            call: None,
                            title: "/project/ins2.md",
                            form: SpawnForm::Call,
                            json: false,
                            detached: None,
                        }),
                    )
                    .expect("there is room"),
            );
        } else {
            let kind = RequestKind::Ask(Form::text("When is your birthday?"));
            let question = store.request(caller, None, std::slice::from_ref(&kind)).expect("the attempt runs")[0];
            end(store, caller, Ending::Suspended);
            if done {
                store.record_answer(question, "Jan 1st", &Origin::default(), false).expect("it is open");
            }
            continue;
        }
        end(store, caller, Ending::Suspended);
    }
    for frame in frames.into_iter().rev().filter(|_| done) {
        let caller = begin(store, frame, SessionId::random());
        end(store, caller, Ending::Reply("done".into()));
    }
    root
}

/// An attempt of a frame that can run, given all existing results.
pub(crate) fn begin(store: &Store, frame: FrameId, session: SessionId) -> Caller {
    let record = store.frame(frame).expect("the frame can be read").expect("the frame is there");
    let deliveries = store.undelivered(&record).expect("its requests can be read").results;
    let id = AttemptId(session.0);
    let attempt = NewAttempt {
        id,
        session,
        resumed: None,
        output_from: 0,
        errors_from: 0,
        runner: 1,
        given: deliveries.into_iter().map(|delivery| (delivery.request, delivery.result)).collect(),
        placed: Vec::new(),
        resumed_calls: Vec::new(),
        mode: None,
        notice: None,
        max_parallel_total: None,
        messages: Vec::new(),
        summarises: None,
    };
    store.begin(frame, &attempt).expect("the frame is ready");
    Caller { frame, attempt: id }
}

fn end(store: &Store, caller: Caller, ending: Ending) {
    let has_requests = ending == Ending::Suspended;
    let decision = decide(&Facts { has_requests, ..Facts::from_ending(ending) });
    let end = AttemptEnd {
        frame: caller.frame,
        attempt: caller.attempt,
        decision: &decision,
        ended: None,
        ran: None,
        spending: Spending::default(),
        total: Totals::default(),
        model: None,
        version: None,
        transcript: None,
        leaves: None,
        suspended: None,
        situation: Situation::default(),
        denied: Vec::new(),
        stop: None,
        report: None,
        unseen_messages: Vec::new(),
        context: None,
    };
    store.end_attempt(&end).expect("the attempt runs");
}
