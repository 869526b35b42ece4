use std::fs;
use std::time::Duration;

use serde_json::Value;

use super::*;
use crate::core::agent::child_worktree::Worktree;
use crate::core::agent::claude_args::ClaudeArgs;
use crate::core::agent::launch::Launch;
use crate::runtime::Stopping;
use crate::store::NewFrame;
use crate::store::testing::{self, new};

fn own() -> RunSettings {
    RunSettings {
        spans: None,
        config: None,
        claude: None,
        own_program: "/usr/bin/agent-cli".into(),
        stale_check: true,
        stopping: Stopping { grace: Duration::ZERO, tell: |_| {} },
        linger: Duration::ZERO,
        places: None,
        prices: Default::default(),
        host: Default::default(),
    }
}

fn read(file: Option<PathBuf>) -> Value {
    serde_json::from_slice(&fs::read(file.expect("a file was written")).unwrap()).unwrap()
}

/// A frame of a chain whose root has this working directory.
fn root(store: &Store, cwd: &Path, launch: Launch, task: Task) -> Frame {
    let root = NewFrame { cwd: cwd.to_owned(), launch, task, ..new("") };
    let frame = store.frame(store.create_root(&root).unwrap()).unwrap().unwrap();
    store.dir().frame_dir(frame.id).unwrap();
    frame
}

#[test]
fn the_tool_for_approvals_knows_whose_calls_it_decides_on() {
    let (_temp, store) = testing::store();
    let attempt = AttemptId::random();
    let temp = tempfile::tempdir().unwrap();
    let frame = root(&store, temp.path(), Launch::default(), Task::Prompt("do it".into()));
    let config = read(permission_tool(&store, &own(), &frame, attempt).unwrap());
    let server = config["mcpServers"].as_object().unwrap().values().next().unwrap();
    let state_dir = store.dir().path().display().to_string();
    assert_eq!(server["command"], "/usr/bin/agent-cli");
    assert_eq!(server["env"], serde_json::json!({FRAME: frame.id, ATTEMPT: attempt, STATE_DIR: state_dir}));
    fs::create_dir(temp.path().join(".claude")).unwrap();
    fs::write(temp.path().join(".claude/settings.json"), r#"{"allowedMcpServers": []}"#).unwrap();
    assert_eq!(permission_tool(&store, &own(), &frame, attempt).unwrap(), None, "claude would end without a result");
}

#[test]
fn an_agent_has_hooks_if_its_claude_can_suspend_calls_and_nobody_forbade_it() {
    let (temp, store) = testing::store();
    let has_hooks = |no_hooks: bool, suspends: bool| {
        let launch = Launch { no_hooks, ..Launch::default() };
        let frame = root(&store, temp.path(), launch, Task::Prompt("do it".into()));
        let mut program = Program::old();
        program.suspends = suspends;
        read(settings(&store, &own(), &frame, &program, None).unwrap())["hooks"].is_object()
    };
    assert_eq!([has_hooks(false, true), has_hooks(true, true), has_hooks(false, false)], [true, false, false]);
}

#[test]
fn settings_that_cannot_be_read_are_left_to_claude_code() {
    let (temp, store) = testing::store();
    let of = |given: &str| {
        let launch = Launch { args: ClaudeArgs::from_recorded(&[&format!("--settings={given}")]), ..Launch::default() };
        let frame = root(&store, temp.path(), launch, Task::Prompt("do it".into()));
        settings(&store, &own(), &frame, &Program::old(), None).unwrap()
    };
    assert_eq!(of("/nowhere/settings.json"), None);
    assert_eq!(read(of(r#"{"model": "opus"}"#))["model"], "opus");
}

#[test]
fn a_child_may_read_its_instructions_only_where_its_parent_could() {
    let (temp, store) = testing::store();
    let real = temp.path().canonicalize().unwrap();
    let (inside, outside) = (real.join("project/ins.md"), real.join("ins.md"));
    fs::create_dir(real.join("project")).unwrap();
    for file in [&inside, &outside] {
        fs::write(file, "do it").unwrap();
    }
    let allowed = |frame: &Frame| instructions_to_allow(&store, frame).unwrap().map(Path::to_owned);
    let top = root(&store, &real.join("project"), Launch::default(), Task::File(outside.clone()));
    assert_eq!(allowed(&top), Some(outside.clone()), "a person named it");
    let caller = store.start(top.id);
    let child = store.frame(store.request_child(caller, None, &new(""), "").unwrap().1).unwrap().unwrap();
    let with = |file: &Path, worktree: bool| {
        let made = Worktree {
            remote: None,
            repository: real.join(".git"),
            path: real.join("worktree"),
            branch: "agent-cli/task".into(),
            base: "4f2c1a90".into(),
        };
        let launch = Launch { worktree: worktree.then_some(made), ..Launch::default() };
        allowed(&Frame { task: Task::File(file.to_owned()), launch, ..child.clone() })
    };
    assert_eq!(with(&inside, true), Some(inside.clone()), "the worktree may lack it");
    assert_eq!(with(&inside, false), None);
    assert_eq!(with(&outside, true), None);
    assert_eq!(with(&real.join("project/missing.md"), true), None);
}
