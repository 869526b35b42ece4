//! Chains in a database, recorded as the program itself does.

use std::path::Path;

use agent_cli::records::{
    AskedFor, AttemptEnd, AttemptId, Caller, Ending, Facts, Form, FrameId, Launch, Limits, NewAttempt, NewFrame,
    Origin, RequestKind, SessionId, Situation, SpawnForm, Spending, Store, Task, Totals, decide,
};
use rusqlite::Connection;

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

/// One of this many chains still waits for an answer.
pub(crate) const WAITS: usize = 5;

/// Columns that contain the id of a frame, an attempt or a request of the same chain.
const TABLES: [(&str, &[&str]); 7] = [
    ("chains", &["root"]),
    ("frames", &["id", "parent", "root", "checkpoint"]),
    ("attempts", &["id", "session", "frame", "resumed"]),
    ("requests", &["id", "frame", "attempt"]),
    ("answers", &["question"]),
    ("replies", &["frame"]),
    ("events", &["frame"]),
];

/// Chains that are done, except for some that wait.
pub(crate) fn copies(state: &Path, chains: usize) {
    copy(state, chains - chains / WAITS, chains / WAITS);
}

/// Copies two chains that are created with the program itself: one that is done, and one that waits.
pub(crate) fn copy(state: &Path, done: usize, waiting: usize) {
    let store = Store::open(state).expect("the folder can be written to");
    let originals = [chain(&store, true), chain(&store, false)];
    drop(store);
    let database = Connection::open(state.join("agent-cli.db")).expect("a database");
    database.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF; BEGIN").expect("own database");
    for (table, ids) in TABLES {
        let columns: Vec<String> = {
            let mut statement = database.prepare(&format!("PRAGMA table_info({table})")).expect("a table");
            let names = statement.query_map([], |row| row.get::<_, String>("name")).expect("columns");
            names.map(|name| name.expect("text")).filter(|name| name != "seq").collect()
        };
        let value = |name: &String| match ids.contains(&name.as_str()) {
            true => format!("printf('%08x', k.value) || substr(t.{name}, 9)"),
            false if table == "requests" && name == "detail" => {
                let child = "printf('%08x', k.value) || substr(t.child, 9)";
                format!("CASE WHEN t.child IS NULL THEN t.detail ELSE json_set(t.detail, '$.spawn.child', {child}) END")
            }
            false if table == "requests" && name == "state" => {
                let attempt = "printf('%08x', k.value) || substr(t.delivered_in, 9)";
                format!("json_replace(t.state, '$.attempt', {attempt})")
            }
            false => format!("t.{name}"),
        };
        let values: Vec<String> = columns.iter().map(value).collect();
        let of = match table {
            "answers" => {
                "t.question IN (SELECT r.id FROM requests AS r JOIN frames AS f ON f.id = r.frame WHERE f.root = ?1)"
            }
            "chains" | "frames" => "t.root = ?1",
            _ => "t.frame IN (SELECT id FROM frames WHERE root = ?1)",
        };
        let copy = format!(
            "WITH RECURSIVE k (value) AS (VALUES (?2) UNION ALL SELECT value + 1 FROM k WHERE value < ?3)
             INSERT INTO {table} ({}) SELECT {} FROM k CROSS JOIN {table} AS t WHERE {of}",
            columns.join(", "),
            values.join(", ")
        );
        for (root, first, last) in [(originals[0], 1, done), (originals[1], done + 1, done + waiting)] {
            database.execute(&copy, (root.to_string(), first as u32, last as u32)).expect("rows can be copied");
        }
    }
    // The two originals are no longer needed.
    for (table, of) in [
        (
            "answers",
            "question IN (SELECT id FROM requests WHERE frame IN (SELECT id FROM frames WHERE root IN (?1, ?2)))",
        ),
        ("requests", "frame IN (SELECT id FROM frames WHERE root IN (?1, ?2))"),
        ("attempts", "frame IN (SELECT id FROM frames WHERE root IN (?1, ?2))"),
        ("replies", "frame IN (SELECT id FROM frames WHERE root IN (?1, ?2))"),
        ("frames", "root IN (?1, ?2)"),
        ("chains", "root IN (?1, ?2)"),
    ] {
        database
            .execute(&format!("DELETE FROM {table} WHERE {of}"), originals.map(|root| root.to_string()))
            .expect("rows");
    }
    database.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)").ok();
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
        on: None,
        pushed: None,
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

/// A chain of `agents`, of which the first has called the others together: one asks, and the others are done.
pub(crate) fn wide(store: &Store, agents: usize) -> FrameId {
    let limits = Limits { max_agents: agents as u32, ..Limits::default() };
    let root = store.create(&NewFrame { limits, ..new_frame() }, None).expect("a frame can be made");
    let caller = begin(store, root, SessionId::from(root));
    let title = "/project/ins2.md";
    let asked = || AskedFor { caller, call: None, title, form: SpawnForm::Call, json: false, detached: None };
    let children: Vec<_> =
        (1..agents).map(|_| store.create(&new_frame(), Some(asked())).expect("there is room")).collect();
    end(store, caller, Ending::Suspended);
    for (at, child) in children.into_iter().enumerate() {
        let caller = begin(store, child, SessionId::random());
        if at == 0 {
            let kind = RequestKind::Ask(Form::text("When is your birthday?"));
            store.request(caller, None, std::slice::from_ref(&kind)).expect("the attempt runs");
            end(store, caller, Ending::Suspended);
        } else {
            end(store, caller, Ending::Reply("done".into()));
        }
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

pub(crate) fn end(store: &Store, caller: Caller, ending: Ending) {
    let has_requests = ending == Ending::Suspended;
    let decision = decide(&Facts { has_requests, ..Facts::from_ending(ending) });
    let end = AttemptEnd {
        pushed: None,
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
        left_behind: Vec::new(),
        unseen_messages: Vec::new(),
        context: None,
    };
    store.end_attempt(&end).expect("the attempt runs");
}
