//! The MCP server, with the client of the official SDK.

use std::fs;
use std::future::Future;
use std::process::Stdio;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, ClientCapabilities, ClientConfig, DetailedTask,
    GetTaskParams, Implementation, ProtocolVersion, TaskPayload, TaskStatus, UpdateTaskParams,
};
use rmcp::service::{ClientLifecycleMode, RunningService, serve_client_with_lifecycle};
use rmcp::{RoleClient, ServiceError};
use serde_json::{Value, json};

use crate::gate::PATIENCE;
use crate::world::World;

/// How clients of each version of the protocol begin.
fn lifecycles() -> [ClientLifecycleMode; 2] {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    [ClientLifecycleMode::Initialize, ClientLifecycleMode::Discover { preferred_versions }]
}

/// A client that the server was started for.
struct Client {
    service: RunningService<RoleClient, ClientConfig>,
    _server: tokio::process::Child,
}

impl Client {
    async fn with_tasks(world: &World, lifecycle: ClientLifecycleMode) -> Self {
        Self::start(world, lifecycle, ClientCapabilities::builder().enable_tasks().build()).await
    }

    async fn start(world: &World, lifecycle: ClientLifecycleMode, capabilities: ClientCapabilities) -> Self {
        let mut command = tokio::process::Command::from(world.command(["mcp"]).into_command());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).kill_on_drop(true);
        let mut server = command.spawn().expect("the program can be started");
        let streams = (server.stdout.take().unwrap(), server.stdin.take().unwrap());
        let config = ClientConfig::new(capabilities, Implementation::new("test-client", "7"));
        let service = serve_client_with_lifecycle(config, streams, lifecycle).await.expect("it begins");
        Self { service, _server: server }
    }

    async fn call(&self, tool: &'static str, arguments: Value) -> CallToolResponse {
        let arguments = arguments.as_object().expect("an object").clone();
        let params = CallToolRequestParams::new(tool).with_arguments(arguments);
        self.service.call_tool_once(params).await.expect("it answers")
    }

    /// The text that a tool returns, and whether it is an error.
    async fn text(&self, tool: &'static str, arguments: Value) -> (String, bool) {
        let CallToolResponse::Complete(result) = self.call(tool, arguments).await else {
            panic!("{tool} makes a task")
        };
        let text = result.content[0].as_text().expect("a text").text.clone();
        (text, result.is_error == Some(true))
    }

    /// Starts a chain with this file of instructions, and returns the id of its task.
    async fn spawn(&self, file: &str) -> String {
        match self.call("spawn", json!({ "files": [file] })).await {
            CallToolResponse::Task(created) => created.task.task_id,
            other => panic!("{other:?}"),
        }
    }

    async fn get(&self, task: &str) -> Result<DetailedTask, ServiceError> {
        self.service.peer().get_task(GetTaskParams::new(task)).await.map(|result| result.task)
    }

    /// The state of a task as soon as `is_meant`.
    async fn wait(&self, task: &str, is_meant: impl Fn(&TaskPayload) -> bool) -> TaskPayload {
        let look = async {
            loop {
                let payload = self.get(task).await.expect("there is such a task").payload;
                if is_meant(&payload) {
                    return payload;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, look).await.expect("it gets there")
    }

    /// The only form that a task shows, and its question.
    async fn form(&self, task: &str) -> (String, Value) {
        let shown = self.wait(task, |payload| matches!(payload, TaskPayload::InputRequired { .. })).await;
        let TaskPayload::InputRequired { input_requests } = shown else { unreachable!() };
        let (id, request) = input_requests.into_iter().next().expect("a question");
        (id, serde_json::to_value(request).unwrap()["params"].clone())
    }

    async fn enter(&self, task: &str, question: &str, content: Value) -> Result<(), ServiceError> {
        let response = json!({ "action": "accept", "content": content });
        let responses = [(question.to_owned(), response)].into();
        self.service.peer().update_task(UpdateTaskParams::new(task, responses)).await
    }

    /// The reply of a chain that is done.
    async fn reply(&self, task: &str) -> String {
        let done = self.wait(task, |payload| matches!(payload, TaskPayload::Completed { .. })).await;
        let TaskPayload::Completed { result } = done else { unreachable!() };
        result["content"][0]["text"].as_str().expect("a text").to_owned()
    }
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

#[test]
fn a_chain_is_a_task_whose_question_is_a_form() {
    for lifecycle in lifecycles() {
        let world = World::with_hooks();
        world.file("root.md", "run agent-cli ask 'Which colour?' --option Red --option Blue\nreply {result}\n");
        run(async {
            let client = Client::with_tasks(&world, lifecycle).await;
            let task = client.spawn("root.md").await;
            let (question, form) = client.form(&task).await;
            assert_eq!(form["message"], "Which colour?");
            let offered = &form["requestedSchema"]["properties"]["answer"]["oneOf"];
            assert_eq!(offered, &json!([{ "const": "Red", "title": "Red" }, { "const": "Blue", "title": "Blue" }]));
            client.enter(&task, &question, json!({ "answer": "Green" })).await.expect_err("it was not offered");
            client.enter(&task, &question, json!({ "answer": "Blue" })).await.expect("it was offered");
            assert_eq!(client.reply(&task).await, "Blue");
        });
        let answered = world.run(&["history", "--json"]).json()[0]["records"][0]["by"].clone();
        assert_eq!(answered["client"], "test-client 7", "{answered}");
    }
}

#[test]
fn a_later_server_answers_for_the_task() {
    let world = World::with_hooks();
    world.file("root.md", "ask When?\nreply {result}\n");
    run(async {
        let [first, second] = lifecycles();
        let client = Client::with_tasks(&world, first).await;
        let task = client.spawn("root.md").await;
        let (question, _) = client.form(&task).await;
        drop(client);
        let client = Client::with_tasks(&world, second).await;
        assert_eq!(client.form(&task).await.0, question);
        world.answer("now");
        let late =
            client.enter(&task, &question, json!({ "answer": "later" })).await.expect_err("the first one counts");
        assert!(late.to_string().contains("already answered"), "{late}");
        assert_eq!(client.reply(&task).await, "now", "nobody but the task continues it");
    });
}

#[test]
fn nothing_is_allowed_that_the_dialog_did_not_show() {
    let world = World::with_hooks();
    let target = world.file("n", "before\n");
    world.file("root.md", "ask May I?\nreply {result}\n");
    world.spawn_paused("root.md");
    // Claude Code would ask for it, so the record is created here.
    let input = json!({ "file_path": target, "content": "after\n" });
    let kind = json!({ "permission": { "tool": "Write", "input": input } });
    world.database().execute("UPDATE requests SET detail = ?1", [kind.to_string()]).expect("it can be written");
    let task = world.run(&["ls", "--json"]).json()[0]["id"].as_str().unwrap().to_owned();
    run(async {
        let [_, lifecycle] = lifecycles();
        let client = Client::with_tasks(&world, lifecycle).await;
        let (shown, form) = client.form(&task).await;
        assert!(form.to_string().contains("allow"), "{form}");
        fs::write(&target, "something else\n").unwrap();
        let allow = || json!({ "decision": "allow" });
        let refused = client.enter(&task, &shown, allow()).await.expect_err("the dialog showed another change");
        assert!(refused.to_string().contains("has changed since it was shown"), "{refused}");
        let (id, _) = shown.split_once('.').expect("a digest of what is shown");
        client.enter(&task, id, allow()).await.expect_err("it does not say what was shown");
        let (now, _) = client.form(&task).await;
        assert_ne!(now, shown, "it is shown again");
        client.enter(&task, &now, allow()).await.expect("this is what was shown");
    });
}

#[test]
fn a_task_fails_is_cancelled_and_is_forgotten_as_its_chain() {
    let world = World::with_hooks();
    world.file("fails.md", "fail boom\n");
    world.file("waits.md", "ask When?\nreply {result}\n");
    run(async {
        let [_, lifecycle] = lifecycles();
        let client = Client::with_tasks(&world, lifecycle).await;
        let fails = client.spawn("fails.md").await;
        let failed = client.wait(&fails, |payload| matches!(payload, TaskPayload::Failed { .. })).await;
        let TaskPayload::Failed { error } = failed else { unreachable!() };
        assert!(error["message"].as_str().unwrap().contains("boom"), "{error:?}");
        let waits = client.spawn("waits.md").await;
        let (question, _) = client.form(&waits).await;
        client.enter(&fails, &question, json!({ "answer": "now" })).await.expect_err("it is another chain's question");
        client.service.peer().cancel_task(CancelTaskParams::new(&waits)).await.expect("it can be cancelled");
        client.wait(&waits, |payload| matches!(payload, TaskPayload::Cancelled)).await;
        world.run(&["rm", &waits, "--yes"]).succeeds();
        for unknown in [waits.as_str(), &waits[..8], "nonsense", question.as_str()] {
            let error = client.get(unknown).await.expect_err("there is no such task");
            assert!(error.to_string().contains("there is no chain"), "{error}");
        }
    });
}

#[test]
fn a_failed_chain_is_a_new_task_when_it_is_resumed() {
    let world = World::with_hooks();
    world.file("root.md", "once fail boom\nreply fine\n");
    run(async {
        let [_, lifecycle] = lifecycles();
        let client = Client::with_tasks(&world, lifecycle).await;
        let task = client.spawn("root.md").await;
        client.wait(&task, |payload| matches!(payload, TaskPayload::Failed { .. })).await;
        let CallToolResponse::Task(again) = client.call("resume", json!({ "id": task })).await else { panic!() };
        assert_eq!((again.task.task_id, again.task.status), (task.clone(), TaskStatus::Working));
        assert_eq!(client.reply(&task).await, "fine");
    });
}

#[test]
fn a_group_is_completed_with_the_replies_of_those_that_did_not_fail() {
    let world = World::with_hooks();
    world.file("good.md", "reply fine\n");
    world.file("bad.md", "fail boom\n");
    run(async {
        let [_, lifecycle] = lifecycles();
        let client = Client::with_tasks(&world, lifecycle).await;
        let called = client.call("spawn", json!({ "files": ["good.md", "bad.md"] })).await;
        let CallToolResponse::Task(created) = called else { panic!() };
        let replies = client.reply(&created.task.task_id).await;
        assert!(replies.contains("fine") && replies.contains("boom"), "{replies}");
    });
    assert_eq!(world.starts(), 2, "what has failed is left to people");
}

#[test]
fn a_client_without_tasks_is_told_how_to_go_on() {
    for lifecycle in lifecycles() {
        let world = World::with_hooks();
        world.file("root.md", "ask When?\nreply {result}\n");
        run(async {
            let client = Client::start(&world, lifecycle, ClientCapabilities::default()).await;
            let (said, _) = client.text("spawn", json!({ "files": ["root.md"], "name": "mine" })).await;
            assert!(said.starts_with("chain ") && said.contains("to check on it, call chains"), "{said}");
            client.get("mine").await.expect_err("a client without tasks has none");
            let mut questions = Vec::new();
            while questions.is_empty() {
                let (listed, _) = client.text("questions", json!({})).await;
                questions = serde_json::from_str::<Vec<Value>>(&listed).expect("a list");
            }
            assert_eq!(questions[0]["question"], "When?");
            let (said, is_error) = client.text("answer", json!({ "id": "mine", "answer": "now" })).await;
            assert!(!is_error && said.contains("recorded"), "{said}");
            let parsed = |listed: &str| serde_json::from_str::<Value>(listed).unwrap();
            while parsed(&client.text("chains", json!({ "all": true })).await.0)["chains"][0]["status"] != "done" {}
            let (agents, _) = client.text("tree", json!({ "id": "mine" })).await;
            assert_eq!(parsed(&agents)[0]["status"], "done");
            let (events, _) = client.text("logs", json!({ "id": "mine" })).await;
            assert!(events.contains("now"), "{events}");
            let (stopped, _) = client.text("stop", json!({ "id": "mine" })).await;
            assert!(stopped.contains("nothing"), "{stopped}");
            let (resumed, is_error) = client.text("resume", json!({ "id": "mine" })).await;
            assert!(!is_error && resumed.ends_with(" is done. Its reply:\nnow"), "{resumed}");
            assert_eq!(parsed(&client.text("chains", json!({ "all": true })).await.0)["more"], 0);
        });
    }
}

#[test]
fn a_client_learns_that_more_chains_exist() {
    let world = World::with_hooks();
    world.file("root.md", "reply done\n");
    for _ in 0..51 {
        world.run(&["spawn", "root.md"]).succeeds();
    }
    run(async {
        let [lifecycle, _] = lifecycles();
        let client = Client::with_tasks(&world, lifecycle).await;
        let listed: Value = serde_json::from_str(&client.text("chains", json!({ "all": true })).await.0).unwrap();
        assert_eq!((listed["chains"].as_array().map(Vec::len), &listed["more"]), (Some(50), &json!(1)));
    });
}

#[test]
fn what_a_client_gets_wrong_is_an_error_that_says_what_to_do() {
    let world = World::with_hooks();
    run(async {
        let [lifecycle, _] = lifecycles();
        let client = Client::with_tasks(&world, lifecycle).await;
        for (tool, arguments, expected) in [
            ("spawn", json!({}), "there are no instructions"),
            ("spawn", json!({ "files": ["missing.md"] }), "cannot read missing.md"),
            (
                "spawn",
                json!({ "prompt": "x", "permission_mode": "bypassPermissions" }),
                "unknown field `permission_mode`",
            ),
            ("tree", json!({ "id": "nothing" }), "hint: "),
            ("answer", json!({ "id": "nothing", "answer": 7 }), "invalid type"),
            ("nonsense", json!({}), "there is no tool nonsense"),
        ] {
            let (said, is_error) = client.text(tool, arguments).await;
            assert!(is_error && said.contains(expected), "{tool}: {said}");
        }
        assert_eq!(world.starts(), 0);
    });
}

#[test]
fn a_client_may_disconnect_at_any_time() {
    let world = World::with_hooks();
    for sent in ["", "half a li", "no JSON\n"] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(world.command(["mcp"]).reads(sent).run(), @"--- exit status: 0");
        }
    }
    assert!(!world.state().join("agent-cli.db").exists(), "nothing was needed");
}

#[test]
fn agents_cannot_continue_a_chain_as_the_server_does() {
    let world = World::with_hooks();
    world.file("root.md", "run agent-cli resume --unattended $AGENT_CLI_AGENT_ID 2>&1; true\nreply {result}\n");
    let outcome = world.run(&["spawn", "root.md"]);
    assert!(outcome.succeeds().stdout.contains("error: agents cannot resume all chains"), "{outcome}");
}

#[test]
fn agents_get_no_tools() {
    let mark = "00000000-0000-4000-8000-000000000000";
    for lifecycle in lifecycles() {
        let world = World::with_hooks().with("AGENT_CLI_AGENT_ID", mark).with("AGENT_CLI_ATTEMPT", mark);
        run(async {
            let client = Client::with_tasks(&world, lifecycle).await;
            assert_eq!(client.service.peer().list_all_tools().await.expect("it answers"), []);
            let params = CallToolRequestParams::new("chains");
            let refused = client.service.call_tool_once(params).await.expect_err("it is refused");
            assert!(refused.to_string().contains("agents of a chain use the command line"), "{refused}");
        });
    }
}
