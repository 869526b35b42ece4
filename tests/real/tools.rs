//! What a pause does to each tool that Claude Code offers an agent. The table in `docs/claude-code.md` names these tests.
//!
//! A tool that a pause does nothing to is called before a pause, in the message of a request before it and behind it, and after
//! pauses. What it returns is what it returns to the same agent that does not pause, and stays in the conversation to the byte.

use serde_json::{Value, json};

use crate::around_pauses::{ASK, Agent, Results, around_pauses, five, is_as_without, load, results};
use crate::chain::Chain;
use crate::support::{
    Conversation, MessagesApi, NEWEST, OLDER, ToolCall, Turn, on_every_version, on_every_version_of_a_whole_run,
    on_the_newest_version,
};

on_every_version!(bash, read, skill, task_stop);

on_every_version_of_a_whole_run!(
    a_file_that_changes_in_a_pause_is_not_changed_blindly, enter_worktree, write, edit, tasks, a_file_is_read_again,
    notebook_edit, report_findings, web_fetch, web_search, send_message
);

on_the_newest_version!(tool_search, list_agents,);

fn bash(version: &str) {
    let commands = ["echo one", "printf 'two\\n\\n'", "printf '%s' '<b> & \"ü\"'", "seq 3", "exit 3"];
    let results = is_as_without(&around_pauses(version, commands.map(ToolCall::bash)));
    assert_eq!(results[0].0, "one");
}

fn read(version: &str) {
    let calls =
        ["a.txt", "b.txt", "c.txt", "d.txt", "e.txt"].map(|name| ToolCall::new("Read", json!({"file_path": name})));
    let files = vec![("a.txt", "a\n"), ("b.txt", "b\n"), ("c.txt", "c\n"), ("d.txt", "d\n"), ("e.txt", "e\n")];
    let results = is_as_without(&Agent { files, ..around_pauses(version, calls) });
    assert!(results[6].0.contains('e'), "{results:?}");
}

fn of_file(name: &str, more: &Value) -> Vec<ToolCall> {
    let mut input = json!({"file_path": "a.txt"});
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    vec![ToolCall::new(name, input)]
}

/// 2.1.197 does not read an unchanged file again; after a pause it does.
fn a_file_is_read_again(version: &str) {
    for (while_waiting, now) in
        [("true", "one"), ("printf 'two\\n' > a.txt", "two"), ("printf 'another\\n' > a.txt", "another")]
    {
        let messages = vec![of_file("Read", &json!({})), vec![ToolCall::bash(ASK)], of_file("Read", &json!({}))];
        let results =
            Agent { version, messages, files: vec![("a.txt", "one\n")], in_repository: false, while_waiting }.pausing();
        assert_eq!(
            (&results[2].0, results[2].1.as_str()),
            (&results[0].0.replace("one", now), "false"),
            "{version}: {while_waiting}"
        );
    }
}

/// From 2.1.330 on the result of an Edit says whether the agent has the whole file before it, and after a pause it does not.
fn edit(version: &str) {
    const NOTE: &str = " (file state is current in your context — no need to Read it back)";
    let edit = |old: &str, new: &str| {
        ToolCall::new("Edit", json!({"file_path": "a.txt", "old_string": old, "new_string": new}))
    };
    let calls = [("1", "2"), ("2", "3"), ("3", "4"), ("4", "5"), ("5", "6")].map(|(old, new)| edit(old, new));
    let mut agent = around_pauses(version, calls);
    agent.messages.insert(0, of_file("Read", &json!({})));
    let agent = Agent { files: vec![("a.txt", "1\n")], ..agent };
    let noteless = |results: Results| -> Results {
        results.into_iter().map(|(text, is_error)| (text.replace(NOTE, ""), is_error)).collect()
    };
    let results = noteless(agent.pausing());
    assert_eq!(results, noteless(agent.in_one_go()));
    assert!(results.iter().all(|(_, is_error)| is_error == "false"), "{results:?}");
}

fn a_file_that_changes_in_a_pause_is_not_changed_blindly(version: &str) {
    let edit = |old: &str, new: &str| of_file("Edit", &json!({"old_string": old, "new_string": new}));
    for changing in [edit("one", "two"), of_file("Write", &json!({"content": "x"}))] {
        let read = || of_file("Read", &json!({}));
        let messages = vec![read(), vec![ToolCall::bash(ASK)], changing, read(), edit("more", "most")];
        let files = vec![("a.txt", "one\n")];
        let results = is_as_without(&Agent {
            version,
            messages,
            files,
            in_repository: false,
            while_waiting: "printf 'one more\\n' > a.txt",
        });
        // From 2.1.330 on an Edit that fits all the same is made, with a note that the agent has not seen all of the file.
        let changed =
            ["File has been modified since read", "the file had been modified on disk since you last read it"];
        assert!(changed.iter().any(|words| results[2].0.contains(words)), "{results:?}");
    }
}

fn write(version: &str) {
    let write = |name: &str, text: &str| ToolCall::new("Write", json!({"file_path": name, "content": text}));
    let calls = [write("a", "1"), write("a", "2"), write("a", "3"), write("b", "1"), write("a", "4")];
    let results = is_as_without(&around_pauses(version, calls));
    assert!(results.iter().all(|(_, is_error)| is_error == "false"), "{results:?}");
}

const NOTEBOOK: &str = r#"{"cells":[{"id":"c1","cell_type":"code","source":["1"],"metadata":{},"outputs":[],"execution_count":null}],
    "metadata":{"language_info":{"name":"python"}},"nbformat":4,"nbformat_minor":5}"#;

/// Of notebooks a resumed Claude Code does not know that they were read.
fn notebook_edit(version: &str) {
    let edit = |text: &str| {
        vec![ToolCall::new("NotebookEdit", json!({"notebook_path": "a.ipynb", "cell_id": "c1", "new_source": text}))]
    };
    let read = || vec![ToolCall::new("Read", json!({"file_path": "a.ipynb"}))];
    let ask = || vec![ToolCall::bash(ASK)];
    let mut messages = vec![read(), edit("2"), ask(), edit("3"), read(), edit("4"), edit("5")];
    messages.splice(0..0, load(version, "NotebookEdit"));
    let results =
        Agent { version, messages, files: vec![("a.ipynb", NOTEBOOK)], in_repository: false, while_waiting: "true" }
            .pausing();
    let results: Vec<_> = results.iter().rev().take(6).rev().map(|(text, _)| text.as_str()).collect();
    let [edited, _, unread, read_again, later, last] = results.as_slice() else { panic!("{results:?}") };
    assert_eq!(
        (*edited, *later, *last),
        ("Updated cell c1 with 2", "Updated cell c1 with 4", "Updated cell c1 with 5")
    );
    assert!(unread.contains("File has not been read yet. Read it first before writing to it."), "{unread}");
    assert!(read_again.contains('2'), "{read_again}");
}

fn skill(version: &str) {
    let agent = around_pauses(version, five("Skill", &json!({"skill": "greet"})));
    let text = "---\nname: greet\ndescription: Greets.\n---\nSay hello.\n";
    let results = is_as_without(&Agent { files: vec![(".claude/skills/greet/SKILL.md", text)], ..agent });
    assert_eq!(results[6], ("Launching skill: greet".into(), "false".into()));
}

fn report_findings(version: &str) {
    let finding = json!({"file": "a.rs", "line": 1, "summary": "It is wrong.", "failure_scenario": "x"});
    let results = is_as_without(&around_pauses(version, five("ReportFindings", &json!({"findings": [finding]}))));
    assert!(results[0].0.starts_with("1 finding"), "{results:?}");
}

/// There is no network: Claude Code cannot ask whether the address is safe, before a pause or after.
fn web_fetch(version: &str) {
    let input = json!({"url": "http://127.0.0.1:9/", "prompt": "What is it?"});
    let results = is_as_without(&around_pauses(version, five("WebFetch", &input)));
    assert!(results.last().unwrap().0.starts_with("Unable to verify if domain"), "{results:?}");
}

/// The search is a request of its own to the API, which is scripted here.
fn web_search(version: &str) {
    let results = is_as_without(&around_pauses(version, five("WebSearch", &json!({"query": "who is it"}))));
    assert!(results.last().unwrap().0.contains("what was found"), "{results:?}");
}

/// What was loaded stays loaded, and what was not can be.
fn tool_search() {
    let tools = ["CronList", "WebFetch", "WebSearch", "NotebookEdit", "TaskList"];
    let results = is_as_without(&around_pauses(NEWEST, tools.map(ToolCall::load)));
    for ((loaded, _), tool) in results.iter().filter(|(text, _)| text != "Jan 1st").zip(tools) {
        assert!(loaded.contains(&format!("\"tool_name\":\"{tool}\"")), "{results:?}");
    }
    let [first, beside, between, behind, last] = ["CronList", "TaskList", "CronList", "TaskList", "CronList"];
    let use_of = |name: &str| ToolCall::new(name, json!({}));
    let mut agent = around_pauses(NEWEST, [first, beside, between, behind, last].map(use_of));
    agent.messages.splice(0..1, [vec![ToolCall::load("CronList,TaskList")]]);
    is_as_without(&agent);
}

/// Other sessions of the user, and how they would name this one.
fn list_agents() {
    let agent = around_pauses(NEWEST, five("ListAgents", &json!({})));
    let pausing = agent.pausing();
    let nameless = |results: &Results| -> Results {
        let rest = |text: &str| text.split_once(" — ").map_or(text, |(_, rest)| rest).to_owned();
        results.iter().map(|(text, is_error)| (rest(text), is_error.clone())).collect()
    };
    assert_eq!(nameless(&pausing), nameless(&agent.in_one_go()));
    assert!(pausing[0].0.starts_with("This session is project-"), "{pausing:?}");
}

/// A list of tasks continues unchanged.
fn tasks(version: &str) {
    let create = |subject: &str| ToolCall::new("TaskCreate", json!({"subject": subject, "description": "Do it."}));
    let update = |id: &str, status: &str| ToolCall::new("TaskUpdate", json!({"taskId": id, "status": status}));
    let ask = || ToolCall::bash(ASK);
    let mut messages = vec![
        vec![create("one")],
        vec![create("two")],
        vec![update("1", "in_progress"), ask()],
        vec![ToolCall::new("TaskList", json!({}))],
        vec![ask(), update("1", "completed")],
        vec![create("three")],
        vec![ToolCall::new("TaskGet", json!({"taskId": "2"}))],
        vec![ToolCall::new("TaskList", json!({}))],
    ];
    messages.splice(0..0, load(version, "TaskCreate,TaskUpdate,TaskList,TaskGet"));
    let agent = Agent { version, messages, files: Vec::new(), in_repository: false, while_waiting: "true" };
    let results = is_as_without(&agent);
    assert_eq!(results.last().unwrap().0, "#1 [completed] one\n#2 [pending] two\n#3 [pending] three");
}

/// The shell is in the worktree that the agent has entered, on its branch and in a folder of it, and so are files without a folder.
fn enter_worktree(version: &str) {
    let ask = || ToolCall::bash(ASK);
    let place = || ToolCall::bash("pwd; git branch --show-current; ls");
    let write = |name: &str| ToolCall::new("Write", json!({"file_path": name, "content": "x"}));
    let mut messages = vec![
        vec![ToolCall::new("EnterWorktree", json!({"name": "away"})), ask()],
        vec![write("first"), place()],
        vec![ToolCall::bash("mkdir -p sub && cd sub")],
        vec![place(), ask()],
        vec![write("second"), place()],
    ];
    messages.splice(0..0, load(version, "EnterWorktree"));
    let results =
        is_as_without(&Agent { version, messages, files: Vec::new(), in_repository: true, while_waiting: "true" });
    let place = results.last().unwrap().0.as_str();
    assert!(place.starts_with("HOME/project/.claude/worktrees/away/sub\nworktree-away\n"), "{results:?}");
}

/// What ran in the background was ended by the pause: there is nothing to stop, or to read from.
fn task_stop(version: &'static str) {
    let model = move |said: &Conversation| {
        let results = said.result_texts();
        let started = results.iter().position(|text| text.contains("running in background"));
        let id = || {
            let (_, rest) = results[started.unwrap()].split_once("with ID: ").unwrap();
            rest.split(|c: char| !c.is_alphanumeric()).next().unwrap()
        };
        match (started, results.len() - started.unwrap_or_default()) {
            (None, 0) if version == NEWEST => {
                load(version, "TaskStop").unwrap().into_iter().fold(Turn::default(), Turn::and)
            }
            (None, _) => Turn::call("Bash", json!({"command": "exec sleep 100000", "run_in_background": true})),
            (_, 1) => Turn::bash(ASK),
            (_, 2) => Turn::call("TaskStop", json!({"task_id": id()})),
            (_, 3) if version == OLDER => {
                Turn::call("TaskOutput", json!({"task_id": id(), "block": false, "timeout": 1000}))
            }
            _ => Turn::text("over"),
        }
    };
    let chain = Chain::with_model(version, MessagesApi::start(model));
    chain.home.write("ins.md", "Do what the model does.");
    let root = chain.started(&["spawn", "ins.md", "--permission-mode", "bypassPermissions"]);
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &root]), "over\n");
    let results = results(&chain);
    let behind = results.iter().position(|(text, _)| text == "Jan 1st").unwrap() + 1;
    assert_eq!(results.len() - behind, if version == OLDER { 2 } else { 1 });
    for (text, is_error) in &results[behind..] {
        assert!(text.contains("No task found with ID: ") && is_error == "true", "{results:?}");
    }
}

/// A subagent that has finished is there after a pause.
fn send_message(version: &'static str) {
    let model = move |said: &Conversation| {
        let is_agent = said.task().contains("ins.md");
        let results = said.result_texts();
        let after = results.iter().position(|text| text.contains("agentId: "));
        let id = || {
            let (_, rest) = results[after.unwrap()].split_once("agentId: ").unwrap();
            rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap()
        };
        match (is_agent, after, results.len() - after.unwrap_or_default()) {
            (false, ..) => Turn::text("hello"),
            (true, None, 0) if version == NEWEST => {
                load(version, "SendMessage").unwrap().into_iter().fold(Turn::default(), Turn::and)
            }
            (true, None, _) => {
                let input = json!({"description": "greet", "prompt": "say hello", "subagent_type": "general-purpose"});
                Turn::call("Agent", input)
            }
            // It has finished by then.
            (true, _, 1) => Turn::bash("for i in 1 2 3; do sleep 1; done; echo waited"),
            (true, _, 2) => Turn::bash(ASK),
            (true, _, 3) => Turn::call("SendMessage", json!({"to": id(), "summary": "more", "message": "say more"})),
            _ => Turn::text("over"),
        }
    };
    let chain = Chain::with_model(version, MessagesApi::start(model));
    chain.home.write("ins.md", "Do what the model does.");
    let root = chain.started(&["spawn", "ins.md", "--permission-mode", "bypassPermissions"]);
    chain.answer("Jan 1st");
    assert_eq!(chain.ok(&["resume", &root]), "over\n");
    let results = results(&chain);
    assert!(results.last().unwrap().0.contains("\"success\":true"), "{results:?}");
}
