//! agent-cli's tool that Claude Code asks when a call needs an approval, over the Model Context Protocol.
//!
//! `claude -p` has AskUserQuestion only with such a tool. Agents do not see the tool. It needs neither an open standard input nor
//! a runner, so it works even if the runner is dead.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::core::text::json as line_json;

/// Claude Code's name for the tool.
pub(crate) const NAME: &str = "mcp__agent-cli__permission";

/// A call that needs an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PermissionCall {
    pub tool: String,
    pub input: Value,
    pub id: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Permission {
    /// It runs unchanged.
    Allow { input: Value },
    /// It does not run.
    Deny {
        /// The message to the agent.
        message: String,
    },
    /// It does not run, and the agent is stopped at it.
    Stop,
}

/// How long the server needs to record a call, on a slow machine.
const RECORDING: Duration = Duration::from_secs(60);

/// How long hooks of the user may take to decide about a call. Claude Code ends most of them by then.
pub(crate) const HOOKS: Duration = Duration::from_secs(600);

/// The file from which Claude Code starts the server. `own`: the absolute path of agent-cli; `environment`: the variables that
/// it needs; `lingers`: the options for how long it may wait for an answer, which takes at most `longest`. `None`: the path is not UTF-8 and cannot be named.
pub(crate) fn config(own: &Path, environment: &[(&str, String)], lingers: &str, longest: Duration) -> Option<Value> {
    let arguments: Vec<&str> = std::iter::once("permission").chain(lingers.split_whitespace()).collect();
    let environment: serde_json::Map<String, Value> =
        environment.iter().map(|(name, value)| ((*name).to_owned(), value.as_str().into())).collect();
    // 2.1.197 does not wait long for other servers, and then offers one more tool: a fork would not share the prompt cache.
    // Otherwise, MCP_TOOL_TIMEOUT would count, and the call could fail while a person is still deciding.
    let timeout = u64::try_from((HOOKS + longest + RECORDING).as_millis()).unwrap_or(u64::MAX);
    let server = json!({
        "type": "stdio", "command": own.to_str()?, "args": arguments, "env": environment, "alwaysLoad": true,
        "timeout": timeout,
    });
    Some(json!({"mcpServers": {SERVER: server}}))
}

/// The server's answer to a line of its input; `None`: no answer is needed. Every request whose id can be found has one: without
/// an answer, Claude Code waits forever.
pub(crate) fn respond(line: &[u8], decide: impl FnOnce(&PermissionCall) -> Permission) -> Option<Value> {
    let Ok(message) = line_json::read::<Value>(line) else {
        return Some(refused(&line_json::id_in(line)?, -32700, "the message is not JSON"));
    };
    let id = message.get("id").filter(|id| !id.is_null())?;
    let parameters = &message["params"];
    let Some(method) = message.get("method")?.as_str() else {
        return Some(refused(id, -32600, "the method is not a text"));
    };
    let result = match method {
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
            let call = PermissionCall::from_arguments(&parameters["arguments"]);
            // It is too deep to be shown to a person completely.
            let is_too_deep = line_json::is_too_deep(line);
            let decision = if is_too_deep { Permission::too_deep(&call) } else { decide(&call) };
            json!({"content": [{"type": "text", "text": decision.to_json().to_string()}]})
        }
        method => return Some(refused(id, -32601, &format!("there is no {method}"))),
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn refused(id: &Value, code: i32, why: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": why}})
}

pub(crate) const SERVER: &str = "agent-cli";
const TOOL: &str = "permission";

impl PermissionCall {
    fn from_arguments(arguments: &Value) -> Self {
        Self {
            tool: arguments["tool_name"].as_str().unwrap_or_default().to_owned(),
            input: arguments["input"].clone(),
            id: arguments["tool_use_id"].as_str().map(str::to_owned),
        }
    }
}

impl Permission {
    fn too_deep(call: &PermissionCall) -> Self {
        let message = format!(
            "the input of this call of {} is nested more than {} levels deep, so no approval can be asked for",
            call.tool,
            line_json::DEEPEST
        );
        Self::Deny { message }
    }

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
        respond(line.to_string().as_bytes(), |call| Permission::Deny { message: format!("not {}", call.tool) })
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
            PermissionCall::from_arguments(&arguments),
            PermissionCall { tool: "Bash".into(), input: json!({"command": "x"}), id: Some("t1".into()) }
        );
    }

    #[test]
    fn the_server_says_what_it_is() {
        let begin = json!({"id": "a", "method": "initialize", "params": {"protocolVersion": "2025-06-18"}});
        let answer = said(&begin).unwrap();
        assert_eq!((&answer["id"], &answer["result"]["protocolVersion"]), (&json!("a"), &json!("2025-06-18")));
        let tools = said(&json!({"id": 1, "method": "tools/list"})).unwrap();
        let longest = Duration::from_secs(20);
        let server = config(Path::new("/opt/agent-cli"), &[("A", "b".to_owned())], " --linger 20", longest).unwrap();
        let (name, server) = server["mcpServers"].as_object().unwrap().iter().next().unwrap();
        assert_eq!(NAME, format!("mcp__{name}__{}", tools["result"]["tools"][0]["name"].as_str().unwrap()));
        let mut expected =
            json!({"type": "stdio", "command": "/opt/agent-cli", "args": ["permission", "--linger", "20"]});
        expected["env"] = json!({"A": "b"});
        expected["alwaysLoad"] = json!(true);
        expected["timeout"] = json!(680_000);
        assert_eq!(server, &expected);
    }

    #[test]
    fn what_needs_no_answer_gets_none_and_what_is_not_known_is_refused() {
        assert_eq!(said(&json!({"method": "notifications/initialized"})), None);
        assert_eq!(said(&json!({"id": 1, "result": {}})), None);
        assert_eq!(respond(b"{", |_| unreachable!()), None);
        let refused = said(&json!({"id": 1, "method": "resources/list"})).unwrap();
        assert_eq!(refused["error"]["code"], -32601);
        assert_eq!(said(&json!({"id": 1, "method": 7})).unwrap()["error"]["code"], -32600);
    }

    #[test]
    fn a_request_that_strict_json_refuses_is_answered() {
        let call = |input: &str| {
            let arguments = format!(r#"{{"tool_name":"Bash","input":{input},"tool_use_id":"t1"}}"#);
            format!(
                r#"{{"method":"tools/call","params":{{"name":"permission","arguments":{arguments}}},"jsonrpc":"2.0","id":3}}"#
            )
        };
        let decision = |line: &str, decide: fn(&PermissionCall) -> Permission| {
            let answer = respond(line.as_bytes(), decide).unwrap();
            assert_eq!(answer["id"], 3);
            serde_json::from_str::<Value>(answer["result"]["content"][0]["text"].as_str().unwrap()).unwrap()
        };
        let allow = |call: &PermissionCall| Permission::Allow { input: call.input.clone() };
        let half = decision(&call(r#"{"command":"touch x","description":"cut \ud83d"}"#), allow);
        let shown = json!({"command": "touch x", "description": "cut \u{fffd}"});
        assert_eq!(half, json!({"behavior": "allow", "updatedInput": shown}));
        for levels in [140, 100_000] {
            let deep = format!(r#"{{"a":{}1{}}}"#, r#"{"a":"#.repeat(levels), "}".repeat(levels));
            let denied = decision(&call(&deep), |_| unreachable!());
            assert_eq!(denied["behavior"], "deny");
            assert!(denied["message"].as_str().unwrap().contains("Bash is nested more than 100 levels deep"));
        }
        let refused = respond(br#"{"id":3,"method":"tools/call","params":{"a":tru"#, |_| unreachable!()).unwrap();
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(3), &json!(-32700)));
    }

    proptest! {
        #[test]
        fn any_line_is_answered_or_passed_over(line: Vec<u8>, value in crate::core::text::json::any_json()) {
            let deny = |_: &PermissionCall| Permission::Deny { message: String::new() };
            let _ = respond(&line, deny);
            for method in ["initialize", "tools/call"] {
                let line = json!({"id": 1, "method": method, "params": value}).to_string();
                prop_assert!(respond(line.as_bytes(), deny).is_some());
            }
        }
    }
}
