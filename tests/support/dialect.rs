//! The two conventions that the scripted model can follow, and the calls that they lead to.

use serde_json::json;

use super::conversation::{Conversation, Item};
use super::script::{Call, single_quoted};
use super::turn::ToolCall;

const QUESTION_FILE: &str = "question.md";

/// A convention for chains, which the model knows from the CLAUDE.md that it sees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Dialect {
    /// The convention of this project: every request is an `agent-cli` on `PATH`.
    AgentCli,
    /// The published convention of iotalambda/claude-code-async-chain: an `agent-cli` in the working directory, and
    /// questions in `question.md`.
    QuestionFile,
}

impl Dialect {
    /// The convention that the conversation defines. Instructions that merely use its words do not count.
    pub(super) fn of(conversation: &Conversation) -> Option<Self> {
        let read = conventions_read(conversation);
        let told = [conversation.context(), read.as_str()];
        if !told.iter().any(|text| text.contains("_spawn_")) {
            return None;
        }
        let theirs = told.iter().any(|text| text.contains("$PWD/question.md"));
        Some(if theirs { Self::QuestionFile } else { Self::AgentCli })
    }

    /// How the model makes a call of the instruction file in `folder`.
    pub(super) fn call(self, call: &Call, folder: &str) -> ToolCall {
        match (self, call) {
            (Self::AgentCli, Call::Spawn(words)) if words.contains(' ') => {
                ToolCall::bash(&format!("agent-cli spawn {words}"))
            }
            (Self::AgentCli, Call::Spawn(file)) => {
                ToolCall::bash(&format!("agent-cli spawn {}", quoted(&in_folder(folder, file))))
            }
            (Self::QuestionFile, Call::Spawn(file)) => ToolCall::bash(&format!("$PWD/agent-cli spawn $PWD/{file}")),
            (Self::AgentCli, Call::Ask(question)) => ToolCall::bash(&format!("agent-cli ask {}", spoken(question))),
            (Self::QuestionFile, Call::Ask(question)) => ToolCall::new(
                "Write",
                json!({"file_path": in_folder(folder, QUESTION_FILE), "content": format!("Q: {question}\nA:")}),
            ),
            (_, Call::Run(command)) => ToolCall::bash(command),
            (_, Call::Tool(name, input)) => ToolCall::new(name, input.clone()),
        }
    }

    /// The call that shows whether a wait is over: that of `call`, or of the frame `id` if it has one.
    pub(super) fn check(self, call: &Call, id: Option<&str>) -> ToolCall {
        ToolCall::bash(&match (self, call, id) {
            (Self::QuestionFile, Call::Ask(_), _) => format!("cat \"$PWD/{QUESTION_FILE}\""),
            (Self::QuestionFile, _, id) => format!("$PWD/agent-cli resume {}", id.unwrap_or_default()),
            (Self::AgentCli, _, id) => format!("agent-cli resume {}", id.unwrap_or_default()),
        })
    }

    /// Whether this question is asked through a file whose text is the answer to [`Self::check`].
    pub(super) fn asks_in_file(self, call: &Call) -> bool {
        self == Self::QuestionFile && matches!(call, Call::Ask(_))
    }
}

/// The CLAUDE.md files that the model has read itself.
fn conventions_read(conversation: &Conversation) -> String {
    let mut read = Vec::new();
    let mut found = String::new();
    for item in conversation.items() {
        match item {
            Item::Call { id, input, .. } if input["file_path"].as_str().is_some_and(|p| p.ends_with("CLAUDE.md")) => {
                read.push(id);
            }
            Item::Result { id, text, .. } if read.contains(&id) => found.push_str(text),
            _ => {}
        }
    }
    found
}

fn in_folder(folder: &str, file: &str) -> String {
    if file.starts_with('/') { file.to_owned() } else { format!("{folder}/{file}") }
}

/// A word of a shell command, quoted where it must be.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { single_quoted(word) }
}

/// A sentence in a shell command, in double quotes if these keep it unchanged.
fn spoken(sentence: &str) -> String {
    if sentence.contains(['"', '\\', '$', '`']) { single_quoted(sentence) } else { format!("\"{sentence}\"") }
}
