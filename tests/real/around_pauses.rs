//! The same agent with and without pauses: the results of its calls.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::chain::Chain;
use crate::support::{Conversation, Item, MessagesApi, NEWEST, ToolCall, Turn};

/// A request, and its replacement in an agent that does not pause.
pub(crate) const ASK: &str = "agent-cli ask 'When?'";
const PLAIN: &str = "printf 'Jan 1st'";

/// The result of a tool: its content without Claude Code's own additions, and whether it is an error.
pub(crate) type Results = Vec<(String, String)>;

/// An agent that makes calls, message by message, and ends.
pub(crate) struct Agent<'a> {
    pub(crate) version: &'a str,
    pub(crate) messages: Vec<Vec<ToolCall>>,
    /// The initial content of the project.
    pub(crate) files: Vec<(&'a str, &'a str)>,
    /// Whether that is a git repository.
    pub(crate) in_repository: bool,
    /// Changes to it in each pause, as a shell script.
    pub(crate) while_waiting: &'a str,
}

impl Agent<'_> {
    /// The results of its calls if each request is one, and the agent pauses at it.
    pub(crate) fn pausing(&self) -> Results {
        let chain = self.chain(ASK);
        let arguments = ["spawn", "ins.md", "--permission-mode", "bypassPermissions", "--model", "claude-sonnet-4-5"];
        let root = chain.started(&arguments);
        let mut replied = String::new();
        while replied != "over\n" {
            let mut shell = chain.home.command("/bin/sh");
            assert!(shell.args(["-c", self.while_waiting]).status().unwrap().success());
            chain.answer("Jan 1st");
            replied = chain.ok(&["resume", &root]);
        }
        results(&chain)
    }

    /// The same when it does not pause.
    pub(crate) fn in_one_go(&self) -> Results {
        let chain = self.chain(&format!("{}; {PLAIN}", self.while_waiting));
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
        if self.in_repository {
            let make = "git init -q -b main . && git add . && git -c user.name=a -c user.email=a@b.c commit -q -m one";
            assert!(chain.home.command("/bin/sh").args(["-c", make]).status().unwrap().success());
        }
        chain
    }
}

/// The results of the calls, in order. A result must be the same in all later requests.
pub(crate) fn results(chain: &Chain) -> Results {
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

/// A tool with these calls, each at a separate place around two pauses. On the newest version some tools must be loaded first,
/// once.
pub(crate) fn around_pauses<'a>(version: &'a str, calls: [ToolCall; 5]) -> Agent<'a> {
    const OFFERED: [&str; 8] = ["Bash", "Edit", "ListAgents", "Read", "ReportFindings", "Skill", "ToolSearch", "Write"];
    let tool = calls[0].name.clone();
    let [first, beside, between, behind, last] = calls;
    let ask = || ToolCall::bash(ASK);
    let mut messages = vec![vec![first], vec![beside, ask()], vec![between], vec![ask(), behind], vec![last]];
    if !OFFERED.contains(&tool.as_str()) {
        messages.splice(0..0, load(version, &tool));
    }
    Agent { version, messages, files: Vec::new(), in_repository: false, while_waiting: "true" }
}

/// Loads a tool once, if necessary.
pub(crate) fn load(version: &str, tool: &str) -> Option<Vec<ToolCall>> {
    (version == NEWEST).then(|| vec![ToolCall::load(tool)])
}

/// The same call at each place.
pub(crate) fn five(name: &str, input: &Value) -> [ToolCall; 5] {
    std::array::from_fn(|_| ToolCall::new(name, input.clone()))
}

/// A pause does not change the results of calls, and none fails.
#[track_caller]
pub(crate) fn is_as_without(agent: &Agent<'_>) -> Results {
    let pausing = agent.pausing();
    assert_eq!(pausing, agent.in_one_go());
    pausing
}
