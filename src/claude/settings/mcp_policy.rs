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
    // If it exists, no server can be named on the command line.
    let only = managed_folder().join("managed-mcp.json");
    if only.exists() {
        let remedy = "allow the calls by rules instead: -- '--allowedTools=RULES'";
        return Some(Policy { file: only, remedy });
    }
    let files = user_hooks::files(cwd, launch).into_iter();
    let settings: Vec<_> = files.filter_map(|file| Some((user_hooks::read(&file)?, file))).collect();
    forbids(&settings, &managed_folder())
}

/// The policy in these settings that forbids the server. `managed`: the folder of those that only an administrator writes.
fn forbids(files: &[(Value, PathBuf)], managed: &Path) -> Option<Policy> {
    let no_options =
        files.iter().find(|(settings, file)| file.starts_with(managed) && settings["disableSideloadFlags"] == true);
    if let Some((_, file)) = no_options {
        return Some(Policy { file: file.clone(), remedy: "allow the calls by rules in settings instead" });
    }
    let named = |entry: &Value| entry["serverName"] == SERVER;
    let of_command = |entry: &Value| {
        let program = entry["serverCommand"][0].as_str().map(Path::new);
        program.and_then(Path::file_name).is_some_and(|name| name == SERVER)
    };
    let lists = |name: &'static str| {
        files.iter().filter_map(move |(settings, file)| Some((settings[name].as_array()?, file.as_path())))
    };
    let policy = |file: &Path, remedy| Some(Policy { file: file.to_owned(), remedy });
    let has = |(entries, _): &(&Vec<Value>, &Path), is: &dyn Fn(&Value) -> bool| entries.iter().any(is);
    if let Some((_, file)) =
        lists("deniedMcpServers").find(|list| has(list, &|entry| named(entry) || of_command(entry)))
    {
        return policy(file, "remove agent-cli from deniedMcpServers there");
    }
    // Claude Code joins these lists. With a command in them, names do not count, and that of agent-cli differs from agent to agent.
    if let Some((_, file)) =
        lists("allowedMcpServers").find(|list| has(list, &|entry| entry["serverCommand"].is_array()))
    {
        return policy(file, "name servers instead of commands in allowedMcpServers there, agent-cli among them");
    }
    let (_, file) = lists("allowedMcpServers").next()?;
    match lists("allowedMcpServers").any(|list| has(&list, &named)) {
        true => None,
        false => policy(file, "add {\"serverName\": \"agent-cli\"} to allowedMcpServers there"),
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
            assert_eq!(forbids(&[(settings.clone(), "/s".into())], Path::new("/m")).is_some(), expected, "{settings}");
        }
    }

    #[test]
    fn lists_of_allowed_servers_are_joined_and_those_of_denied_ones_count_alone() {
        let [first, second] = [Path::new("/first"), Path::new("/second")];
        let forbidding = |one: &Value, two: &Value| {
            forbids(&[(one.clone(), first.into()), (two.clone(), second.into())], Path::new("/m"))
                .map(|policy| policy.file)
        };
        let allows = |name: &str| json!({"allowedMcpServers": [{"serverName": name}]});
        assert_eq!(forbidding(&allows("agent-cli"), &allows("github")), None);
        assert_eq!(forbidding(&allows("github"), &allows("agent-cli")), None);
        assert_eq!(forbidding(&allows("github"), &allows("other")).as_deref(), Some(first));
        let denies = json!({"deniedMcpServers": [{"serverName": "agent-cli"}]});
        assert_eq!(forbidding(&allows("agent-cli"), &denies).as_deref(), Some(second));
    }

    #[test]
    fn only_managed_settings_can_forbid_to_name_servers() {
        let settings = json!({"disableSideloadFlags": true});
        let [managed, own] = ["/m/managed-settings.json", "/home/.claude/settings.json"].map(PathBuf::from);
        let forbidding = |file: &PathBuf| forbids(&[(settings.clone(), file.clone())], Path::new("/m"));
        assert_eq!(forbidding(&managed).map(|policy| policy.file), Some(managed));
        assert_eq!(forbidding(&own), None);
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
