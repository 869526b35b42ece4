//! What `claude` would find if it were started here: settings files, ways to log in, switches of the environment.
//!
//! Secrets are not read: for a variable, a settings field and the credentials file, only their presence is checked.
//! `.claude.json` is not opened, because it may contain a key.

use std::fs;
use std::path::{Path, PathBuf};

use crate::claude::doctor::login::Durable;
use crate::claude::environment::config_dir::{CONFIG_DIR, config_dir_of};
use crate::claude::environment::variables::Variables;
use crate::claude::environment::{agent_variables, credentials};
use crate::claude::settings::settings_file::{SettingsFile, given_settings, managed_files, settings_file};
use crate::core::agent::launch::Launch;

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
    /// The working directory's `CLAUDE.md`.
    pub convention: Convention,
}

/// Whether a directory's `CLAUDE.md` tells agents how to pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Convention {
    /// There is no such file.
    #[default]
    NoFile,
    /// It does not mention pausing.
    Absent,
    /// It does.
    Present,
}

/// Gathers everything for a `claude` with these launch options and variables that works in `cwd`.
pub(crate) fn look(cwd: &Path, variables: &Variables, launch: &Launch) -> DoctorFacts {
    let named = || variables.get(CONFIG_DIR).map(PathBuf::from);
    let config = config_dir_of(named(), launch);
    let user_settings = config.as_ref().map(|dir| dir.join("settings.json"));
    let of_project = ["settings.local.json", "settings.json"].map(|name| cwd.join(".claude").join(name));
    let managed = managed_files().into_iter().filter_map(|path| settings_file(path, true));
    let files = of_project.into_iter().chain(user_settings.clone()).filter_map(|path| settings_file(path, false));
    let settings: Vec<_> = managed.chain(given_settings(cwd, launch)).chain(files).collect();
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
        convention: convention(&cwd.join("CLAUDE.md")),
    }
}

/// Where Claude Code keeps a login in its configuration directory.
const CREDENTIALS: &str = ".credentials.json";

/// A word of `CLAUDE.md.template` that occurs in every convention for chains.
const SPAWN: &str = "_spawn_";

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
