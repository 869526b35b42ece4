//! What `claude` would find if it were started here: settings files, ways to log in, switches of the environment.
//!
//! Secrets are not read: for a variable, a settings field and the credentials file, only their presence is checked.
//! `.claude.json` may contain a key, so it is opened only to see whether a folder is trusted and which MCP servers there are.

use std::path::{Path, PathBuf};

use crate::claude::doctor::login::Durable;
use crate::claude::environment::config_dir::{CONFIG_DIR, config_dir_of};
use crate::claude::environment::memory_files::{CLAUDE_MD, memory};
use crate::claude::environment::variables::Variables;
use crate::claude::environment::{agent_variables, credentials};
use crate::claude::settings::settings_file::{SettingsFile, settings_files};
use crate::core::agent::launch::Launch;
use crate::core::requests::convention;

#[derive(Debug, Default)]
pub(crate) struct DoctorFacts {
    /// The settings files that exist, the highest precedence first.
    pub settings: Vec<SettingsFile>,
    /// The user's own settings file, whether or not it exists.
    pub(crate) user_settings: Option<PathBuf>,
    /// The credentials that exist, by name.
    pub logins: Vec<String>,
    /// The credentials that are variables of this environment and that no settings set.
    pub login_variables: Vec<String>,
    /// Variables that are the only login: without them there is no login.
    pub login_only_here: Vec<String>,
    /// Variables that matter to agents, that no settings set, and that a chain has not recorded.
    pub only_here: Vec<String>,
    /// Whether there may be a login that cannot be seen: a key in `.claude.json` or in the macOS keychain.
    pub login_may_hide: Option<&'static str>,
    /// Variables of this process that were set on purpose and that agents do not inherit.
    pub dropped: Vec<String>,
    /// Whether the user is root outside of what Claude Code recognises as a sandbox.
    pub refuses_bypass: bool,
    pub(crate) convention: Convention,
}

/// Whether agents are told how to start others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Convention {
    /// The working directory has no `CLAUDE.md`, and nothing else says it.
    #[default]
    NoFile,
    /// It has one, but neither that nor anything else says it.
    Absent,
    /// Something that cannot be read may say it.
    Unknown,
    /// This file or option says it.
    Present(PathBuf),
}

/// Gathers everything for a `claude` with these launch options and variables that works in `cwd`.
pub(crate) fn look(cwd: &Path, variables: &Variables, launch: &Launch) -> DoctorFacts {
    let named = || variables.get(CONFIG_DIR).map(PathBuf::from);
    let config = config_dir_of(named(), launch);
    let user_settings = config.as_ref().map(|dir| dir.join("settings.json"));
    let settings = settings_files(cwd, config.as_deref(), launch);
    let kept = config.as_ref().map(|dir| dir.join(CREDENTIALS)).filter(|file| file.exists());
    let durable = Durable {
        settings: settings.iter().filter_map(|file| file.content.as_ref().ok()).collect(),
        is_kept: kept.is_some(),
        recorded: launch
            .environment
            .iter()
            .filter(|(name, value)| credentials::is_set(name, value))
            .map(|(name, _)| name.as_str())
            .collect(),
        home: dirs::home_dir(),
    };
    let (login_variables, login_only_here) = (durable.missing_logins(variables), durable.login_only_in(variables));
    let only_here = durable.missing(variables);
    let mut logins: Vec<_> = variables.set().filter(|name| credentials::logs_in(name)).map(str::to_owned).collect();
    logins.extend(kept.map(|file| file.display().to_string()));
    for file in &settings {
        let brought = file.content.iter().flat_map(|settings| &settings.logins);
        logins.extend(brought.map(|name| format!("{name} in {}", file.path.display())));
    }
    DoctorFacts {
        settings,
        user_settings,
        logins,
        login_variables,
        login_only_here,
        only_here,
        login_may_hide: hiding_place(named().or_else(|| launch.config_dir.clone())),
        dropped: agent_variables::dropped_on_purpose(variables.names()).into_iter().map(str::to_owned).collect(),
        refuses_bypass: rustix::process::geteuid().is_root() && !in_sandbox(variables),
        convention: convention(cwd, config.as_deref(), launch),
    }
}

/// Where Claude Code keeps a login in its configuration directory.
const CREDENTIALS: &str = ".credentials.json";

fn hiding_place(named: Option<PathBuf>) -> Option<&'static str> {
    let state = named.or_else(dirs::home_dir).is_some_and(|dir| dir.join(".claude.json").exists());
    match (cfg!(target_os = "macos"), state) {
        (true, _) => Some("the keychain cannot be checked"),
        (false, true) => Some(".claude.json, which may contain a key, is not checked"),
        (false, false) => None,
    }
}

fn in_sandbox(variables: &Variables) -> bool {
    variables.get("IS_SANDBOX").is_some_and(|value| value == "1") || variables.get("CLAUDE_CODE_BUBBLEWRAP").is_some()
}

fn convention(cwd: &Path, config: Option<&Path>, launch: &Launch) -> Convention {
    let memory = memory(cwd, None, config, launch);
    let defines = |(_, text): &&(PathBuf, String)| convention::used(text).contains(&convention::SPAWN);
    match memory.texts.iter().find(defines) {
        Some((file, _)) => Convention::Present(file.clone()),
        None if memory.may_be_incomplete => Convention::Unknown,
        None if cwd.join(CLAUDE_MD).exists() => Convention::Absent,
        None => Convention::NoFile,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_convention_is_known_by_its_word() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("CLAUDE.md");
        let found = || convention(folder.path(), None, &Launch::default());
        assert_eq!(found(), Convention::NoFile);
        fs::write(&file, "# My project").unwrap();
        assert_eq!(found(), Convention::Absent);
        fs::write(&file, convention::TEXT).unwrap();
        assert_eq!(found(), Convention::Present(file.clone()));
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert_eq!(found(), Convention::Unknown);
    }
}
