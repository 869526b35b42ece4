//! The user's own hooks around tool calls, also those that come with skills. Those before a call may deny it, and some decide about one
//! that needs an approval. Those after it decide last what an agent sees of a result:
//! they may remove a secret from it. Only running them would show whether they do, so this only checks whether there are any.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::claude::environment::config_dir::config_dir;
use crate::claude::environment::regular_file;
use crate::claude::settings::merged;
use crate::claude::settings::settings_file::managed_files;
use crate::claude::stream::hooks::deciding_hooks::PERMISSION_REQUEST;
use crate::claude::tools::hook_input::{POST_TOOL_USE, PRE_TOOL_USE};
use crate::core::agent::launch::Launch;

/// The calls around which a hook runs, and when.
#[derive(Clone, Copy)]
struct Around<'a> {
    event: &'a str,
    tool: &'a str,
}

/// Whether a user's hook may run after a call of `tool` by an agent that works in `cwd`. A file that cannot be read has none.
pub(crate) fn run_after(tool: &str, cwd: &Path, launch: &Launch) -> bool {
    run(Around { event: POST_TOOL_USE, tool }, cwd, launch)
}

/// The same before a call.
pub(crate) fn run_before(tool: &str, cwd: &Path, launch: &Launch) -> bool {
    run(Around { event: PRE_TOOL_USE, tool }, cwd, launch) || come_with_skills(cwd, launch)
}

/// Whether a user's hook may decide about a call that needs an approval.
pub(crate) fn decide_about(tool: &str, cwd: &Path, launch: &Launch) -> bool {
    run(Around { event: PERMISSION_REQUEST, tool }, cwd, launch) || come_with_skills(cwd, launch)
}

fn run(calls: Around<'_>, cwd: &Path, launch: &Launch) -> bool {
    let given = launch.args.last(merged::OPTION).and_then(|given| merged::read(given, cwd));
    let is_concerned = |settings: &Value| concern(&settings["hooks"], calls);
    given.as_ref().is_some_and(is_concerned)
        || files(cwd, launch).iter().filter_map(|file| read(file)).any(|file| is_concerned(&file))
        || plugins(cwd, launch).is_none_or(|folders| folders.iter().any(|folder| plugin_concerns(folder, calls)))
        || marketplaces(launch).iter().any(|file| offers_concerned(file, calls))
}

/// Whether a skill, an agent or a command that an agent can use brings hooks, which apply once it is used.
fn come_with_skills(cwd: &Path, launch: &Launch) -> bool {
    launch.args.last("--agents").is_some_and(|agents| agents.contains("hooks"))
        || places(cwd, launch).iter().any(|folder| has_hooks_of_skills(folder))
}

/// The folders that may have skills, agents and commands.
fn places(cwd: &Path, launch: &Launch) -> Vec<PathBuf> {
    let folders = cwd.ancestors().map(|folder| folder.join(".claude")).chain(config_dir(launch));
    folders.chain(plugins(cwd, launch).into_iter().flatten()).collect()
}

/// Whether those of a folder bring hooks, for whichever calls.
fn has_hooks_of_skills(folder: &Path) -> bool {
    /// More than any user has. A project may come from another person.
    const MOST: usize = 500;
    let mut folders: Vec<_> = ["skills", "agents", "commands"].map(|kind| folder.join(kind)).into();
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            seen += 1;
            let brings_hooks = || regular_file::read_text(&entry).is_ok_and(|text| names_hooks(&text));
            if seen > MOST || entry.extension().is_some_and(|extension| extension == "md") && brings_hooks() {
                return true;
            }
            folders.extend(entry.is_dir().then_some(entry));
        }
    }
    false
}

/// Whether the lines between the first two `---` name hooks.
fn names_hooks(text: &str) -> bool {
    let mut lines = text.trim_start_matches('\u{feff}').lines();
    lines.next().is_some_and(|first| first.trim_end() == "---")
        && lines
            .take_while(|line| line.trim_end() != "---")
            .any(|line| line.trim_start_matches(['"', '\'']).starts_with("hooks"))
}

pub(super) fn files(cwd: &Path, launch: &Launch) -> Vec<PathBuf> {
    let folders = cwd.ancestors().map(|folder| folder.join(".claude")).chain(config_dir(launch));
    let settings = folders.flat_map(|folder| ["settings.json", "settings.local.json"].map(|name| folder.join(name)));
    managed_files().into_iter().chain(settings).collect()
}

/// The folders of installed plugins, enabled or not, and of plugins that are named for a session. `None`: one of them cannot be
/// inspected before Claude Code has fetched or unpacked it.
fn plugins(cwd: &Path, launch: &Launch) -> Option<Vec<PathBuf>> {
    const NAMED: [&str; 2] = ["--plugin-dir", "--plugin-dir-no-mcp"];
    let mut found = Vec::new();
    for folder in plugin_folders(launch) {
        paths(&read(&folder.join("installed_plugins.json")).unwrap_or_default(), "installPath", &mut found);
    }
    let in_variable = variable("CLAUDE_CODE_PLUGIN_DIRS", launch);
    let named = launch.args.pairs().filter(|(name, _)| NAMED.contains(name)).filter_map(|(_, folder)| folder);
    // Relative folders are relative to the agent's working directory.
    let named =
        named.map(PathBuf::from).chain(in_variable.iter().flat_map(env::split_paths)).map(|path| cwd.join(path));
    found.extend(named);
    let is_packed = launch.args.has("--plugin-url") || found.iter().any(|path| path.is_file());
    (!is_packed).then_some(found)
}

/// Where Claude Code keeps its information about plugins.
pub(super) fn plugin_folders(launch: &Launch) -> Vec<PathBuf> {
    let own = config_dir(launch).map(|config| config.join("plugins"));
    own.into_iter().chain(variable("CLAUDE_CODE_PLUGIN_CACHE_DIR", launch).map(PathBuf::from)).collect()
}

/// The value for agents.
fn variable(name: &str, launch: &Launch) -> Option<OsString> {
    env::var_os(name).or_else(|| launch.environment.get(name).map(OsString::from))
}

/// Every text under this name, at any depth.
fn paths(value: &Value, name: &str, found: &mut Vec<PathBuf>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get(name).and_then(Value::as_str).map(PathBuf::from));
            fields.values().for_each(|value| paths(value, name, found));
        }
        Value::Array(values) => values.iter().for_each(|value| paths(value, name, found)),
        _ => {}
    }
}

pub(super) fn read(file: &Path) -> Option<Value> {
    serde_json::from_str(&regular_file::read_text(file).ok()?).ok()
}

/// Whether a plugin has such a hook: in its own file, or in its manifest or a file named there.
fn plugin_concerns(folder: &Path, calls: Around<'_>) -> bool {
    let manifests = [".claude-plugin/plugin.json", "plugin.json"].map(|name| folder.join(name));
    let named = manifests.iter().filter_map(|file| read(file)).map(|manifest| manifest["hooks"].clone());
    std::iter::once(Value::from("hooks/hooks.json"))
        .chain(named)
        .any(|named| hooks_concern(&named, Some(folder), calls))
}

/// The files in which marketplaces describe their plugins: hooks may be there, too.
fn marketplaces(launch: &Launch) -> Vec<PathBuf> {
    let mut places = Vec::new();
    for folder in plugin_folders(launch) {
        paths(&read(&folder.join("known_marketplaces.json")).unwrap_or_default(), "installLocation", &mut places);
    }
    let file = |place: PathBuf| if place.is_file() { place } else { place.join(".claude-plugin/marketplace.json") };
    places.into_iter().map(file).collect()
}

fn offers_concerned(marketplace: &Path, calls: Around<'_>) -> bool {
    let offered = read(marketplace).unwrap_or_default();
    let plugins = offered["plugins"].as_array().into_iter().flatten();
    // The files that are named there belong to a plugin, which is checked if it is installed.
    plugins.into_iter().any(|plugin| hooks_concern(&plugin["hooks"], None, calls))
}

/// Hooks in a manifest: the path of a file, the hooks themselves, or several of both. `folder`: the base of relative paths.
fn hooks_concern(named: &Value, folder: Option<&Path>, calls: Around<'_>) -> bool {
    match named {
        Value::String(path) => {
            let content = folder.and_then(|folder| read(&folder.join(path)));
            content.is_some_and(|content| hooks_concern(&content, None, calls))
        }
        Value::Array(several) => several.iter().any(|named| hooks_concern(named, folder, calls)),
        Value::Object(hooks) => concern(named, calls) || hooks.get("hooks").is_some_and(|hooks| concern(hooks, calls)),
        _ => false,
    }
}

fn concern(hooks: &Value, calls: Around<'_>) -> bool {
    let entries = hooks[calls.event].as_array().into_iter().flatten();
    entries.into_iter().any(|entry| matches(&entry["matcher"], calls.tool))
}

/// A matcher is a list of names or a regular expression, which might match anything.
fn matches(matcher: &Value, tool: &str) -> bool {
    let matcher = matcher.as_str().unwrap_or_default();
    let is_list = matcher.chars().all(|c| c.is_alphanumeric() || "_-|, ".contains(c));
    !is_list || matcher.trim().is_empty() || matcher.split(['|', ',']).any(|name| name.trim() == tool)
}

#[cfg(test)]
mod tests {
    use std::fs;

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
            args: ClaudeArgs::from_recorded(args),
            ..Launch::default()
        };
        let found = |args: &[&str]| run_after("Bash", &cwd, &launch(args));
        write("config/settings.json", &before);
        assert!(!found(&[]) && !found(&[&format!("--settings={before}")]));
        assert!(found(&[&format!("--settings={hooks}")]));
        assert!(run_before("Bash", &cwd, &launch(&[])) && !run_before("Edit", &cwd, &launch(&[])));
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

    #[test]
    fn skills_agents_and_commands_may_bring_hooks() {
        let home = tempfile::tempdir().unwrap();
        let launch = Launch { config_dir: Some(home.path().join("config")), ..Launch::default() };
        let cwd = home.path().join("project");
        for (name, text, expected) in [
            ("config/skills/careful/SKILL.md", "---\nname: x\nhooks:\n  PreToolUse: []\n---\n", true),
            ("project/.claude/agents/rev.md", "---\r\n\"hooks\": {}\r\n---\r\n", true),
            ("project/.claude/commands/go.md", "---\nname: x\n---\nhooks: no\n", false),
            ("project/.claude/agents/rev.txt", "---\nhooks:\n---\n", false),
            ("project/.claude/agents/rev.md", "hooks:\n", false),
        ] {
            let file = home.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            assert_eq!(run_before("Bash", &cwd, &launch), expected, "{name}: {text}");
            fs::remove_file(file).unwrap();
        }
        let of_option = Launch { args: ClaudeArgs::from_recorded(&[r#"--agents={"a": {"hooks": {}}}"#]), ..launch };
        assert!(run_before("Bash", &cwd, &of_option));
    }

    #[test]
    fn hooks_of_plugins_are_found_in_every_form() {
        let home = tempfile::tempdir().unwrap();
        let entries = json!([{"matcher": "Bash", "hooks": [{"type": "command", "command": "x"}]}]);
        let events = json!({"PostToolUse": entries});
        let (wrapped, other) = (json!({"hooks": events}), json!({"PostToolUse": [{"matcher": "Edit"}]}));
        let cwd = home.path().join("project");
        let plugin = cwd.join("plug");
        fs::create_dir_all(plugin.join(".claude-plugin")).unwrap();
        fs::create_dir_all(plugin.join("custom")).unwrap();
        let launch = |args: &[&str]| Launch {
            config_dir: Some(home.path().join("config")),
            args: ClaudeArgs::from_recorded(args),
            ..Launch::default()
        };
        let found = |args: &[&str]| run_after("Bash", &cwd, &launch(args));
        fs::write(plugin.join("custom/h.json"), wrapped.to_string()).unwrap();
        for (hooks, expected) in [
            (json!("./custom/h.json"), true),
            (events.clone(), true),
            (wrapped, true),
            (json!(["./none.json", "custom/h.json"]), true),
            (json!([other.clone(), events.clone()]), true),
            (other, false),
            (json!("./none.json"), false),
            (json!(7), false),
        ] {
            let manifest = json!({"name": "plug", "hooks": hooks});
            fs::write(plugin.join(".claude-plugin/plugin.json"), manifest.to_string()).unwrap();
            let all = plugin.display();
            for option in [format!("--plugin-dir={all}"), "--plugin-dir=plug".into(), "--plugin-dir-no-mcp=plug".into()]
            {
                assert_eq!(found(&[&option]), expected, "{option}: {manifest}");
            }
            assert!(!found(&[]));
        }
        assert!(found(&["--plugin-url=https://localhost/p.zip"]), "nobody knows what is in it");
        fs::write(cwd.join("p.zip"), "").unwrap();
        assert!(found(&["--plugin-dir=p.zip"]));
        let plugins = home.path().join("config/plugins");
        fs::create_dir_all(&plugins).unwrap();
        let offered = cwd.join("market.json");
        fs::write(&offered, json!({"plugins": [{"name": "a", "hooks": events}]}).to_string()).unwrap();
        let known = json!({"market": {"installLocation": offered}});
        fs::write(plugins.join("known_marketplaces.json"), known.to_string()).unwrap();
        assert!(found(&[]));
    }
}
