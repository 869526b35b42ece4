//! Fills a database with chains that wait.

use std::path::Path;

use agent_cli::records::{
    AskedFor, AttemptEnd, AttemptId, Caller, Ending, Facts, Form, FrameId, Launch, Limits, NewAttempt, NewFrame,
    RequestKind, SessionId, Situation, Spending, Store, Task, Totals, decide,
};

/// How many agents a chain has, one below the other.
pub(crate) const DEPTH: usize = 4;

/// Chains that wait for an answer at their leaf. Returns the last one.
pub(crate) fn fill(state: &Path, frames: usize) -> FrameId {
    let store = Store::open(state).expect("the folder can be written to");
    let new = || NewFrame {
        id: FrameId::random(),
        task: Task::File("/project/ins1.md".into()),
        cwd: "/project".into(),
        launch: Launch { claude: "/usr/bin/claude".into(), ..Launch::default() },
        limits: Limits::default(),
        baseline: None,
        started_from: None,
        name: None,
    };
    let mut last = None;
    for _ in 0..frames / DEPTH {
        let root = store.create(&new(), None).expect("a frame can be made");
        let mut frame = root;
        for level in 1..=DEPTH {
            let child = pause(&store, frame, (level < DEPTH).then(new));
            frame = child.unwrap_or(frame);
        }
        last = Some(root);
    }
    last.expect("there is a chain")
}

/// An attempt in which the frame's agent spawns a child, or asks.
fn pause(store: &Store, frame: FrameId, child: Option<NewFrame>) -> Option<FrameId> {
    let (id, session) = (AttemptId::random(), SessionId::from(frame));
    let attempt = NewAttempt {
        id,
        session,
        resumed: None,
        output_from: 0,
        errors_from: 0,
        runner: 1,
        delivering: Vec::new(),
        answers: Vec::new(),
        to_return: None,
        mode: None,
        notice: None,
        max_parallel_total: None,
        messages: Vec::new(),
    };
    store.begin(frame, &attempt).expect("the frame is ready");
    let caller = Caller { frame, attempt: id };
    let child = match child {
        Some(new) => Some(
            store
                .create(&new, Some(AskedFor { caller, call: None, title: "/project/ins2.md" }))
                .expect("the tree has room"),
        ),
        None => {
            let kind = RequestKind::Ask(Form::text("When is your birthday?"));
            store.request(caller, None, std::slice::from_ref(&kind)).expect("the attempt runs");
            None
        }
    };
    let decision = decide(&Facts { has_requests: true, ..Facts::of(Ending::Suspended) });
    let end = AttemptEnd {
        frame,
        attempt: id,
        decision: &decision,
        ended: None,
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
    };
    store.end_attempt(&end).expect("the attempt runs");
    child
}
