//! Settings files of Claude Code: where they are, and which of their settings matter here.
//!
//! For a secret, only its presence is checked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::claude::environment::agent_variables::BREAKING;
use crate::claude::environment::credentials;
use crate::claude::environment::regular_file;
use crate::claude::settings::merged;
use crate::core::agent::launch::Launch;

/// The settings field with a program that prints a key.
const HELPER: &str = "apiKeyHelper";

#[derive(Debug)]
pub(crate) struct SettingsFile {
    pub path: PathBuf,
    /// Whether an administrator wrote it.
    pub managed: bool,
    /// Its settings, or why Claude Code ignores it.
    pub content: Result<ClaudeSettings, String>,
}

/// The settings that matter here. A field of an unexpected shape is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClaudeSettings {
    /// `disableAllHooks`.
    pub disable_all_hooks: Option<bool>,
    /// `allowManagedHooksOnly`.
    pub allow_managed_hooks_only: bool,
    /// `cleanupPeriodDays`.
    pub cleanup_period_days: Option<i64>,
    /// `permissions.deny` and `permissions.ask`: a call that requires approval is denied if no person can be asked.
    pub denied: Vec<String>,
    /// `permissions.disableBypassPermissionsMode`.
    pub disable_bypass: bool,
    /// The names of the credentials that it sets.
    pub logins: Vec<String>,
    /// Whether it names a program that logs in to a cloud.
    pub logs_in_to_cloud: bool,
    /// The variables that it sets.
    pub variables: Vec<String>,
    /// The variables that it sets that break a chain.
    pub breaking: Vec<String>,
}

impl ClaudeSettings {
    /// The error says why Claude Code ignores the whole file.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let is_json = serde_json::from_str::<IgnoredAny>(text);
        // The parser's message could quote a secret, so only the position is reported.
        is_json.map_err(|error| format!("is not JSON (line {}, column {})", error.line(), error.column()))?;
        let file: File = serde_json::from_str(text).map_err(|_| "is not a JSON object".to_owned())?;
        let days = file.cleanup_period_days;
        if days.as_ref().is_some_and(|days| days.as_i64().is_none_or(|days| days < 1)) {
            return Err("has a cleanupPeriodDays that is not a number of at least 1".to_owned());
        }
        let permissions = file.permissions.unwrap_or_default();
        let denied = [&permissions["deny"], &permissions["ask"]].into_iter().filter_map(Value::as_array).flatten();
        let helper = file.api_key_helper.map(|_| HELPER.to_owned());
        let named = file.env.unwrap_or_default();
        let variables: Vec<_> =
            named.iter().filter(|(name, value)| value.is_set(name)).map(|(name, _)| name.clone()).collect();
        let logs_in = variables.iter().filter(|name| credentials::logs_in(name)).cloned();
        Ok(Self {
            disable_all_hooks: file.disable_all_hooks.as_ref().and_then(Value::as_bool),
            allow_managed_hooks_only: file.allow_managed_hooks_only == Some(Value::Bool(true)),
            cleanup_period_days: days.as_ref().and_then(Value::as_i64),
            denied: denied.filter_map(Value::as_str).map(str::to_owned).collect(),
            disable_bypass: permissions["disableBypassPermissionsMode"] == "disable",
            logins: helper.into_iter().chain(logs_in).collect(),
            logs_in_to_cloud: [file.aws_auth_refresh, file.aws_credential_export, file.gcp_auth_refresh]
                .iter()
                .any(Option::is_some),
            variables,
            breaking: named.into_keys().filter(|name| BREAKING.contains(&name.as_str())).collect(),
        })
    }
}

/// Values are not kept if only their presence counts.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    disable_all_hooks: Option<Value>,
    allow_managed_hooks_only: Option<Value>,
    cleanup_period_days: Option<Value>,
    permissions: Option<Value>,
    api_key_helper: Option<IgnoredAny>,
    aws_auth_refresh: Option<IgnoredAny>,
    aws_credential_export: Option<IgnoredAny>,
    gcp_auth_refresh: Option<IgnoredAny>,
    #[serde(default)]
    env: Option<BTreeMap<String, VariableOfSettings>>,
}

/// The value of a variable, which may be a secret: it is dropped as soon as its name shows what to check.
#[derive(Deserialize)]
#[serde(transparent)]
struct VariableOfSettings(Value);

impl VariableOfSettings {
    fn is_set(&self, name: &str) -> bool {
        match &self.0 {
            Value::Null => false,
            Value::String(text) => credentials::is_set(name, text),
            other => credentials::is_set(name, &other.to_string()),
        }
    }
}

/// Where administrators keep what applies to all users.
pub(crate) fn managed_folder() -> PathBuf {
    let folder = if cfg!(target_os = "macos") { "/Library/Application Support/ClaudeCode" } else { "/etc/claude-code" };
    folder.into()
}

/// The administrators' files, the highest precedence first.
pub(crate) fn managed_files() -> Vec<PathBuf> {
    with_parts(managed_folder().join("managed-settings.json"))
}

/// A settings file, and those in the folder next to it, where later names take precedence.
fn with_parts(file: PathBuf) -> Vec<PathBuf> {
    let parts = fs::read_dir(file.with_extension("d")).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_part = |path: &PathBuf| {
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        !is_hidden && path.extension().is_some_and(|extension| extension == "json")
    };
    let mut files: Vec<_> = parts.filter(is_part).collect();
    files.sort_unstable();
    files.reverse();
    files.push(file);
    files
}

pub(crate) fn settings_file(path: PathBuf, managed: bool) -> Option<SettingsFile> {
    let content = match regular_file::read_text(&path) {
        // An empty file is not a mistake.
        Ok(text) if text.trim().is_empty() => return None,
        Ok(text) => ClaudeSettings::parse(&text),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return None,
        Err(error) => Err(format!("cannot be read ({error})")),
    };
    Some(SettingsFile { path, managed, content })
}

/// The settings files of an agent with these launch options that works in `cwd`, the highest precedence first. `config`: Claude
/// Code's directory.
pub(crate) fn settings_files(cwd: &Path, config: Option<&Path>, launch: &Launch) -> Vec<SettingsFile> {
    let of_project = ["settings.local.json", "settings.json"].map(|name| cwd.join(".claude").join(name));
    let of_user = config.map(|dir| dir.join("settings.json"));
    let managed = managed_files().into_iter().filter_map(|path| settings_file(path, true));
    let files = of_project.into_iter().chain(of_user).filter_map(|path| settings_file(path, false));
    managed.chain(given_settings(cwd, launch)).chain(files).collect()
}

/// The settings that the user gives on the command line.
pub(crate) fn given_settings(cwd: &Path, launch: &Launch) -> impl Iterator<Item = SettingsFile> {
    ["--managed-settings", merged::OPTION].into_iter().filter_map(move |option| {
        let content = ClaudeSettings::parse(&merged::read(launch.args.last(option)?, cwd)?.to_string());
        Some(SettingsFile { path: option.into(), managed: false, content })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn managed_settings_may_have_parts_of_which_the_last_counts_most() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("managed-settings.json");
        assert_eq!(with_parts(file.clone()), std::slice::from_ref(&file));
        let parts = folder.path().join("managed-settings.d");
        fs::create_dir(&parts).unwrap();
        for name in ["10.json", "20.json", ".30.json", "notes.txt"] {
            fs::write(parts.join(name), "{}").unwrap();
        }
        assert_eq!(with_parts(file.clone()), [parts.join("20.json"), parts.join("10.json"), file]);
    }

    #[test]
    fn what_matters_is_read_and_no_secret_is_kept() {
        let text = r#"{"disableAllHooks": true, "allowManagedHooksOnly": true, "cleanupPeriodDays": 7,
            "permissions": {"deny": ["Bash(rm:*)", 7], "ask": ["Bash"], "disableBypassPermissionsMode": "disable"},
            "apiKeyHelper": "echo secret", "env": {"ANTHROPIC_API_KEY": "secret", "CLAUDE_CODE_SIMPLE": "1", "EDITOR": "vi"}}"#;
        let settings = ClaudeSettings::parse(text).unwrap();
        let logins = vec!["apiKeyHelper".to_owned(), "ANTHROPIC_API_KEY".to_owned()];
        let expected = ClaudeSettings {
            disable_all_hooks: Some(true),
            allow_managed_hooks_only: true,
            cleanup_period_days: Some(7),
            denied: vec!["Bash(rm:*)".into(), "Bash".into()],
            disable_bypass: true,
            logins,
            logs_in_to_cloud: false,
            variables: ["ANTHROPIC_API_KEY", "CLAUDE_CODE_SIMPLE", "EDITOR"].map(str::to_owned).to_vec(),
            breaking: vec!["CLAUDE_CODE_SIMPLE".to_owned()],
        };
        assert_eq!(settings, expected);
        assert!(!format!("{settings:?}").contains("secret"));
        assert_eq!(ClaudeSettings::parse("{}"), Ok(ClaudeSettings::default()));
        let off = r#"{"env": {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_USE_BEDROCK": 0, "CLAUDE_CODE_USE_VERTEX": true}}"#;
        assert_eq!(ClaudeSettings::parse(off).unwrap().logins, ["CLAUDE_CODE_USE_VERTEX"]);
    }

    #[test]
    fn what_claude_code_ignores_is_reported_without_its_text() {
        let error = |text: &str| ClaudeSettings::parse(text).unwrap_err();
        assert_eq!(error("{\"env\": secret"), "is not JSON (line 1, column 9)");
        assert_eq!(error("// comment\n{}"), "is not JSON (line 1, column 1)");
        assert_eq!(error("\"secret\""), "is not a JSON object");
        for days in ["0", "-1", "\"secret\""] {
            let error = error(&format!("{{\"cleanupPeriodDays\": {days}}}"));
            assert_eq!(error, "has a cleanupPeriodDays that is not a number of at least 1");
        }
    }
}
