//! The user's own hooks after tool calls. They decide last what an agent sees of a result: they may remove a secret from it. Only
//! running them would show whether they do, so this only checks whether there are any.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::claude::environment::config_dir::config_dir;
use crate::claude::settings::file::managed_settings;
use crate::claude::settings::merged;
use crate::claude::tools::hook::POST_TOOL_USE;
use crate::core::agent::launch::Launch;

/// Whether a user's hook may run after a call of `tool` by an agent that works in `cwd`. A file that cannot be read has none.
#[must_use]
pub(crate) fn run_after(tool: &str, cwd: &Path, launch: &Launch) -> bool {
    let given = launch.args.last(merged::OPTION).and_then(|given| merged::read(given, cwd));
    let is_concerned = |settings: &Value| concern(settings, tool);
    given.as_ref().is_some_and(is_concerned)
        || files(cwd, launch).iter().filter_map(read).any(|file| is_concerned(&file))
}

fn files(cwd: &Path, launch: &Launch) -> Vec<PathBuf> {
    let managed = managed_settings();
    let more = managed.with_extension("d");
    let more = fs::read_dir(more).into_iter().flatten().flatten().map(|entry| entry.path()).collect::<Vec<_>>();
    let folders = cwd.ancestors().map(|folder| folder.join(".claude")).chain(config_dir(launch));
    let settings = folders.flat_map(|folder| ["settings.json", "settings.local.json"].map(|name| folder.join(name)));
    let plugins = plugins(launch).into_iter();
    let of_plugins =
        plugins.flat_map(|folder| ["hooks/hooks.json", ".claude-plugin/plugin.json"].map(|name| folder.join(name)));
    [managed].into_iter().chain(more).chain(settings).chain(of_plugins).collect()
}

/// The folders of installed plugins, enabled or not, and of those named on the command line.
fn plugins(launch: &Launch) -> Vec<PathBuf> {
    let installed = config_dir(launch).map(|config| config.join("plugins/installed_plugins.json"));
    let mut found = Vec::new();
    paths(&installed.as_ref().and_then(read).unwrap_or_default(), &mut found);
    let named = launch.args.pairs().filter(|(name, _)| *name == "--plugin-dir").filter_map(|(_, folder)| folder);
    found.extend(named.map(PathBuf::from));
    found
}

/// Every `installPath`, at any depth.
fn paths(value: &Value, found: &mut Vec<PathBuf>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("installPath").and_then(Value::as_str).map(PathBuf::from));
            fields.values().for_each(|value| paths(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| paths(value, found)),
        _ => {}
    }
}

fn read(file: &PathBuf) -> Option<Value> {
    serde_json::from_str(&fs::read_to_string(file).ok()?).ok()
}

fn concern(settings: &Value, tool: &str) -> bool {
    let entries = settings["hooks"][POST_TOOL_USE].as_array().into_iter().flatten();
    entries.into_iter().any(|entry| matches(&entry["matcher"], tool))
}

/// A matcher is a list of names or a regular expression, which might match anything.
fn matches(matcher: &Value, tool: &str) -> bool {
    let matcher = matcher.as_str().unwrap_or_default();
    let is_list = matcher.chars().all(|c| c.is_alphanumeric() || "_-|, ".contains(c));
    !is_list || matcher.trim().is_empty() || matcher.split(['|', ',']).any(|name| name.trim() == tool)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::agent::claude_args::ClaudeArgs;

    #[test]
    fn a_matcher_is_a_list_of_names_or_anything() {
        for matcher in
            [json!("Bash"), json!("Edit|Bash"), json!("Edit, Bash"), json!("*"), json!(""), json!("B.*"), json!(null)]
        {
            assert!(matches(&matcher, "Bash"), "{matcher}");
        }
        for matcher in [json!("Edit"), json!("Edit|Write"), json!("BashOutput")] {
            assert!(!matches(&matcher, "Bash"), "{matcher}");
        }
    }

    #[test]
    fn hooks_are_found_wherever_they_can_be_named() {
        let home = tempfile::tempdir().unwrap();
        let write = |name: &str, value: &Value| {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, value.to_string()).unwrap();
            path
        };
        let hooks =
            json!({"hooks": {"PostToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "x"}]}]}});
        let before = json!({"hooks": {"PreToolUse": hooks["hooks"]["PostToolUse"]}});
        let cwd = home.path().join("project/part");
        let launch = |args: &[&str]| Launch {
            config_dir: Some(home.path().join("config")),
            args: ClaudeArgs::of(args),
            ..Launch::default()
        };
        let found = |args: &[&str]| run_after("Bash", &cwd, &launch(args));
        write("config/settings.json", &before);
        assert!(!found(&[]) && !found(&[&format!("--settings={before}")]));
        assert!(found(&[&format!("--settings={hooks}")]));
        for name in
            ["config/settings.json", "project/part/.claude/settings.json", "project/.claude/settings.local.json"]
        {
            let path = write(name, &hooks);
            assert!(found(&[]), "{name}");
            fs::remove_file(path).unwrap();
        }
        let plugin = home.path().join("plugin");
        write("plugin/hooks/hooks.json", &hooks);
        assert!(!found(&[]) && found(&[&format!("--plugin-dir={}", plugin.display())]));
        write("config/plugins/installed_plugins.json", &json!({"plugins": {"x@y": [{"installPath": plugin}]}}));
        assert!(found(&[]));
    }
}
