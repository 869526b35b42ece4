//! Policies about MCP servers that keep Claude Code from starting agent-cli's own, with which agents ask for approvals. `claude` would
//! end at the first call that needs one.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::claude::settings::settings_file::managed_folder;
use crate::claude::settings::user_hooks;
use crate::claude::tools::permission_server::SERVER;
use crate::core::agent::launch::Launch;

/// The file that forbids the server to an agent that works in `cwd`, if one does. A file counts even if Claude Code gives another one
/// precedence.
pub(crate) fn forbidding(cwd: &Path, launch: &Launch) -> Option<PathBuf> {
    // Beside it, no server can be named on the command line.
    let only = managed_folder().join("managed-mcp.json");
    let all = user_hooks::files(cwd, launch).into_iter().filter(|file| {
        let settings = user_hooks::read(file);
        settings.is_some_and(|settings| forbids(&settings))
    });
    only.exists().then_some(only).into_iter().chain(all).next()
}

fn forbids(settings: &Value) -> bool {
    let named = |entry: &Value| entry["serverName"] == SERVER;
    let of_command = |entry: &Value| {
        let program = entry["serverCommand"][0].as_str().map(Path::new);
        program.and_then(Path::file_name).is_some_and(|name| name == SERVER)
    };
    let entries = |name: &str| settings[name].as_array();
    let is_denied = entries("deniedMcpServers").is_some_and(|all| all.iter().any(|it| named(it) || of_command(it)));
    let is_allowed = entries("allowedMcpServers").is_none_or(|all| {
        // With a command in the list, names do not count, and that of agent-cli differs from agent to agent.
        all.iter().any(named) && !all.iter().any(|it| it["serverCommand"].is_array())
    });
    is_denied || !is_allowed
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
            assert_eq!(forbids(&settings), expected, "{settings}");
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
        assert_eq!(forbidding(&cwd, &launch), Some(file));
    }
}
