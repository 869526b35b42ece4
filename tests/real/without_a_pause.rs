//! What an agent that paused is sent, against what it is sent if the same call merely returns: the whole request, system prompt,
//! tools and messages. `docs/protocol.md` has what differs.

use serde_json::{Value, json};

use crate::chain::Chain;
use crate::support::{Conversation, Item, MessagesApi, NEWEST, ToolCall, Turn};

/// What an agent waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pause {
    Answer,
    Reply,
    File,
    Approval,
}

/// One of the models that are offered tools for tasks, and one that is not.
const MODELS: [&str; 2] = ["claude-sonnet-4-5", "claude-opus-4-8"];
const NEEDS_APPROVAL: &str = "touch approved";
const SKILL: &str = "---\nname: greet\ndescription: Greets.\n---\nSay hello.\n";

impl Pause {
    fn command(self) -> &'static str {
        match self {
            Self::Answer => "agent-cli ask 'When?'",
            Self::Reply => "agent-cli spawn child.md",
            Self::File => "agent-cli wait --file ready",
            Self::Approval => NEEDS_APPROVAL,
        }
    }

    /// What runs in place of the call in an agent that does not pause.
    fn plain(self) -> &'static str {
        if self == Self::Approval { NEEDS_APPROVAL } else { "echo so" }
    }

    fn options(self, pauses: bool) -> Vec<&'static str> {
        match (self, pauses) {
            (Self::Approval, true) => vec!["--on-permission", "ask", "--", "--allowedTools=Write,Skill,Agent"],
            (Self::Approval, false) => vec!["--", "--allowedTools=Write,Skill,Agent,Bash(touch approved)"],
            _ => vec!["--permission-mode", "bypassPermissions"],
        }
    }

    /// Brings about what the agent waits for.
    fn end(self, chain: &Chain) {
        match self {
            Self::Answer => chain.answer("Jan 1st"),
            Self::File => drop(chain.home.write("ready", "")),
            Self::Approval => chain.answer("allow"),
            Self::Reply => {}
        }
    }
}

/// The calls beside the one that pauses.
fn tools(model: &str) -> Vec<ToolCall> {
    let agent = json!({"description": "looks", "prompt": "look", "subagent_type": "general-purpose",
        "run_in_background": false});
    let task = json!({"subject": "one", "description": "Do it."});
    let mut tools = vec![
        ("Read", json!({"file_path": "notes"})),
        ("Bash", json!({"command": "echo beside", "description": "Run a command"})),
        ("Write", json!({"file_path": "made", "content": "x"})),
        ("Skill", json!({"skill": "greet"})),
        ("Agent", agent),
    ];
    if model == MODELS[0] {
        tools.push(("TaskCreate", task));
    }
    tools.into_iter().map(|(name, input)| ToolCall::new(name, input)).collect()
}

/// What is sent at last to an agent that makes these calls, message by message, and is over.
fn sent(model: &'static str, pause: Pause, pauses: bool, messages: &[Vec<ToolCall>]) -> Value {
    let script = messages.to_vec();
    let api = MessagesApi::start(move |said: &Conversation| {
        if !is_of_root(said) {
            return Turn::text("what was found");
        }
        let mut made = said.calls().count();
        for message in &script {
            if made == 0 {
                return message.iter().cloned().fold(Turn::default(), Turn::and);
            }
            made = made.saturating_sub(message.len());
        }
        Turn::text("over")
    });
    let chain = Chain::with_model(NEWEST, api);
    let files =
        [("ins.md", "Do it."), ("child.md", "Reply."), ("notes", "one\n"), (".claude/skills/greet/SKILL.md", SKILL)];
    for (name, text) in files {
        chain.home.write(name, text);
    }
    let arguments: Vec<_> = ["spawn", "ins.md", "--model", model].into_iter().chain(pause.options(pauses)).collect();
    if pauses && pause != Pause::Reply {
        let root = chain.started(&arguments);
        pause.end(&chain);
        assert_eq!(chain.ok(&["resume", &root]), "over\n");
    } else {
        assert_eq!(chain.ok(&arguments), "over\n");
    }
    let of_root = chain.api.requests().into_iter().rev().find(|request| is_of_root(&request.conversation()));
    let body = of_root.unwrap().body;
    let own = if pauses { pause.command() } else { pause.plain() };
    comparable(&json!({"system": body["system"], "tools": body["tools"], "messages": body["messages"]}), &chain, own)
}

fn is_of_root(said: &Conversation) -> bool {
    matches!(said.items().first(), Some(Item::User(text)) if text.contains("ins.md"))
}

/// A request without what differs between any two sessions, and without the call that pauses.
fn comparable(body: &Value, chain: &Chain, own: &str) -> Value {
    let home = chain.home.home();
    let named = home.to_str().unwrap().replace(['/', '.'], "-");
    let text = body.to_string().replace(home.to_str().unwrap(), "HOME").replace(&named, "HOME");
    let mut body: Value = serde_json::from_str(&text).unwrap();
    let mut ids = Vec::new();
    let mut own_id = None;
    for message in body["messages"].as_array_mut().unwrap() {
        if let Some(text) = message["content"].as_str() {
            message["content"] = json!([{"type": "text", "text": text}]);
        }
        for block in message["content"].as_array_mut().unwrap() {
            block.as_object_mut().unwrap().remove("cache_control");
            if block["type"] == "tool_use" {
                ids.push(block["id"].as_str().unwrap().to_owned());
                if block["input"]["command"] == own {
                    own_id = Some(block["id"].clone());
                    block["input"] = json!("its own");
                }
            }
            if block["type"] == "tool_result" && Some(&block["tool_use_id"]) == own_id.as_ref() {
                let result = json!({"type": "tool_result", "tool_use_id": block["tool_use_id"]});
                *block = result;
            }
        }
    }
    // What the call returns that waited stands behind what the others of its message returned.
    for message in body["messages"].as_array_mut().unwrap() {
        let blocks = message["content"].as_array_mut().unwrap();
        let results = blocks.iter().take_while(|block| block["type"] == "tool_result").count();
        blocks[..results].sort_by_key(|block| ids.iter().position(|id| block["tool_use_id"] == *id));
    }
    let mut text = body.to_string();
    for (at, id) in ids.iter().enumerate() {
        text = text.replace(id, &format!("call {at}"));
    }
    serde_json::from_str(&without_counts(&without_ids(&text))).unwrap()
}

/// Ids of sessions, agents and processes are random.
fn without_ids(text: &str) -> String {
    let is_of_id = |c: char| c.is_ascii_hexdigit() || c == '-';
    let mut out = String::new();
    for (at, word) in text.split_inclusive(|c| !is_of_id(c)).enumerate() {
        let bare = word.trim_end_matches(|c| !is_of_id(c));
        let is_id = bare.len() >= 16
            && bare.contains(|c: char| c.is_ascii_digit())
            && bare.contains(|c: char| c.is_ascii_alphabetic())
            && at > 0;
        out.push_str(if is_id { "ID" } else { bare });
        out.push_str(&word[bare.len()..]);
    }
    out
}

/// How many tokens are left depends on how long the command of the call is, and how long a subagent takes on chance.
fn without_counts(text: &str) -> String {
    let without = |text: String, before: &str| {
        let mut parts = text.split(before);
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |out, part| out + before + "N" + part.trim_start_matches(|c: char| c.is_ascii_digit()))
    };
    ["<total_tokens>", "subagent_tokens: ", "duration_ms: "].into_iter().fold(text.to_owned(), without)
}

/// Where two texts begin to differ, and what follows there.
fn first_difference(one: &str, other: &str) -> [String; 2] {
    let at = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    [one, other].map(|text| text.chars().skip(at.saturating_sub(60)).take(300).collect())
}

/// What differs, one line each.
fn differences(pausing: &Value, plain: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for part in ["system", "tools"] {
        if pausing[part] != plain[part] {
            found.push(format!("{part}: {:?}", first_difference(&pausing[part].to_string(), &plain[part].to_string())));
        }
    }
    let blocks = |request: &Value| -> Vec<String> {
        let messages = request["messages"].as_array().unwrap();
        let of_message = |message: &Value| {
            let role = message["role"].as_str().unwrap().to_owned();
            let blocks = message["content"].as_array().unwrap().clone();
            blocks.into_iter().map(move |block| format!("{role} {block}"))
        };
        messages.iter().flat_map(of_message).collect()
    };
    let (pausing, plain) = (blocks(pausing), blocks(plain));
    found.extend(pausing.iter().filter(|block| !plain.contains(block)).map(|block| format!("+ {block}")));
    found.extend(plain.iter().filter(|block| !pausing.contains(block)).map(|block| format!("- {block}")));
    if found.is_empty() && pausing != plain {
        found.push(format!("another order: {pausing:#?} | {plain:#?}"));
    }
    found
}

/// What differs for an agent that pauses so, with all tools open beside it, before its call and behind it.
fn all_beside(model: &'static str, pause: Pause) -> Vec<String> {
    let of = |own: &str| {
        let mut message = tools(model);
        message.insert(3, ToolCall::bash(own));
        let loaded = (model == MODELS[0]).then(|| vec![ToolCall::load("TaskCreate")]);
        loaded.into_iter().chain([message, vec![ToolCall::bash("echo later")]]).collect::<Vec<_>>()
    };
    differences(&sent(model, pause, true, &of(pause.command())), &sent(model, pause, false, &of(pause.plain())))
}

#[test]
fn after_an_answer_nothing_differs() {
    for model in MODELS {
        assert_eq!(all_beside(model, Pause::Answer), [""; 0], "{model}");
    }
}

#[test]
fn after_a_reply_nothing_differs() {
    assert_eq!(all_beside(MODELS[1], Pause::Reply), [""; 0]);
}

#[test]
fn after_a_wait_nothing_differs() {
    assert_eq!(all_beside(MODELS[1], Pause::File), [""; 0]);
}

/// Claude Code ends the turn at the call that needs an approval: what comes after it in its message is not run.
#[test]
fn after_an_approval_the_later_calls_of_the_message_were_not_run() {
    let found = all_beside(MODELS[1], Pause::Approval);
    let not_run = "not run: another call of this turn needed an approval first. Call it again if it is still needed.";
    let [added, removed] =
        ['+', '-'].map(|sign| found.iter().filter(|line| line.starts_with(sign)).collect::<Vec<_>>());
    assert_eq!((added.len(), removed.len()), (3, 3), "{found:#?}");
    assert!(added[..2].iter().all(|line| line.contains(not_run)), "{found:#?}");
    assert!(added[2].contains("Continue from where you left off."), "{found:#?}");
    let later = ["Launching skill", "what was found", "Base directory for this skill"];
    assert!(removed.iter().zip(later).all(|(line, of_later)| line.contains(of_later)), "{found:#?}");
}
