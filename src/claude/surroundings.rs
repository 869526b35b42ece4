//! What `claude` would meet when it is started from here: settings files, ways to log in, switches of the environment.
//!
//! Secrets are not looked at: of a variable, of a field of settings and of the credentials file it is only seen that
//! they are there. `.claude.json`, which may hold a key beside other things, is not opened.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::command::config_dir;
use crate::core::launch::Launch;

/// All of it.
#[derive(Debug, Default)]
pub struct Surroundings {
    /// The settings files that exist, the strongest first.
    pub settings: Vec<SettingsFile>,
    /// What there is to log in with, by name.
    pub logins: Vec<String>,
    /// Whether there may be a login that cannot be seen: a key in `.claude.json`, or in the keychain of macOS.
    pub login_may_hide: Option<&'static str>,
    /// Whether this is the superuser outside of what Claude Code takes for a sandbox.
    pub refuses_bypass: bool,
    /// The `CLAUDE.md` of the working directory.
    pub convention: Convention,
}

/// A settings file of Claude Code.
#[derive(Debug)]
pub struct SettingsFile {
    /// Where it is.
    pub path: PathBuf,
    /// Whether an administrator wrote it.
    pub managed: bool,
    /// What it holds, or why Claude Code passes over it.
    pub content: Result<Settings, String>,
}

/// The settings that matter here. Whatever has another shape than expected is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// `disableAllHooks`.
    pub disable_all_hooks: Option<bool>,
    /// `allowManagedHooksOnly`.
    pub allow_managed_hooks_only: bool,
    /// `cleanupPeriodDays`.
    pub cleanup_period_days: Option<i64>,
    /// `permissions.deny` and `permissions.ask`: what nobody can be asked for is denied.
    pub denied: Vec<String>,
    /// `permissions.disableBypassPermissionsMode`.
    pub disable_bypass: bool,
    /// The names of what it brings to log in with.
    pub logins: Vec<String>,
}

/// Whether the `CLAUDE.md` of a directory tells agents how to pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Convention {
    /// There is no such file.
    #[default]
    NoFile,
    /// It has no word for it.
    Absent,
    /// It has.
    Present,
}

/// Looks at all of it, for a `claude` that works in `cwd`.
#[must_use]
pub fn look(cwd: &Path) -> Surroundings {
    let config = config_dir(&Launch::default());
    let user = config.as_ref().map(|dir| dir.join("settings.json"));
    let of_project = ["settings.local.json", "settings.json"].map(|name| cwd.join(".claude").join(name));
    let files = [(managed_settings(), true)].into_iter();
    let files = files.chain(of_project.into_iter().chain(user).map(|path| (path, false)));
    let settings: Vec<_> = files.filter_map(|(path, managed)| settings_file(path, managed)).collect();
    let mut logins = logins_of_environment();
    let kept = config.as_ref().map(|dir| dir.join(CREDENTIALS)).filter(|file| file.exists());
    logins.extend(kept.map(|file| file.display().to_string()));
    for file in &settings {
        let brought = file.content.iter().flat_map(|settings| &settings.logins);
        logins.extend(brought.map(|name| format!("{name} in {}", file.path.display())));
    }
    Surroundings {
        settings,
        logins,
        login_may_hide: hiding_place(),
        refuses_bypass: rustix::process::geteuid().is_root() && !in_sandbox(),
        convention: convention(&cwd.join("CLAUDE.md")),
    }
}

impl Settings {
    /// Reads settings.
    ///
    /// # Errors
    ///
    /// Why Claude Code passes over the whole file.
    pub fn parse(text: &str) -> Result<Self, String> {
        let is_json = serde_json::from_str::<IgnoredAny>(text);
        // What the parser says of a value could be a secret: only the place is told.
        is_json.map_err(|error| format!("is no JSON (line {}, column {})", error.line(), error.column()))?;
        let file: File = serde_json::from_str(text).map_err(|_| "is no JSON object".to_owned())?;
        let days = file.cleanup_period_days;
        if days.as_ref().is_some_and(|days| days.as_i64().is_none_or(|days| days < 1)) {
            return Err("has a cleanupPeriodDays that is no number of 1 or more".to_owned());
        }
        let permissions = file.permissions.unwrap_or_default();
        let denied = [&permissions["deny"], &permissions["ask"]].into_iter().filter_map(Value::as_array).flatten();
        let helper = file.api_key_helper.map(|_| "apiKeyHelper".to_owned());
        let variables = file.env.unwrap_or_default().into_keys().filter(|name| LOGINS.contains(&name.as_str()));
        Ok(Self {
            disable_all_hooks: file.disable_all_hooks.as_ref().and_then(Value::as_bool),
            allow_managed_hooks_only: file.allow_managed_hooks_only == Some(Value::Bool(true)),
            cleanup_period_days: days.as_ref().and_then(Value::as_i64),
            denied: denied.filter_map(Value::as_str).map(str::to_owned).collect(),
            disable_bypass: permissions["disableBypassPermissionsMode"] == "disable",
            logins: helper.into_iter().chain(variables).collect(),
        })
    }
}

/// Variables that log `claude` in, or that switch it to the login of a cloud.
const LOGINS: [&str; 6] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_VERTEX",
];

/// Where a login is kept in the configuration directory.
const CREDENTIALS: &str = ".credentials.json";

/// A word of `CLAUDE.md.template` that every convention for chains has.
const SPAWN: &str = "_spawn_";

/// The values are not kept where only their presence counts.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    disable_all_hooks: Option<Value>,
    allow_managed_hooks_only: Option<Value>,
    cleanup_period_days: Option<Value>,
    permissions: Option<Value>,
    api_key_helper: Option<IgnoredAny>,
    #[serde(default)]
    env: Option<BTreeMap<String, IgnoredAny>>,
}

fn managed_settings() -> PathBuf {
    let folder = if cfg!(target_os = "macos") { "/Library/Application Support/ClaudeCode" } else { "/etc/claude-code" };
    Path::new(folder).join("managed-settings.json")
}

fn settings_file(path: PathBuf, managed: bool) -> Option<SettingsFile> {
    let content = match fs::read_to_string(&path) {
        // An empty file is no mistake of anybody's.
        Ok(text) if text.trim().is_empty() => return None,
        Ok(text) => Settings::parse(&text),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return None,
        Err(error) => Err(format!("cannot be read ({error})")),
    };
    Some(SettingsFile { path, managed, content })
}

fn logins_of_environment() -> Vec<String> {
    let is_set = |name: &&&str| env::var_os(name).is_some_and(|value| !value.is_empty());
    LOGINS.iter().filter(is_set).map(|name| (*name).to_owned()).collect()
}

fn hiding_place() -> Option<&'static str> {
    let named = super::command::named_config_dir();
    let state = named.or_else(dirs::home_dir).is_some_and(|dir| dir.join(".claude.json").exists());
    match (cfg!(target_os = "macos"), state) {
        (true, _) => Some("the keychain cannot be seen from here"),
        (false, true) => Some(".claude.json, which may hold a key, is not looked into"),
        (false, false) => None,
    }
}

fn in_sandbox() -> bool {
    env::var_os("IS_SANDBOX").is_some_and(|value| value == "1")
        || env::var_os("CLAUDE_CODE_BUBBLEWRAP").is_some_and(|value| !value.is_empty())
}

fn convention(file: &Path) -> Convention {
    match fs::read_to_string(file) {
        Ok(text) if text.contains(SPAWN) => Convention::Present,
        Ok(_) => Convention::Absent,
        Err(_) => Convention::NoFile,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_is_read_and_no_secret_is_kept() {
        let text = r#"{"disableAllHooks": true, "allowManagedHooksOnly": true, "cleanupPeriodDays": 7,
            "permissions": {"deny": ["Bash(rm:*)", 7], "ask": ["Bash"], "disableBypassPermissionsMode": "disable"},
            "apiKeyHelper": "echo secret", "env": {"ANTHROPIC_API_KEY": "secret", "EDITOR": "vi"}}"#;
        let settings = Settings::parse(text).unwrap();
        let logins = vec!["apiKeyHelper".to_owned(), "ANTHROPIC_API_KEY".to_owned()];
        let expected = Settings {
            disable_all_hooks: Some(true),
            allow_managed_hooks_only: true,
            cleanup_period_days: Some(7),
            denied: vec!["Bash(rm:*)".into(), "Bash".into()],
            disable_bypass: true,
            logins,
        };
        assert_eq!(settings, expected);
        assert!(!format!("{settings:?}").contains("secret"));
        assert_eq!(Settings::parse("{}"), Ok(Settings::default()));
    }

    #[test]
    fn what_claude_code_passes_over_is_told_without_its_text() {
        let told = |text: &str| Settings::parse(text).unwrap_err();
        assert_eq!(told("{\"env\": secret"), "is no JSON (line 1, column 9)");
        assert_eq!(told("// comment\n{}"), "is no JSON (line 1, column 1)");
        assert_eq!(told("\"secret\""), "is no JSON object");
        for days in ["0", "-1", "\"secret\""] {
            let told = told(&format!("{{\"cleanupPeriodDays\": {days}}}"));
            assert_eq!(told, "has a cleanupPeriodDays that is no number of 1 or more");
        }
    }

    #[test]
    fn a_convention_is_known_by_its_word() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("CLAUDE.md");
        assert_eq!(convention(&file), Convention::NoFile);
        fs::write(&file, "# My project").unwrap();
        assert_eq!(convention(&file), Convention::Absent);
        fs::write(&file, include_str!("../../CLAUDE.md.template")).unwrap();
        assert_eq!(convention(&file), Convention::Present);
    }
}
