//! What a poll and lists cost while chains wait: `agent-cli resume` of one of them, `resume --all`, `ls` and `questions`, with
//! 10,000 frames in the database, as ratios to the start and end of an empty program.
//!
//! ```sh
//! cargo bench --bench poll                # 10,000 frames
//! cargo bench --bench poll -- 100000
//! ```

mod support;

use std::path::Path;
use std::process::{Command, Stdio};

use agent_cli::records::{
    AskedFor, AttemptEnd, AttemptId, Caller, Ending, Facts, Form, FrameId, Launch, Limits, NewAttempt, NewFrame,
    RequestKind, SessionId, Situation, Spending, Store, Task, Totals, decide,
};

const FRAMES: usize = 10_000;
const DEPTH: usize = 4;
const RUNS: usize = 300;

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let state = folder.path().join("state");
    let frames = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(FRAMES);
    println!("filling the database with {frames} frames in chains of {DEPTH}");
    let chain = fill(&state, frames).to_string();

    let command = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agent-cli"));
        command.args(arguments).env("AGENT_CLI_STATE_DIR", &state).stdin(Stdio::null());
        command
    };
    let said = command(&["resume", &chain]).output().expect("the program can be started");
    assert_eq!(String::from_utf8_lossy(&said.stdout), "SGN_PEND_ONGOING\n");

    let empty = support::empty_program(folder.path());
    for (name, arguments) in [
        ("resume ID", &["resume", &chain][..]),
        ("resume --all", &["resume", "--all"]),
        ("ls", &["ls", "--all-projects"]),
        ("questions", &["questions", "--all-projects"]),
    ] {
        support::compare(name, &empty, RUNS, |_| command(arguments));
    }
}

/// Chains that wait for an answer at their leaf. Returns the last one.
fn fill(state: &Path, frames: usize) -> FrameId {
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
