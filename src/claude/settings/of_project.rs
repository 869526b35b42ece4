//! Settings for an agent that works elsewhere than where its chain was started: the settings of the chain's project, but only
//! the instructions of its own folder. A folder's settings can run commands, send keys to any server, and lift restrictions of
//! the project.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::claude::environment::config_dir::named_config_dir;
use crate::claude::environment::memory_files::instruction_files;
use crate::claude::environment::regular_file;
use crate::core::agent::launch::Launch;
use crate::core::text::json;
use crate::core::text::shell::quoted;

/// The option that selects settings files.
pub(crate) const SOURCES: &str = "--setting-sources";
/// Makes Claude Code read the instructions in folders that `--add-dir` names.
pub(crate) const READS_INSTRUCTIONS: &str = "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD";

/// The options with a path that is relative to the directory in which the chain was started.
const PATHS: [&str; 9] = [
    "--add-dir", "--append-subagent-system-prompt-file", "--append-system-prompt-file", "--debug-file", "--mcp-config",
    "--plugin-dir", "--plugin-dir-no-mcp", "--settings", "--system-prompt-file",
];

/// The settings whose value is a command.
const COMMANDS: [&str; 5] =
    ["apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "gcpAuthRefresh", "otelHeadersHelper"];

/// The settings that Claude Code accepts from a project only if a person trusts it, but always from `--settings`.
const OF_TRUST: [&str; 2] = ["enableAllProjectMcpServers", "enabledMcpjsonServers"];
const PERMISSIONS_OF_TRUST: [&str; 3] = ["allow", "defaultMode", "additionalDirectories"];

/// The tools whose rules name paths.
const FILE_TOOLS: [&str; 7] = ["Edit", "Glob", "Grep", "MultiEdit", "NotebookEdit", "Read", "Write"];

/// The launch options for an agent elsewhere: paths lead where they led for the uppermost agent, which works in `base`.
pub(crate) fn based(launch: Launch, base: &Path) -> Launch {
    let words = launch.args.words().into_iter().map(|word| match word.split_once('=') {
        Some((name, value)) if PATHS.contains(&name) && !value.trim_start().starts_with(['{', '/', '~']) => {
            format!("{name}={}", base.join(value).display())
        }
        _ => word,
    });
    Launch { args: words.collect::<Vec<_>>().into(), ..launch }
}

/// Which settings files of the project apply according to the launch options.
fn sources(launch: &Launch) -> Vec<&str> {
    let given = launch.args.last(SOURCES).unwrap_or("user,project,local");
    given.split(',').map(str::trim).collect()
}

/// The files that still apply: the user's.
pub(crate) fn remaining(launch: &Launch) -> String {
    if sources(launch).contains(&"user") { "user".to_owned() } else { String::new() }
}

/// Whether a person has told Claude Code to trust this very folder.
pub(crate) fn is_trusted(folder: &Path, launch: &Launch) -> bool {
    let known = state_of_claude(launch);
    folder.to_str().is_some_and(|folder| known["projects"][folder]["hasTrustDialogAccepted"] == true)
}

/// What Claude Code keeps about a user and their folders.
pub(super) fn state_of_claude(launch: &Launch) -> Value {
    let config = named_config_dir().or_else(|| launch.config_dir.clone()).or_else(dirs::home_dir);
    let read = || json::read(&regular_file::read_whole(&config?.join(".claude.json")).ok()?).ok();
    read().unwrap_or_default()
}

/// The settings of the project in `base`, as they apply to an agent elsewhere. `places`: the directories to which its relative
/// rules also apply, the project's first.
pub(crate) fn settings(base: &Path, places: &[PathBuf], launch: &Launch) -> Value {
    let counting = sources(launch);
    let mut all = json!({});
    for (name, source) in [("settings.json", "project"), ("settings.local.json", "local")] {
        let read = || json::read::<Value>(&regular_file::read_whole(&base.join(".claude").join(name)).ok()?).ok();
        let counts = counting.contains(&source) && !launch.args.has("--bare");
        // Claude Code ignores a file that is not JSON.
        if let Some(settings) = read().filter(|settings| counts && settings.is_object()) {
            merge(&mut all, applied(settings, base, places));
        }
    }
    all
}

/// Merges settings as Claude Code does: lists are concatenated, other values are replaced.
pub(crate) fn merge(onto: &mut Value, other: Value) {
    match (onto, other) {
        (Value::Object(onto), Value::Object(other)) => {
            for (name, value) in other {
                match onto.get_mut(&name) {
                    Some(present) => merge(present, value),
                    None => drop(onto.insert(name, value)),
                }
            }
        }
        (Value::Array(onto), Value::Array(other)) => onto.extend(other),
        (onto, other) => *onto = other,
    }
}

fn applied(mut settings: Value, base: &Path, places: &[PathBuf]) -> Value {
    let Some(fields) = settings.as_object_mut() else { return settings };
    OF_TRUST.iter().for_each(|name| drop(fields.remove(*name)));
    if let Some(permissions) = fields.get_mut("permissions").and_then(Value::as_object_mut) {
        PERMISSIONS_OF_TRUST.iter().for_each(|name| drop(permissions.remove(*name)));
        for list in ["deny", "ask"] {
            let Some(rules) = permissions.get_mut(list).and_then(Value::as_array_mut) else { continue };
            let given: Vec<String> = rules.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            let more = given.iter().flat_map(|rule| places.iter().filter_map(move |place| rule_for(rule, place)));
            rules.extend(more.map(Value::from));
        }
    }
    for name in COMMANDS {
        if let Some(command) = fields.get_mut(name) {
            in_project(command, base);
        }
    }
    let events = fields.get_mut("hooks").and_then(Value::as_object_mut).into_iter().flatten();
    let entries = events.filter_map(|(_, entries)| entries.as_array_mut()).flatten();
    for hook in entries.filter_map(|entry| entry.get_mut("hooks")?.as_array_mut()).flatten() {
        if let Some(command) = hook.get_mut("command") {
            in_project(command, base);
        }
    }
    settings
}

/// Makes a command run in the project: otherwise a relative path in it, or files in its working directory, would belong to the
/// other folder.
fn in_project(command: &mut Value, base: &Path) {
    let (Some(text), Some(base)) = (command.as_str(), base.to_str()) else { return };
    let base = quoted(base);
    *command = json!(format!("CLAUDE_PROJECT_DIR={base}; export CLAUDE_PROJECT_DIR; cd {base} && {{\n{text}\n}}"));
}

/// A rule with a relative path as it applies in a directory.
fn rule_for(rule: &str, place: &Path) -> Option<String> {
    let (tool, path) = rule.strip_suffix(')')?.split_once('(')?;
    let is_relative = FILE_TOOLS.contains(&tool) && !path.starts_with("//") && !path.starts_with('~');
    let place = place.to_str().filter(|_| is_relative)?;
    let below = match path.strip_prefix("./").or_else(|| path.strip_prefix('/')) {
        Some(below) => below.to_owned(),
        None if path.trim_end_matches('/').contains('/') => path.to_owned(),
        None => format!("**/{path}"),
    };
    Some(format!("{tool}(/{place}/{below})"))
}

/// Collects in `folder` the instructions that Claude Code would read for an agent in `cwd`: without the settings of the project
/// it reads none. Files outside the agent's own folder are excluded. `config`: Claude Code's directory.
pub(crate) fn collect_instructions(folder: &Path, cwd: &Path, config: Option<&Path>) -> std::io::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    let rules = folder.join(".claude/rules");
    // The copied files may be private to this user.
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&rules)?;
    let names = instruction_files(cwd, config, None);
    let mut above: Vec<&Path> = cwd.ancestors().collect();
    above.reverse();
    let mut count = 0;
    for place in above {
        let of_rules = fs::read_dir(place.join(".claude/rules")).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = of_rules.map(|entry| entry.path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
        files.sort();
        for file in names.iter().map(|name| place.join(name)).chain(files) {
            let Some(real) = fs::canonicalize(&file).ok().filter(|real| real.is_file() && real.starts_with(place))
            else {
                continue;
            };
            count += 1;
            let kept = rules.join(format!("{count:03}.md"));
            // Newer versions follow links only into the agent's directory; imports of such files are resolved there, too.
            if real.starts_with(cwd) {
                symlink(&real, &kept)?;
            } else if let Ok(text) = regular_file::read_text(&real) {
                fs::write(&kept, text)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::agent::claude_args::ClaudeArgs;

    fn launch(args: &[&str]) -> Launch {
        Launch { args: ClaudeArgs::from_recorded(args), ..Launch::default() }
    }

    fn write(path: PathBuf, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn restrictions_and_hooks_of_the_project_hold_and_rights_do_not() {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path();
        write(
            base.join(".claude/settings.json"),
            r#"{"permissions": {"deny": ["Write", "Read(./a/b)"], "allow": ["Bash"], "defaultMode": "acceptEdits"},
                "enableAllProjectMcpServers": true, "apiKeyHelper": "./key", "model": "opus",
                "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./guard"}]}]}}"#,
        );
        write(
            base.join(".claude/settings.local.json"),
            r#"{"permissions": {"deny": ["Read(.env)"]}, "model": "sonnet"}"#,
        );
        let settings = |args: &[&str]| settings(base, &[base.to_owned()], &launch(args));
        let (all, at) = (settings(&[]), base.display());
        let denied =
            ["Write", "Read(./a/b)", &format!("Read(/{at}/a/b)"), "Read(.env)", &format!("Read(/{at}/**/.env)")];
        assert_eq!(all["permissions"], json!({"deny": denied}));
        let command =
            |text: &str| format!("CLAUDE_PROJECT_DIR='{at}'; export CLAUDE_PROJECT_DIR; cd '{at}' && {{\n{text}\n}}");
        assert_eq!(all["apiKeyHelper"], command("./key"));
        assert_eq!(all["hooks"]["PreToolUse"][0]["hooks"][0]["command"], command("./guard"));
        assert_eq!((&all["model"], all.get("enableAllProjectMcpServers")), (&json!("sonnet"), None));
        assert_eq!(settings(&["--setting-sources=user,local"])["model"], "sonnet");
        assert_eq!(settings(&["--setting-sources=user"]), json!({}));
        assert_eq!(remaining(&launch(&["--setting-sources=project"])), "");
    }

    #[test]
    fn paths_of_the_launch_options_lead_where_they_led() {
        let based =
            based(launch(&["--settings=s.json", "--mcp-config={}", "--add-dir=/x", "--effort=low"]), Path::new("/p"));
        assert_eq!(based.args.words(), ["--settings=/p/s.json", "--mcp-config={}", "--add-dir=/x", "--effort=low"]);
    }

    #[test]
    fn instructions_are_collected_and_nothing_else() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().canonicalize().unwrap();
        let (project, cwd) = (top.join("project"), top.join("project/part"));
        write(top.join("secret"), "SECRET");
        write(project.join("CLAUDE.md"), "PROJECT");
        write(cwd.join("CLAUDE.md"), "PART");
        write(cwd.join(".claude/rules/a.md"), "RULE");
        write(cwd.join(".claude/settings.json"), "SETTINGS");
        symlink("../../secret", cwd.join("CLAUDE.local.md")).unwrap();
        let folder = top.join("state/instructions");
        for _ in 0..2 {
            collect_instructions(&folder, &cwd, None).unwrap();
            let mut kept: Vec<_> =
                fs::read_dir(folder.join(".claude/rules")).unwrap().flatten().map(|entry| entry.path()).collect();
            kept.sort();
            let texts: Vec<_> = kept.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
            assert_eq!(texts, ["PROJECT", "PART", "RULE"]);
        }
    }
}
