//! What an agent two levels deep has with Claude Code besides its conversation, when the chain continues elsewhere or after a pause:
//! tasks, a plan, a finished subagent, the journal of a workflow.

use std::fs;

use serde_json::json;

use crate::chain::{Chain, Said};
use crate::support::{
    Conversation, Item, MessagesApi, NEWEST, Turn, on_every_version, on_every_version_of_a_whole_run,
};

on_every_version!(a_finished_subagent_can_be_messaged,);

on_every_version_of_a_whole_run!(
    a_finished_workflow_is_resumed_from_its_journal,
    tasks_and_plan_are_there_when_the_state_directory_has_moved,
);

/// One of the models that are offered tools for tasks.
const MODEL: &str = "claude-sonnet-4-5-20250929";
/// The prompts of subagents.
const SUBTASK: &str = "look into everything";

/// A root that starts an agent, and replies with what that says. The agent has loaded `tools`, and takes these steps. Subagents
/// answer with a number: how often one was asked something.
fn chain(version: &'static str, tools: &'static str, steps: fn(&Conversation, usize) -> Turn) -> Chain {
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let model = move |said: &Conversation| {
        let first = said.user_texts().next().unwrap_or_default();
        if said.user_texts().any(|prompt| prompt.contains(SUBTASK)) {
            let number = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
            return Turn::text(format!("looked {number} times"));
        }
        let loaded = said.items().iter().any(|item| matches!(item, Item::Call { name, .. } if name == "ToolSearch"));
        match (first.contains("child.md"), said.last_result()) {
            (false, None) => Turn::bash("agent-cli spawn child.md"),
            (false, Some(reply)) => Turn::text(reply),
            (true, _) if version == NEWEST && !loaded => Turn::load(tools),
            (true, _) => steps(said, said.results_but_of_loading().len()),
        }
    };
    let chain = Chain::with_model(version, MessagesApi::start(model));
    chain.home.write("root.md", "Start an agent.\n");
    chain.home.write("child.md", "Do what you do.\n");
    chain
}

fn ask() -> Turn {
    Turn::bash("agent-cli ask 'Go?'")
}

/// The file in which Claude Code expects the plan.
fn plan_file(said: &Conversation) -> String {
    let all = format!("{} {}", said.context(), said.user_texts().collect::<Vec<_>>().join(" "));
    let path = all.split([' ', '\n', '`', '"', '(']).find(|word| word.contains("/.claude/plans/")).unwrap();
    format!("{}.md", path.split(".md").next().unwrap())
}

/// Claude Code has deleted all of them.
fn tasks_and_plan_are_there_when_the_state_directory_has_moved(version: &'static str) {
    let chain = chain(version, "TaskCreate,TaskUpdate,TaskList", |said, step| {
        let create = |subject: &str| Turn::call("TaskCreate", json!({"subject": subject, "description": "Do it."}));
        match step {
            0 => create("one"),
            1 => create("two"),
            2 => Turn::call("TaskUpdate", json!({"taskId": "1", "status": "in_progress"})),
            3 => Turn::call("Write", json!({"file_path": plan_file(said), "content": "# A plan\n"})),
            4 => ask(),
            5 => Turn::call("TaskList", json!({})),
            6 => create("three"),
            _ => Turn::text(said.results_but_of_loading()[5..].join("\n")),
        }
    });
    let root = chain.started(&["spawn", "root.md", "--model", MODEL, "--permission-mode", "plan"]);
    chain.answer("yes");
    let elsewhere = chain.home.home().join("else where").join("state");
    fs::create_dir(elsewhere.parent().unwrap()).unwrap();
    fs::rename(chain.state(), &elsewhere).unwrap();
    fs::remove_dir_all(chain.home.home().join(".claude")).unwrap();
    let run = |arguments: &[&str]| {
        Said::from(chain.command().args(arguments).env("AGENT_CLI_STATE_DIR", &elsewhere).output().unwrap())
    };
    let said = run(&["resume", &root]);
    assert_eq!(said.code, Some(0), "{said:?}");
    for line in ["#1 [in_progress] one", "#2 [pending] two", "Task #3 created"] {
        assert!(said.out.contains(line), "{said:?}");
    }
    let plans = fs::read_dir(chain.home.home().join(".claude/plans")).unwrap().flatten();
    let plans: Vec<_> = plans.map(|plan| fs::read_to_string(plan.path()).unwrap()).collect();
    assert_eq!(plans, ["# A plan\n"]);
    let checked = run(&["fsck"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(!chain.state().exists());
}

/// What Claude Code has reported about finished background work.
fn notifications(said: &Conversation) -> Vec<String> {
    let all = format!("{} {}", said.context(), said.user_texts().collect::<Vec<_>>().join(" "));
    all.split("<task-notification>").skip(1).map(str::to_owned).collect()
}

/// The word after a mark in a text.
fn after<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.split_once(mark)?.1.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-').next()
}

fn a_finished_subagent_can_be_messaged(version: &'static str) {
    let chain = chain(version, "SendMessage", |said, step| {
        let id = || {
            said.results_but_of_loading()
                .iter()
                .find_map(|text| after(text, "agentId: "))
                .unwrap_or_default()
                .to_owned()
        };
        match step {
            0 => {
                let kind = json!({"description": "x", "prompt": SUBTASK, "subagent_type": "general-purpose",
                    "run_in_background": false});
                Turn::call("Agent", kind)
            }
            1 => ask(),
            2 => Turn::call("SendMessage", json!({"to": id(), "summary": "more", "message": "say more"})),
            _ => Turn::text(notifications(said).pop().unwrap_or_else(|| "it is asked".to_owned())),
        }
    });
    let root = chain.started(&["spawn", "root.md", "--permission-mode", "bypassPermissions"]);
    chain.answer("yes");
    let said = chain.ok(&["resume", &root]);
    assert!(said.contains("looked 2 times"), "{said}");
    let mut requests = chain.api.requests().into_iter().map(|request| request.conversation());
    let more = requests.find(|said| said.user_texts().any(|text| text.contains("say more"))).unwrap();
    assert!(more.user_texts().any(|text| text.contains(SUBTASK)), "it is the same one: {more:?}");
}

fn a_finished_workflow_is_resumed_from_its_journal(version: &'static str) {
    const SCRIPT: &str = "export const meta = {name: 'w', description: 'd', phases: [{title: 'P'}]}\n\
        return await agent('look into everything', {label: 'x'})\n";
    let chain = chain(version, "Workflow", |said, step| {
        let mut over = notifications(said);
        let run = || {
            said.results_but_of_loading().iter().find_map(|text| after(text, "Run ID: ")).unwrap_or_default().to_owned()
        };
        match (step, over.len()) {
            (0, _) => Turn::call("Workflow", json!({"script": SCRIPT})),
            (1, 0) => Turn::text("it runs"),
            (1, _) => ask(),
            (2, _) => Turn::call("Workflow", json!({"script": SCRIPT, "resumeFromRunId": run()})),
            (_, 1) => Turn::text("it runs again"),
            _ => Turn::text(over.pop().unwrap_or_default()),
        }
    });
    let root = chain.started(&["spawn", "root.md", "--permission-mode", "bypassPermissions"]);
    chain.answer("yes");
    let said = chain.ok(&["resume", &root]);
    assert!(said.contains("looked 1 times"), "{said}");
}
