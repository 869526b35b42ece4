//! The hook protocol: what Claude Code sends to a hook before a tool call, and what the hook may decide.
//!
//! The fields of the input differ between events and versions, so each is parsed leniently: a missing field or an unexpected
//! shape is absent, never an error. A hook that fails would fail the agent's tool call.

use serde_json::{Map, Value, json};

use crate::core::text::json as line_json;

/// The event before a tool call.
pub(crate) const PRE_TOOL_USE: &str = "PreToolUse";
/// The event after a tool call that succeeded.
pub(crate) const POST_TOOL_USE: &str = "PostToolUse";
/// The message to one of Claude Code's own subagents: a call that it suspends would be lost.
pub(crate) const NOT_IN_A_SUBAGENT: &str = "a subagent cannot wait: end your turn and return the question, or the task, to your \
    caller, which can call agent-cli itself";
/// The tool that runs commands.
pub(crate) const BASH: &str = "Bash";

/// What Claude Code writes to a hook's standard input.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HookInput {
    pub hook_event_name: Option<String>,
    /// The tool that is about to be called.
    pub tool_name: Option<String>,
    /// Its input. `Null` if there is none.
    pub tool_input: Value,
    /// The call's result, after the call. `Null` before it.
    pub tool_response: Value,
    /// The id of the call. It does not change when a deferred call is repeated.
    pub tool_use_id: Option<String>,
    /// The session: after a fork, the new one.
    pub session_id: Option<String>,
    /// The directory of the agent's shell.
    pub cwd: Option<String>,
    pub transcript_path: Option<String>,
    pub permission_mode: Option<String>,
    /// The subagent of Claude Code that makes the call, if any. Its calls cannot be suspended.
    pub agent_id: Option<String>,
}

/// What a hook decides about a tool call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum HookAnswer {
    /// Nothing: the call proceeds as if there were no hook.
    Pass,
    /// `claude` saves the open call and exits. When it is resumed, it asks again.
    Defer,
    /// The call runs with another input, without asking for permission.
    Allow {
        /// The whole input, not only the changed fields.
        updated_input: Value,
        /// A notice for the agent, in addition to its result.
        notice: Option<String>,
    },
    /// The call does not run.
    Deny {
        /// The reason for the agent.
        reason: String,
    },
    /// After calls: a text for the agent, in addition to their results.
    Tell { event: String, text: String },
    /// After a Bash call: the agent sees this output, and nothing that the shell printed around it.
    Show { output: String },
}

impl HookInput {
    /// Fails if it is not a JSON object.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, serde_json::Error> {
        let mut fields: Map<String, Value> = line_json::read(text)?;
        // Any of these fields shows that there is a subagent: a call of it that was deferred would be lost.
        let agent_id = fields.remove("agent_id").filter(|id| !id.is_null());
        Ok(Self {
            hook_event_name: text_of(&mut fields, "hook_event_name"),
            tool_name: text_of(&mut fields, "tool_name"),
            tool_input: fields.remove("tool_input").unwrap_or_default(),
            tool_response: fields.remove("tool_response").unwrap_or_default(),
            tool_use_id: text_of(&mut fields, "tool_use_id"),
            session_id: text_of(&mut fields, "session_id"),
            cwd: text_of(&mut fields, "cwd"),
            transcript_path: text_of(&mut fields, "transcript_path"),
            permission_mode: text_of(&mut fields, "permission_mode"),
            agent_id: agent_id.map(|id| id.as_str().map_or_else(|| id.to_string(), str::to_owned)),
        })
    }

    /// The command that is about to run, before a call of the Bash tool.
    pub(crate) fn command(&self) -> Option<&str> {
        let is_call = self.hook_event_name.as_deref() == Some(PRE_TOOL_USE) && self.tool_name.as_deref() == Some(BASH);
        is_call.then(|| self.tool_input.get("command")?.as_str()).flatten()
    }
}

impl HookAnswer {
    /// What the hook prints. Empty if it decides nothing.
    pub(crate) fn to_json(&self) -> Option<Value> {
        let mut output = json!({"hookEventName": PRE_TOOL_USE});
        match self {
            Self::Pass => return None,
            Self::Tell { event, text } => {
                let output = json!({"hookEventName": event, "additionalContext": text});
                return Some(json!({"hookSpecificOutput": output}));
            }
            Self::Show { output } => {
                let shown = json!({"stdout": output, "stderr": "", "interrupted": false, "isImage": false});
                let output = json!({"hookEventName": POST_TOOL_USE, "updatedToolOutput": shown});
                return Some(json!({"hookSpecificOutput": output}));
            }
            Self::Defer => output["permissionDecision"] = json!("defer"),
            Self::Allow { updated_input, notice } => {
                output["permissionDecision"] = json!("allow");
                output["updatedInput"] = updated_input.clone();
                if let Some(notice) = notice {
                    output["additionalContext"] = json!(notice);
                }
            }
            Self::Deny { reason } => {
                output["permissionDecision"] = json!("deny");
                output["permissionDecisionReason"] = json!(reason);
            }
        }
        Some(json!({"hookSpecificOutput": output}))
    }
}

fn text_of(fields: &mut Map<String, Value>, name: &str) -> Option<String> {
    match fields.remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(value: &Value) -> HookInput {
        HookInput::parse(value.to_string().as_bytes()).unwrap()
    }

    /// As 2.1.330 writes it, including fields that do not matter here.
    fn of_bash() -> Value {
        json!({
            "session_id": "2061703d-19f4-4057-9298-2b3e3f48106d",
            "transcript_path": "/home/dev/.claude/projects/-home-dev-project/2061703d.jsonl",
            "cwd": "/home/dev/project",
            "prompt_id": "1acc648f-b938-4c94-853e-e7bfa050babc",
            "permission_mode": "bypassPermissions",
            "effort": {"level": "high"},
            "hook_event_name": "PreToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": "agent-cli ask 'When is your birthday?'", "description": "Ask the user"},
            "tool_use_id": "toolu_9440202700"
        })
    }

    #[test]
    fn a_bash_call_is_read() {
        let input = parse(&of_bash());
        assert_eq!(input.command(), Some("agent-cli ask 'When is your birthday?'"));
        assert_eq!(input.tool_use_id.as_deref(), Some("toolu_9440202700"));
        assert_eq!(input.session_id.as_deref(), Some("2061703d-19f4-4057-9298-2b3e3f48106d"));
        assert_eq!(input.cwd.as_deref(), Some("/home/dev/project"));
        assert_eq!(input.permission_mode.as_deref(), Some("bypassPermissions"));
        assert_eq!(input.agent_id, None);
        assert!(input.transcript_path.is_some_and(|path| path.ends_with(".jsonl")));
    }

    #[test]
    fn a_question_is_read() {
        let questions = json!([{"question": "When?", "header": "Birthday", "multiSelect": false,
            "options": [{"label": "Jan", "description": "January"}]}]);
        let input = parse(&json!({"hook_event_name": "PreToolUse", "tool_name": "AskUserQuestion",
            "tool_input": {"questions": questions}, "tool_use_id": "toolu_9440525900"}));
        assert_eq!(input.tool_name.as_deref(), Some("AskUserQuestion"));
        assert_eq!(input.tool_input["questions"], questions);
        assert_eq!(input.command(), None);
    }

    #[test]
    fn only_what_is_about_to_run_is_a_command() {
        let mut over = of_bash();
        over["hook_event_name"] = json!("PostToolUse");
        assert_eq!(parse(&over).command(), None);
        let mut other = of_bash();
        other["tool_name"] = json!("BashOutput");
        assert_eq!(parse(&other).command(), None);
        let mut odd = of_bash();
        odd["tool_input"] = json!(["command"]);
        assert_eq!(parse(&odd).command(), None);
    }

    #[test]
    fn a_subagent_is_noticed_whatever_names_it() {
        for (id, expected) in
            [(json!("a1"), Some("a1")), (json!(7), Some("7")), (json!(""), Some("")), (Value::Null, None)]
        {
            let mut input = of_bash();
            input["agent_id"] = id;
            assert_eq!(parse(&input).agent_id.as_deref(), expected);
        }
    }

    #[test]
    fn odd_shapes_are_absent_and_what_is_no_object_is_refused() {
        let names = ["hook_event_name", "tool_name", "tool_use_id", "session_id", "cwd", "transcript_path"];
        let odd: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), json!([1]))).collect();
        assert_eq!(parse(&Value::Object(odd)), HookInput::default());
        for text in ["", "[]", "null", "7", "{", "\u{0}", "{} {}"] {
            assert!(HookInput::parse(text.as_bytes()).is_err(), "{text:?}");
        }
        assert!(HookInput::parse("[".repeat(100_000).as_bytes()).is_err());
        for cut in [&b"{\"cwd\": \"/\xff\"}"[..], b"{\"cwd\": \"/\\ud83d\"}"] {
            assert_eq!(HookInput::parse(cut).unwrap().cwd.as_deref(), Some("/\u{fffd}"));
        }
    }

    #[test]
    fn decisions_are_written_as_claude_code_reads_them() {
        assert_eq!(HookAnswer::Pass.to_json(), None);
        assert_eq!(
            HookAnswer::Defer.to_json(),
            Some(json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "defer"}}))
        );
        assert_eq!(
            HookAnswer::Allow { updated_input: json!({"command": "cat x"}), notice: None }.to_json(),
            Some(json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow",
                "updatedInput": {"command": "cat x"}}}))
        );
        assert_eq!(
            HookAnswer::Allow { updated_input: json!({}), notice: Some("by the way".to_owned()) }.to_json(),
            Some(json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow",
                "updatedInput": {}, "additionalContext": "by the way"}}))
        );
        assert_eq!(
            HookAnswer::Deny { reason: "no".to_owned() }.to_json(),
            Some(json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                "permissionDecisionReason": "no"}}))
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = HookInput::parse(&bytes);
        }

        #[test]
        fn any_json_is_read_or_refused(value in crate::core::text::json::any_json()) {
            prop_assert_eq!(HookInput::parse(value.to_string().as_bytes()).is_ok(), value.is_object());
        }

        #[test]
        fn any_field_may_have_any_shape(name in "agent_id|tool_name|tool_input|hook_event_name|cwd", value in crate::core::text::json::any_json()) {
            let mut input = of_bash();
            input[&name] = value;
            let _ = parse(&input).command();
        }
    }
}
