//! What a pause does to each tool that Claude Code offers an agent.
//!
//! A tool that a pause does nothing to is called before a pause, in the message of a request before it and behind it, and after
//! pauses. What it returns is what it returns to the same agent that does not pause, and stays in the conversation to the byte.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::chain::Chain;
use crate::support::{Conversation, Item, MessagesApi, NEWEST, ToolCall, Turn};

/// Runs a fact on both versions.
macro_rules! on_both_versions {
    ($($fact:ident),+ $(,)?) => {
        mod newest { $(#[test] fn $fact() { super::$fact(crate::support::NEWEST); })+ }
        mod older { $(#[test] fn $fact() { super::$fact(crate::support::OLDER); })+ }
    };
}

on_both_versions!(
    bash,
    read,
    a_file_is_read_again,
    edit,
    a_file_that_changes_in_a_pause_is_not_changed_blindly,
    write,
    notebook_edit,
    skill,
    report_findings,
    web_fetch,
    web_search,
);

/// A request, and what takes its place in an agent that does not pause.
const ASK: &str = "agent-cli ask 'When?'";
const PLAIN: &str = "printf 'Jan 1st'";

/// What a tool returned: its content without what Claude Code adds to it of its own accord, and whether it is an error.
type Results = Vec<(String, String)>;

/// An agent that makes calls, message by message, and is over.
struct Agent<'a> {
    version: &'a str,
    messages: Vec<Vec<ToolCall>>,
    /// What is in the project at first.
    files: Vec<(&'a str, &'a str)>,
    /// What becomes of it in each pause, as a shell script.
    meanwhile: &'a str,
}

impl Agent<'_> {
    /// What its calls return when each request is one, and the agent pauses at it.
    fn pausing(&self) -> Results {
        let chain = self.chain(ASK);
        let arguments = ["spawn", "ins.md", "--permission-mode", "bypassPermissions", "--model", "claude-sonnet-4-5"];
        let root = chain.started(&arguments);
        let mut replied = String::new();
        while replied != "over\n" {
            let mut shell = chain.home.command("/bin/sh");
            assert!(shell.args(["-c", self.meanwhile]).status().unwrap().success());
            chain.answer("Jan 1st");
            replied = chain.ok(&["resume", &root]);
        }
        results(&chain)
    }

    /// The same when it does not pause.
    fn in_one_go(&self) -> Results {
        let chain = self.chain(&format!("{}; {PLAIN}", self.meanwhile));
        let arguments = ["spawn", "ins.md", "--permission-mode", "bypassPermissions", "--model", "claude-sonnet-4-5"];
        assert_eq!(chain.ok(&arguments), "over\n");
        results(&chain)
    }

    fn chain(&self, request: &str) -> Chain {
        let messages = self.messages.clone();
        let request = request.to_owned();
        let model = move |said: &Conversation| {
            // A tool that has a model look at something asks it with another prompt.
            if !matches!(said.items().first(), Some(Item::User(text)) if text.contains("ins.md")) {
                return Turn::text("what was found");
            }
            let mut made = said.items().iter().filter(|item| matches!(item, Item::Call { .. })).count();
            for message in &messages {
                if made == 0 {
                    let with_request = |call: &ToolCall| match call.input["command"] == ASK {
                        true => ToolCall::bash(&request),
                        false => call.clone(),
                    };
                    return message.iter().map(with_request).fold(Turn::default(), Turn::and);
                }
                made = made.saturating_sub(message.len());
            }
            Turn::text("over")
        };
        let chain = Chain::with_model(self.version, MessagesApi::start(model));
        chain.home.write("ins.md", "Do what the model does.");
        for (name, text) in &self.files {
            chain.home.write(name, text);
        }
        chain
    }
}

/// What the calls have returned, in their order. What a request says of one, all later requests say, too.
fn results(chain: &Chain) -> Results {
    let mut first: BTreeMap<String, (String, String)> = BTreeMap::new();
    let mut order = Vec::new();
    let home = chain.home.home().display().to_string();
    for request in chain.api.requests() {
        let is_own = request
            .conversation()
            .items()
            .first()
            .is_some_and(|item| matches!(item, Item::User(text) if text.contains("ins.md")));
        for message in request.body["messages"].as_array().into_iter().flatten().filter(|_| is_own) {
            for block in message["content"].as_array().into_iter().flatten() {
                if block["type"] == "tool_use" {
                    let id = block["id"].as_str().unwrap().to_owned();
                    if !order.contains(&id) {
                        order.push(id);
                    }
                }
                if block["type"] == "tool_result" {
                    let content = without_reminders(&block["content"]).replace(&home, "HOME");
                    let result = (content, block["is_error"].as_bool().unwrap_or_default().to_string());
                    let known = first.entry(block["tool_use_id"].as_str().unwrap().to_owned());
                    assert_eq!(*known.or_insert_with(|| result.clone()), result);
                }
            }
        }
    }
    order.iter().map(|id| first.remove(id).unwrap_or_else(|| panic!("{id} has no result"))).collect()
}

/// A content as text, without reminders.
fn without_reminders(content: &Value) -> String {
    let block = |block: &Value| block["text"].as_str().map_or_else(|| block.to_string(), str::to_owned);
    let text = match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(block).collect::<Vec<_>>().join("\n"),
        other => other.to_string(),
    };
    let mut rest = text.as_str();
    let mut said = String::new();
    while let Some((before, after)) = rest.split_once("<system-reminder>") {
        said.push_str(before);
        rest = after.split_once("</system-reminder>").map_or("", |(_, rest)| rest);
    }
    (said + rest).trim_end().to_owned()
}

fn call(name: &str, input: Value) -> ToolCall {
    ToolCall { name: name.to_owned(), input }
}

/// A tool whose calls these are, each with a place of its own around two pauses. On the newest version some have to be loaded
/// first, once.
fn around_pauses<'a>(version: &'a str, calls: [ToolCall; 5]) -> Agent<'a> {
    const OFFERED: [&str; 8] = ["Bash", "Edit", "ListAgents", "Read", "ReportFindings", "Skill", "ToolSearch", "Write"];
    let tool = calls[0].name.clone();
    let [first, beside, between, behind, last] = calls;
    let ask = || ToolCall::bash(ASK);
    let mut messages = vec![vec![first], vec![beside, ask()], vec![between], vec![ask(), behind], vec![last]];
    if !OFFERED.contains(&tool.as_str()) {
        messages.splice(0..0, load(version, &tool));
    }
    Agent { version, messages, files: Vec::new(), meanwhile: "true" }
}

/// Loads a tool, once, where it has to be.
fn load(version: &str, tool: &str) -> Option<Vec<ToolCall>> {
    let search = || vec![call("ToolSearch", json!({"query": format!("select:{tool}"), "max_results": 5}))];
    (version == NEWEST).then(search)
}

/// The same call at each place.
fn five(name: &str, input: &Value) -> [ToolCall; 5] {
    std::array::from_fn(|_| call(name, input.clone()))
}

/// A pause changes nothing of what the calls return, and none fails.
#[track_caller]
fn is_as_without(agent: &Agent<'_>) -> Results {
    let pausing = agent.pausing();
    assert_eq!(pausing, agent.in_one_go());
    pausing
}

fn bash(version: &str) {
    let commands = ["echo one", "printf 'two\\n\\n'", "printf '%s' '<b> & \"ü\"'", "seq 3", "exit 3"];
    let results = is_as_without(&around_pauses(version, commands.map(ToolCall::bash)));
    assert_eq!(results[0].0, "one");
}

fn read(version: &str) {
    let calls = ["a.txt", "b.txt", "c.txt", "d.txt", "e.txt"].map(|name| call("Read", json!({"file_path": name})));
    let files = vec![("a.txt", "a\n"), ("b.txt", "b\n"), ("c.txt", "c\n"), ("d.txt", "d\n"), ("e.txt", "e\n")];
    let results = is_as_without(&Agent { files, ..around_pauses(version, calls) });
    assert!(results[6].0.contains('e'), "{results:?}");
}

fn of_file(name: &str, more: Value) -> Vec<ToolCall> {
    let mut input = json!({"file_path": "a.txt"});
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    vec![call(name, input)]
}

/// 2.1.197 does not read an unchanged file again; after a pause it does.
fn a_file_is_read_again(version: &str) {
    for (meanwhile, now) in
        [("true", "one"), ("printf 'two\\n' > a.txt", "two"), ("printf 'another\\n' > a.txt", "another")]
    {
        let messages = vec![of_file("Read", json!({})), vec![ToolCall::bash(ASK)], of_file("Read", json!({}))];
        let results = Agent { version, messages, files: vec![("a.txt", "one\n")], meanwhile }.pausing();
        assert_eq!(
            (&results[2].0, results[2].1.as_str()),
            (&results[0].0.replace("one", now), "false"),
            "{version}: {meanwhile}"
        );
    }
}

/// From 2.1.330 on the result of an Edit says whether the agent has the whole file before it, and after a pause it does not.
fn edit(version: &str) {
    const NOTE: &str = " (file state is current in your context — no need to Read it back)";
    let edit = |old: &str, new: &str| call("Edit", json!({"file_path": "a.txt", "old_string": old, "new_string": new}));
    let calls = [("1", "2"), ("2", "3"), ("3", "4"), ("4", "5"), ("5", "6")].map(|(old, new)| edit(old, new));
    let mut agent = around_pauses(version, calls);
    agent.messages.insert(0, of_file("Read", json!({})));
    let agent = Agent { files: vec![("a.txt", "1\n")], ..agent };
    let noteless = |results: Results| -> Results {
        results.into_iter().map(|(text, is_error)| (text.replace(NOTE, ""), is_error)).collect()
    };
    let results = noteless(agent.pausing());
    assert_eq!(results, noteless(agent.in_one_go()));
    assert!(results.iter().all(|(_, is_error)| is_error == "false"), "{results:?}");
}

fn a_file_that_changes_in_a_pause_is_not_changed_blindly(version: &str) {
    let edit = |old: &str, new: &str| of_file("Edit", json!({"old_string": old, "new_string": new}));
    for changing in [edit("one", "two"), of_file("Write", json!({"content": "x"}))] {
        let read = || of_file("Read", json!({}));
        let messages = vec![read(), vec![ToolCall::bash(ASK)], changing, read(), edit("more", "most")];
        let files = vec![("a.txt", "one\n")];
        let results = is_as_without(&Agent { version, messages, files, meanwhile: "printf 'one more\\n' > a.txt" });
        // From 2.1.330 on an Edit that fits all the same is made, with a note that the agent has not seen all of the file.
        let changed =
            ["File has been modified since read", "the file had been modified on disk since you last read it"];
        assert!(changed.iter().any(|words| results[2].0.contains(words)), "{results:?}");
    }
}

fn write(version: &str) {
    let write = |name: &str, text: &str| call("Write", json!({"file_path": name, "content": text}));
    let calls = [write("a", "1"), write("a", "2"), write("a", "3"), write("b", "1"), write("a", "4")];
    let results = is_as_without(&around_pauses(version, calls));
    assert!(results.iter().all(|(_, is_error)| is_error == "false"), "{results:?}");
}

const NOTEBOOK: &str = r#"{"cells":[{"id":"c1","cell_type":"code","source":["1"],"metadata":{},"outputs":[],"execution_count":null}],
    "metadata":{"language_info":{"name":"python"}},"nbformat":4,"nbformat_minor":5}"#;

/// Of notebooks a resumed Claude Code does not know that they were read.
fn notebook_edit(version: &str) {
    let edit = |text: &str| {
        vec![call("NotebookEdit", json!({"notebook_path": "a.ipynb", "cell_id": "c1", "new_source": text}))]
    };
    let read = || vec![call("Read", json!({"file_path": "a.ipynb"}))];
    let ask = || vec![ToolCall::bash(ASK)];
    let mut messages = vec![read(), edit("2"), ask(), edit("3"), read(), edit("4"), edit("5")];
    messages.splice(0..0, load(version, "NotebookEdit"));
    let results = Agent { version, messages, files: vec![("a.ipynb", NOTEBOOK)], meanwhile: "true" }.pausing();
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
#[test]
fn tool_search() {
    let search = |tool: &str| call("ToolSearch", json!({"query": format!("select:{tool}"), "max_results": 5}));
    let tools = ["CronList", "WebFetch", "WebSearch", "NotebookEdit", "TaskList"];
    let results = is_as_without(&around_pauses(NEWEST, tools.map(search)));
    for ((loaded, _), tool) in results.iter().filter(|(text, _)| text != "Jan 1st").zip(tools) {
        assert!(loaded.contains(&format!("\"tool_name\":\"{tool}\"")), "{results:?}");
    }
    let [first, beside, between, behind, last] = ["CronList", "TaskList", "CronList", "TaskList", "CronList"];
    let use_of = |name: &str| call(name, json!({}));
    let mut agent = around_pauses(NEWEST, [first, beside, between, behind, last].map(use_of));
    agent.messages.splice(0..1, [vec![search("CronList,TaskList")]]);
    is_as_without(&agent);
}

/// Other sessions of the user, and how they would name this one.
#[test]
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
