//! Policies about MCP servers that keep Claude Code from starting agent-cli's own, with which agents ask for approvals. `claude` would
//! end at the first call that needs one.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::claude::settings::settings_file::managed_folder;
use crate::claude::settings::user_hooks;
use crate::claude::tools::permission_server::SERVER;
use crate::core::agent::launch::Launch;

/// A policy that forbids the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    pub(crate) file: PathBuf,
    /// What a person can do about it.
    pub(crate) remedy: &'static str,
}

/// The policy that forbids the server to an agent that works in `cwd`, if one does. A file counts even if Claude Code gives another
/// one precedence.
pub(crate) fn forbidding(cwd: &Path, launch: &Launch) -> Option<Policy> {
    // Beside it, no server can be named on the command line.
    let only = managed_folder().join("managed-mcp.json");
    if only.exists() {
        let remedy = "allow the calls by rules instead: -- '--allowedTools=RULES'";
        return Some(Policy { file: only, remedy });
    }
    let policy = |file: PathBuf| Some(Policy { remedy: forbids(&user_hooks::read(&file)?)?, file });
    user_hooks::files(cwd, launch).into_iter().find_map(policy)
}

/// What a person can do about settings that forbid the server; `None`: they do not.
fn forbids(settings: &Value) -> Option<&'static str> {
    let named = |entry: &Value| entry["serverName"] == SERVER;
    let of_command = |entry: &Value| {
        let program = entry["serverCommand"][0].as_str().map(Path::new);
        program.and_then(Path::file_name).is_some_and(|name| name == SERVER)
    };
    let entries = |name: &str| settings[name].as_array();
    if entries("deniedMcpServers").is_some_and(|all| all.iter().any(|entry| named(entry) || of_command(entry))) {
        return Some("remove agent-cli from deniedMcpServers there");
    }
    let allowed = entries("allowedMcpServers")?;
    // With a command in the list, names do not count, and that of agent-cli differs from agent to agent.
    match (allowed.iter().any(|entry| entry["serverCommand"].is_array()), allowed.iter().any(named)) {
        (true, _) => Some("name servers instead of commands in allowedMcpServers there, agent-cli among them"),
        (false, false) => Some("add {\"serverName\": \"agent-cli\"} to allowedMcpServers there"),
        (false, true) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    #[test]
    fn lists_of_servers_forbid_it_unless_they_name_it() {
        for (settings, expected) in [
            (json!({}), false),
            (json!({"allowedMcpServers": "all"}), false),
            (json!({"allowedMcpServers": []}), true),
            (json!({"allowedMcpServers": [{"serverName": "github"}]}), true),
            (json!({"allowedMcpServers": [{"serverName": "github"}, {"serverName": "agent-cli"}]}), false),
            (json!({"allowedMcpServers": [{"serverName": "agent-cli"}, {"serverCommand": ["npx", "x"]}]}), true),
            (json!({"deniedMcpServers": [{"serverName": "github"}]}), false),
            (json!({"deniedMcpServers": [{"serverName": "agent-cli"}]}), true),
            (json!({"deniedMcpServers": [{"serverCommand": ["/usr/bin/agent-cli", "permission"]}]}), true),
        ] {
            assert_eq!(forbids(&settings).is_some(), expected, "{settings}");
        }
    }

    #[test]
    fn the_file_is_named() {
        let temp = tempfile::tempdir().unwrap();
        let launch = Launch { config_dir: Some(temp.path().join("config")), ..Launch::default() };
        let cwd = temp.path().join("project");
        let file = cwd.join(".claude/settings.json");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        assert_eq!(forbidding(&cwd, &launch), None);
        fs::write(&file, r#"{"allowedMcpServers": []}"#).unwrap();
        assert_eq!(forbidding(&cwd, &launch).map(|policy| policy.file), Some(file));
    }
}
