//! agent-cli's tool that Claude Code asks when a call needs an approval, over the Model Context Protocol.
//!
//! `claude -p` has AskUserQuestion only with such a tool. Agents do not see the tool. It needs neither an open standard input nor
//! a runner, so it works even if the runner is dead.

use std::path::Path;

use serde_json::{Value, json};

/// Claude Code's name for the tool.
pub(crate) const NAME: &str = "mcp__agent-cli__permission";

/// A call that needs an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PermissionCall {
    pub tool: String,
    pub input: Value,
    pub id: Option<String>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Permission {
    /// It runs unchanged.
    Allow { input: Value },
    /// It does not run.
    Deny {
        /// What the agent is told.
        message: String,
    },
    /// It does not run, and the agent is stopped at it.
    Stop,
}

/// The file from which Claude Code starts the server. `own`: the absolute path of agent-cli; `environment`: what it needs to
/// know. `None`: the path is not UTF-8 and cannot be named.
#[must_use]
pub(crate) fn config(own: &Path, environment: &[(&str, String)]) -> Option<Value> {
    let environment: serde_json::Map<String, Value> =
        environment.iter().map(|(name, value)| ((*name).to_owned(), value.as_str().into())).collect();
    let server = json!({"type": "stdio", "command": own.to_str()?, "args": ["permission"], "env": environment});
    Some(json!({"mcpServers": {SERVER: server}}))
}

/// The server's answer to a line of its input; `None`: no answer is needed.
pub(crate) fn respond(line: &str, decide: impl FnOnce(&PermissionCall) -> Permission) -> Option<Value> {
    let message: Value = serde_json::from_str(line).ok()?;
    let id = message.get("id").filter(|id| !id.is_null())?;
    let parameters = &message["params"];
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": parameters["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": SERVER, "version": env!("CARGO_PKG_VERSION")},
        }),
        "ping" => json!({}),
        "tools/list" => json!({"tools": [{
            "name": TOOL,
            "description": "Decides on calls that need an approval.",
            "inputSchema": {"type": "object"},
        }]}),
        "tools/call" => {
            let decision = decide(&PermissionCall::of(&parameters["arguments"])).to_json();
            json!({"content": [{"type": "text", "text": decision.to_string()}]})
        }
        method => {
            let error = json!({"code": -32601, "message": format!("there is no {method}")});
            return Some(json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

const SERVER: &str = "agent-cli";
const TOOL: &str = "permission";

impl PermissionCall {
    fn of(arguments: &Value) -> Self {
        Self {
            tool: arguments["tool_name"].as_str().unwrap_or_default().to_owned(),
            input: arguments["input"].clone(),
            id: arguments["tool_use_id"].as_str().map(str::to_owned),
        }
    }
}

impl Permission {
    fn to_json(&self) -> Value {
        match self {
            Self::Allow { input } => json!({"behavior": "allow", "updatedInput": input}),
            Self::Stop => json!({"behavior": "deny", "message": "a person is asked", "interrupt": true}),
            Self::Deny { message } => json!({"behavior": "deny", "message": message}),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn said(line: &Value) -> Option<Value> {
        respond(&line.to_string(), |call| Permission::Deny { message: format!("not {}", call.tool) })
    }

    #[test]
    fn a_call_is_decided_on() {
        let arguments = json!({"tool_name": "Bash", "input": {"command": "x"}, "tool_use_id": "t1"});
        let call = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call",
            "params": {"name": "permission", "arguments": arguments}});
        let answer = said(&call).unwrap();
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), json!({"behavior": "deny", "message": "not Bash"}));
        assert_eq!(
            PermissionCall::of(&arguments),
            PermissionCall { tool: "Bash".into(), input: json!({"command": "x"}), id: Some("t1".into()) }
        );
    }

    #[test]
    fn the_server_says_what_it_is() {
        let begin = json!({"id": "a", "method": "initialize", "params": {"protocolVersion": "2025-06-18"}});
        let answer = said(&begin).unwrap();
        assert_eq!((&answer["id"], &answer["result"]["protocolVersion"]), (&json!("a"), &json!("2025-06-18")));
        let tools = said(&json!({"id": 1, "method": "tools/list"})).unwrap();
        let server = config(Path::new("/opt/agent-cli"), &[("A", "b".to_owned())]).unwrap();
        let (name, server) = server["mcpServers"].as_object().unwrap().iter().next().unwrap();
        assert_eq!(NAME, format!("mcp__{name}__{}", tools["result"]["tools"][0]["name"].as_str().unwrap()));
        assert_eq!(
            server,
            &json!({"type": "stdio", "command": "/opt/agent-cli", "args": ["permission"], "env": {"A": "b"}})
        );
    }

    #[test]
    fn what_needs_no_answer_gets_none_and_what_is_not_known_is_refused() {
        assert_eq!(said(&json!({"method": "notifications/initialized"})), None);
        assert_eq!(said(&json!({"id": 1, "result": {}})), None);
        assert_eq!(respond("{", |_| unreachable!()), None);
        let refused = said(&json!({"id": 1, "method": "resources/list"})).unwrap();
        assert_eq!(refused["error"]["code"], -32601);
    }

    proptest! {
        #[test]
        fn any_line_is_answered_or_passed_over(line: String, value in crate::claude::settings::merged::any_json()) {
            let deny = |_: &PermissionCall| Permission::Deny { message: String::new() };
            let _ = respond(&line, deny);
            for method in ["initialize", "tools/call"] {
                let line = json!({"id": 1, "method": method, "params": value}).to_string();
                prop_assert!(respond(&line, deny).is_some());
            }
        }
    }
}
