//! An agent has one session for its whole life. Claude Code's files about that session exist after a pause, and a discarded
//! attempt leaves them unchanged.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::json;

use crate::chain::Chain;
use crate::support::extent::sample_or_all;
use crate::support::{
    Conversation, Item, MessagesApi, Turn, claude, on_every_version, on_every_version_of_a_whole_run,
};

on_every_version!(pauses_leave_one_session_that_a_person_can_open);

on_every_version_of_a_whole_run!(
    a_discarded_attempt_leaves_conversation_tasks_and_plan_as_they_were,
    an_agent_has_its_tasks_after_pauses_and_kills,
    an_agent_can_go_on_with_a_finished_subagent
);

/// One of the models that are offered tools for tasks.
const MODEL: &str = "claude-sonnet-4-5-20250929";

/// Newer versions offer some tools only when they are asked for.
fn loading(version: &str, said: &Conversation, tools: &str) -> Option<Turn> {
    let loaded = said.items().iter().any(|item| matches!(item, Item::Call { name, .. } if name == "ToolSearch"));
    let needed = version != crate::support::OLDER && !loaded;
    needed.then(|| Turn::load(tools))
}

fn task(subject: &str) -> serde_json::Value {
    json!({"subject": subject, "description": "to do", "activeForm": "doing"})
}

/// The files that Claude Code has of sessions.
fn of_sessions(home: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders: Vec<_> = ["projects", "tasks", "plans"].map(|name| home.join(".claude").join(name)).into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else {
                found.insert(entry.path(), fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

/// At the top it spawns, below it creates tasks, asks twice, and lists its tasks.
fn with_tasks(version: &'static str) -> impl Fn(&Conversation) -> Turn {
    move |said| {
        let results = said.results_but_of_loading();
        if !said.user_texts().any(|prompt| prompt.contains("below")) {
            return match results.as_slice() {
                [] => Turn::bash("agent-cli spawn --prompt 'you are below'"),
                [.., reply] => Turn::text(*reply),
            };
        }
        if let Some(turn) = loading(version, said, "TaskCreate,TaskUpdate,TaskList") {
            return turn;
        }
        match results.len() {
            0 => Turn::call("TaskCreate", task("one"))
                .and_call("TaskCreate", task("two"))
                .and_call("TaskCreate", task("three")),
            3 => Turn::call("TaskUpdate", json!({"taskId": "1", "status": "in_progress"})),
            4 => Turn::bash("agent-cli ask 'First?'"),
            5 => Turn::bash("agent-cli ask 'Second?'"),
            6 => Turn::call("TaskList", json!({})).and_call("TaskCreate", task("four")),
            _ => Turn::text(format!("{}\n{}", results[6], results[7])),
        }
    }
}

fn an_agent_has_its_tasks_after_pauses_and_kills(version: &'static str) {
    let chain = Chain::with_model(version, MessagesApi::start(with_tasks(version)));
    let root = chain.started(&["spawn", "--prompt", "you are the top", "--model", MODEL]);
    chain.answer("1");
    // The runner dies after it has recorded the attempt, and after it has made room for it.
    for point in ["begin.after", "make_room.after"] {
        let killed = chain.command().args(["resume", &root]).env("AGENT_CLI_CRASH", point).status().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&killed), Some(Signal::KILL.as_raw()), "{killed}");
    }
    chain.started(&["resume", &root]);
    chain.answer("2");
    let said = chain.ok(&["resume", &root]);
    for line in ["#1 [in_progress] one", "#2 [pending] two", "#3 [pending] three", "Task #4 created"] {
        assert!(said.contains(line), "{said}");
    }
    assert_eq!(chain.home.transcripts().len(), 2, "one for each agent");
    chain.ok(&["fsck"]);
}

/// Creates a task and a plan, reports that it waits, and when it is woken changes both and reports again that it waits.
fn that_waits(version: &'static str) -> impl Fn(&Conversation) -> Turn {
    move |said| {
        if let Some(turn) = loading(version, said, "TaskCreate,TaskUpdate,TaskList") {
            return turn;
        }
        let woken = said.user_texts().any(|prompt| prompt.contains("SGN_RESUME"));
        let calls = |name: &str| said.calls().filter(|(call, _)| *call == name).count();
        let everything = format!("{} {}", said.context(), said.user_texts().collect::<Vec<_>>().join(" "));
        let plan = everything.split_whitespace().find(|word| word.contains("/.claude/plans/") && word.contains(".md"));
        let plan = plan.map(|word| {
            word.split_once(".md").map_or(word, |(path, _)| path).trim_start_matches(['`', '(', '"']).to_owned() + ".md"
        });
        let write =
            |text: &str| Turn::call("Write", json!({"file_path": plan.clone().unwrap_or_default(), "content": text}));
        match (woken, calls("TaskCreate"), calls("Write")) {
            (false, 0, _) => Turn::call("TaskCreate", task("one")),
            (false, _, 0) if plan.is_some() => write("# A plan\n"),
            (false, ..) => Turn::text("SGN_PEND_STARTED"),
            (true, 1, _) => Turn::call("TaskCreate", task("two"))
                .and_call("TaskUpdate", json!({"taskId": "1", "status": "completed"})),
            (true, _, 1) if plan.is_some() && calls("Read") == 0 => Turn::call("Read", json!({"file_path": plan})),
            (true, _, 1) if plan.is_some() => write("# Another plan\n"),
            (true, ..) => Turn::text("SGN_PEND_ONGOING"),
        }
    }
}

fn a_discarded_attempt_leaves_conversation_tasks_and_plan_as_they_were(version: &'static str) {
    let chain = Chain::with_model(version, MessagesApi::start(that_waits(version)));
    let arguments = ["spawn", "--prompt", "wait", "--model", MODEL, "--permission-mode", "plan"];
    let root = chain.started(&arguments);
    let before = of_sessions(chain.home.home());
    assert!(before.keys().any(|file| file.ends_with(format!("tasks/{root}/1.json"))), "{:?}", before.keys());
    assert!(
        before.keys().any(|file| file.ends_with("plans") || file.to_string_lossy().contains("/plans/")),
        "{:?}",
        before.keys()
    );
    let requests = chain.api.count();
    assert_eq!(chain.ok(&["resume", &root]), "SGN_PEND_ONGOING\n");
    assert!(chain.api.count() >= requests + 2, "it has changed its tasks");
    assert_eq!(of_sessions(chain.home.home()), before);
    // The process that ends the attempt dies before it has restored anything.
    let points = ["put_back.within", "end_attempt.after", "put_back.before", "put_back.after", "remove_copy.before"];
    for point in &points[..sample_or_all(1, points.len())] {
        chain.command().args(["resume", &root]).env("AGENT_CLI_CRASH", point).output().unwrap();
        let said = chain.run(&["resume", &root]);
        assert_eq!((said.code, said.out.as_str()), (Some(0), "SGN_PEND_ONGOING\n"), "{said:?}");
        assert!(!said.err.contains("somebody has continued"), "{said:?}");
        assert_eq!(of_sessions(chain.home.home()), before, "{point}");
    }
    chain.ok(&["fsck"]);
}

/// Has a subagent that says hello, asks, and has the subagent say more.
fn with_subagent(version: &'static str) -> impl Fn(&Conversation) -> Turn {
    move |said| {
        let was_told = |text: &str| said.user_texts().any(|prompt| prompt.contains(text));
        if !was_told("you have a subagent") {
            return Turn::text(if was_told("say more") { "this is more" } else { "hello" });
        }
        if let Some(turn) = loading(version, said, "SendMessage") {
            return turn;
        }
        let results = said.results_but_of_loading();
        let known = results.iter().find_map(|text| text.split_once("agentId: ").map(|(_, rest)| rest));
        let id = known.map_or("", |rest| rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default());
        match results.len() {
            0 => Turn::call(
                "Agent",
                json!({"description": "greet", "prompt": "say hello", "subagent_type": "general-purpose"}),
            ),
            1 | 4 => Turn::bash("for i in 1 2 3; do sleep 1; done; echo waited"),
            2 => Turn::bash("agent-cli ask 'When?'"),
            3 => Turn::call("SendMessage", json!({"to": id, "summary": "more", "message": "say more"})),
            _ => Turn::text(format!("{} {}", results[2], results[3])),
        }
    }
}

fn an_agent_can_go_on_with_a_finished_subagent(version: &'static str) {
    let chain = Chain::with_model(version, MessagesApi::start(with_subagent(version)));
    let root = chain.started(&["spawn", "--prompt", "you have a subagent", "--permission-mode", "bypassPermissions"]);
    // Its folder no longer exists, either.
    fs::remove_dir_all(chain.home.home().join(".claude/projects")).unwrap();
    chain.answer("now");
    let said = chain.ok(&["resume", &root]);
    let more = chain.api.requests().iter().any(|request| {
        let said = request.conversation();
        let was_told = |text: &str| said.user_texts().any(|prompt| prompt.contains(text));
        was_told("say hello") && was_told("say more")
    });
    assert!(more && said.starts_with("now "), "{said}");
}

fn pauses_leave_one_session_that_a_person_can_open(version: &'static str) {
    let pauses = sample_or_all(3, 12);
    let model = move |said: &Conversation| match said.results_but_of_loading().len() {
        count if count < pauses => Turn::bash(&format!("agent-cli ask 'Number {count}?'")),
        _ => Turn::text(said.results_but_of_loading().join(" ")),
    };
    let chain = Chain::with_model(version, MessagesApi::start(model));
    let root = chain.started(&["spawn", "--prompt", "ask"]);
    for number in 0..pauses - 1 {
        chain.answer(&number.to_string());
        chain.started(&["resume", &root]);
    }
    chain.answer("last");
    let answers: Vec<_> = (0..pauses - 1).map(|number| number.to_string()).collect();
    let reply = format!("{} last", answers.join(" "));
    assert_eq!(chain.ok(&["resume", &root]), format!("{reply}\n"));
    assert_eq!(chain.home.transcripts(), [chain.home.transcript(&root).unwrap()]);
    let mut person = chain.home.command(claude(version));
    let opened = person.args(["-p", "--resume", &root, "and?"]).output().unwrap();
    assert!(String::from_utf8_lossy(&opened.stdout).starts_with(&reply), "{opened:?}");
    assert_eq!(chain.home.transcripts().len(), 1);
    let sum = chain.json(&["show", &root, "--json"])["cost_usd"].as_f64().unwrap();
    let attempts = chain.json(&["show", &root, "--json"])["sessions"].as_array().unwrap().len();
    assert_eq!(attempts, pauses + 1);
    assert!(sum > 0.0);
}
