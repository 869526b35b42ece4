//! What `claude` would meet when it is started from here: settings files, ways to log in, switches of the environment.
//!
//! Secrets are not looked at: of a variable, of a field of settings and of the credentials file it is only seen that
//! they are there. `.claude.json`, which may hold a key beside other things, is not opened.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::claude::doctor::login::{self, Durable};
use crate::claude::invocation::command::{CONFIG_DIR, config_dir_of};
use crate::claude::invocation::environment;
use crate::claude::invocation::settings as given;
use crate::claude::invocation::variables::Variables;
use crate::core::agent::launch::Launch;

/// All of it.
#[derive(Debug, Default)]
pub struct Surroundings {
    /// The settings files that exist, the strongest first.
    pub settings: Vec<SettingsFile>,
    /// The file of the user's own settings, whether it exists or not.
    pub user_settings: Option<PathBuf>,
    /// What there is to log in with, by name.
    pub logins: Vec<String>,
    /// Those of them that are variables of this environment, and that no settings set.
    pub login_variables: Vec<String>,
    /// Variables without which nobody is logged in: they, and nothing that lasts, are the login.
    pub login_only_here: Vec<String>,
    /// Variables that matter to agents, that no settings set, and of which a chain has no record.
    pub only_here: Vec<String>,
    /// Whether there may be a login that cannot be seen: a key in `.claude.json`, or in the keychain of macOS.
    pub login_may_hide: Option<&'static str>,
    /// Variables of this process that somebody has set on purpose, and that agents do not inherit.
    pub dropped: Vec<String>,
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
    /// Whether it names a program that logs in to a cloud.
    pub logs_in_to_cloud: bool,
    /// The variables that it sets.
    pub variables: Vec<String>,
    /// The variables that it sets and that break a chain.
    pub breaking: Vec<String>,
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

/// Looks at all of it, for a `claude` with these launch options that works in `cwd` and has these variables.
#[must_use]
pub fn look(cwd: &Path, variables: &Variables, launch: &Launch) -> Surroundings {
    let named = || variables.get(CONFIG_DIR).map(PathBuf::from);
    let config = config_dir_of(named(), launch);
    let user_settings = config.as_ref().map(|dir| dir.join("settings.json"));
    let of_project = ["settings.local.json", "settings.json"].map(|name| cwd.join(".claude").join(name));
    let managed = settings_file(managed_settings(), true);
    let files = of_project.into_iter().chain(user_settings.clone()).filter_map(|path| settings_file(path, false));
    let settings: Vec<_> = managed.into_iter().chain(given_settings(cwd, launch)).chain(files).collect();
    let kept = config.as_ref().map(|dir| dir.join(CREDENTIALS)).filter(|file| file.exists());
    let durable = Durable {
        settings: settings.iter().filter_map(|file| file.content.as_ref().ok()).collect(),
        is_kept: kept.is_some(),
        recorded: launch
            .environment
            .iter()
            .filter(|(name, value)| environment::is_set(name, value))
            .map(|(name, _)| name.as_str())
            .collect(),
        home: dirs::home_dir(),
    };
    let (login_variables, login_only_here) = (durable.missing_logins(variables), durable.login_only_in(variables));
    let only_here = durable.missing(variables);
    let mut logins: Vec<_> = variables.set().filter(|name| environment::logs_in(name)).map(str::to_owned).collect();
    logins.extend(kept.map(|file| file.display().to_string()));
    for file in &settings {
        let brought = file.content.iter().flat_map(|settings| &settings.logins);
        logins.extend(brought.map(|name| format!("{name} in {}", file.path.display())));
    }
    Surroundings {
        settings,
        user_settings,
        logins,
        login_variables,
        login_only_here,
        only_here,
        login_may_hide: hiding_place(named().or_else(|| launch.config_dir.clone())),
        dropped: environment::dropped_on_purpose(variables.names()).into_iter().map(str::to_owned).collect(),
        refuses_bypass: rustix::process::geteuid().is_root() && !in_sandbox(variables),
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
        let helper = file.api_key_helper.map(|_| login::HELPER.to_owned());
        let named = file.env.unwrap_or_default();
        let variables: Vec<_> =
            named.iter().filter(|(name, value)| value.is_set(name)).map(|(name, _)| name.clone()).collect();
        let logs_in = variables.iter().filter(|name| environment::logs_in(name)).cloned();
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
            breaking: named.into_keys().filter(|name| environment::BREAKING.contains(&name.as_str())).collect(),
        })
    }
}

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
    aws_auth_refresh: Option<IgnoredAny>,
    aws_credential_export: Option<IgnoredAny>,
    gcp_auth_refresh: Option<IgnoredAny>,
    #[serde(default)]
    env: Option<BTreeMap<String, VariableOfSettings>>,
}

/// The value of a variable, which may be a secret: it is dropped as soon as its name says what to look for.
#[derive(Deserialize)]
#[serde(transparent)]
struct VariableOfSettings(Value);

impl VariableOfSettings {
    fn is_set(&self, name: &str) -> bool {
        match &self.0 {
            Value::Null => false,
            Value::String(text) => environment::is_set(name, text),
            other => environment::is_set(name, &other.to_string()),
        }
    }
}

pub(crate) fn managed_settings() -> PathBuf {
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

/// The settings that the user gives on the command line.
fn given_settings(cwd: &Path, launch: &Launch) -> Option<SettingsFile> {
    let text = launch.args.last(given::OPTION)?;
    let content = Settings::parse(&given::read(text, cwd)?.to_string());
    Some(SettingsFile { path: given::OPTION.into(), managed: false, content })
}

fn hiding_place(named: Option<PathBuf>) -> Option<&'static str> {
    let state = named.or_else(dirs::home_dir).is_some_and(|dir| dir.join(".claude.json").exists());
    match (cfg!(target_os = "macos"), state) {
        (true, _) => Some("the keychain cannot be seen from here"),
        (false, true) => Some(".claude.json, which may hold a key, is not looked into"),
        (false, false) => None,
    }
}

fn in_sandbox(variables: &Variables) -> bool {
    variables.get("IS_SANDBOX").is_some_and(|value| value == "1") || variables.get("CLAUDE_CODE_BUBBLEWRAP").is_some()
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
            "apiKeyHelper": "echo secret", "env": {"ANTHROPIC_API_KEY": "secret", "CLAUDE_CODE_SIMPLE": "1", "EDITOR": "vi"}}"#;
        let settings = Settings::parse(text).unwrap();
        let logins = vec!["apiKeyHelper".to_owned(), "ANTHROPIC_API_KEY".to_owned()];
        let expected = Settings {
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
        assert_eq!(Settings::parse("{}"), Ok(Settings::default()));
        let off = r#"{"env": {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_USE_BEDROCK": 0, "CLAUDE_CODE_USE_VERTEX": true}}"#;
        assert_eq!(Settings::parse(off).unwrap().logins, ["CLAUDE_CODE_USE_VERTEX"]);
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
        fs::write(&file, include_str!("../../../CLAUDE.md.template")).unwrap();
        assert_eq!(convention(&file), Convention::Present);
    }
}
