//! Determines the defaults of a new chain from settings and the environment.

use std::fs;
use std::path::{Path, PathBuf};

use crate::app::config::layers::Settings;
use crate::app::config::setting::{
    BACKGROUND_GRACE, CLAUDE_ARGS, MAX_AGENTS, MAX_BUDGET_USD, MAX_DEPTH, MAX_PARALLEL, ON_PERMISSION, PERMISSION_MODE,
    QUESTIONS_DIR, QUESTIONS_EXPIRE, QUESTIONS_PER_HOUR, STALL_AFTER,
};
use crate::app::error::Refusal;
use crate::claude::environment::agent_variables;
use crate::claude::environment::config_dir::CONFIG_DIR;
use crate::claude::environment::variables::Variables;
use crate::claude::options;
use crate::core::agent::claude_args::ClaudeArgs;
use crate::core::agent::launch::{Launch, OnPermission};
use crate::core::chain::limits::NewLimits;

/// The launch options that a new frame records, so that it can be resumed from another shell.
pub(crate) fn launch(settings: &Settings, variables: &Variables) -> Launch {
    Launch {
        background_grace: settings.seconds(&BACKGROUND_GRACE),
        questions_per_hour: settings.count(&QUESTIONS_PER_HOUR).map(Into::into),
        questions_expire: settings.seconds(&QUESTIONS_EXPIRE).map(|after| after.max(1)),
        permission_mode: settings.text(&PERMISSION_MODE),
        path: variables.value("PATH").and_then(|path| path.to_str()).map(str::to_owned),
        config_dir: variables.get(CONFIG_DIR).map(PathBuf::from),
        environment: agent_variables::to_record(variables),
        ..Launch::default()
    }
}

pub(crate) fn limits(settings: &Settings) -> NewLimits {
    NewLimits {
        max_depth: settings.count(&MAX_DEPTH),
        max_agents: settings.count(&MAX_AGENTS),
        max_parallel: settings.count(&MAX_PARALLEL),
        max_budget_usd: settings.dollars(&MAX_BUDGET_USD),
        stall_after_s: settings.seconds(&STALL_AFTER),
    }
}

pub(crate) fn on_permission(settings: &Settings) -> OnPermission {
    let asks = settings.text(&ON_PERMISSION).as_deref() == Some("ask");
    if asks { OnPermission::Ask } else { OnPermission::Deny }
}

/// The arguments for `claude`.
pub(crate) fn args(settings: &Settings) -> Result<ClaudeArgs, Refusal> {
    let args = options::parse(&settings.words(&CLAUDE_ARGS)).map_err(Refusal::from);
    args.map_err(|error| error.hint(format!("agent-cli config shows where {} is set", CLAUDE_ARGS.key)))
}

pub(crate) fn questions_dir(settings: &Settings) -> Result<Option<PathBuf>, Refusal> {
    let Some(named) = settings.text(&QUESTIONS_DIR) else { return Ok(None) };
    let key = QUESTIONS_DIR.key;
    real_questions_dir(named.as_ref()).map(Some).map_err(|why| {
        Refusal::new(format!("`{key}` is {named}, but {why}")).hint("agent-cli config shows where it is set")
    })
}

/// Resolves the links in the path of the questions folder, so that later changes of links cannot redirect it.
pub(crate) fn real_questions_dir(named: &Path) -> Result<PathBuf, String> {
    let dir = fs::canonicalize(named).map_err(|error| format!("it cannot be used: {error}"))?;
    match dir.to_str() {
        _ if !dir.is_dir() => Err("it is not a directory".to_owned()),
        None => Err("its path is not UTF-8".to_owned()),
        Some(_) => Ok(dir),
    }
}

/// Like [`real_questions_dir`], for a folder that may not exist yet. [`make_questions_dir`] creates it.
pub(crate) fn new_questions_dir(named: &Path) -> Result<PathBuf, Refusal> {
    let found = real_or_new(named);
    found.map_err(|why| Refusal::new(format!("--questions-dir is {}, but {why}", named.display())))
}

fn real_or_new(named: &Path) -> Result<PathBuf, String> {
    let (true, Some(parent), Some(name)) = (named.symlink_metadata().is_err(), named.parent(), named.file_name())
    else {
        return real_questions_dir(named);
    };
    let name = name.to_str().ok_or("its path is not UTF-8")?;
    Ok(real_or_new(parent)?.join(name))
}

/// Creates the folder of questions if it does not exist.
pub(crate) fn make_questions_dir(dir: &Path) -> Result<(), Refusal> {
    let failed = |why: &str| Refusal::failure(format!("the folder of questions {} was not made: {why}", dir.display()));
    fs::create_dir_all(dir).map_err(|error| failed(&error.to_string()))?;
    match fs::canonicalize(dir) {
        Ok(real) if real == dir => Ok(()),
        // The user who created the link could answer the questions.
        _ => Err(failed("a link leads elsewhere")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::config::sources::Configuration;

    fn settings(values: &str) -> Settings {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("config.toml");
        fs::write(&path, values).unwrap();
        let user = crate::app::config::sources::user_file(&path).unwrap();
        Configuration::resolve(user.as_ref(), None, None, None, |_| None).unwrap().settings
    }

    #[test]
    fn settings_and_variables_give_launch_options() {
        let settings = settings(
            "[spawn]\nbackground-grace = '1m'\nquestions-expire = '2h'\nquestions-per-hour = 3\npermission-mode = 'plan'\n",
        );
        let variables = [("PATH", "/bin"), ("CLAUDE_CONFIG_DIR", "/c"), ("LANG", "C"), ("OTHER", "x")];
        let launch = launch(&settings, &variables.into_iter().collect());
        let seconds = (launch.background_grace, launch.questions_expire, launch.questions_per_hour);
        assert_eq!(seconds, (Some(60), Some(7200), Some(3)));
        assert_eq!(launch.permission_mode.as_deref(), Some("plan"));
        assert_eq!((launch.path.as_deref(), launch.config_dir), (Some("/bin"), Some("/c".into())));
        assert_eq!(launch.environment, [("LANG".to_owned(), "C".to_owned())].into());
    }

    #[test]
    fn an_empty_variable_names_no_directory() {
        let variables = [("PATH", ""), ("CLAUDE_CONFIG_DIR", "")];
        let launch = launch(&Settings::default(), &variables.into_iter().collect());
        assert_eq!((launch.path.as_deref(), launch.config_dir), (Some(""), None));
    }

    #[test]
    fn limits_and_permissions_are_configured() {
        let configured = settings(
            "[spawn]\non-permission = 'ask'\n[limits]\nmax-depth = 1\nmax-agents = 2\nmax-parallel = 3\n\
             max-budget-usd = 4.5\nstall-after = '5m'\n",
        );
        let expected = NewLimits {
            max_depth: Some(1),
            max_agents: Some(2),
            max_parallel: Some(3),
            max_budget_usd: Some(4.5),
            stall_after_s: Some(300),
        };
        assert_eq!(limits(&configured), expected);
        assert_eq!(on_permission(&configured), OnPermission::Ask);
        assert_eq!(on_permission(&settings("[spawn]\non-permission = 'deny'\n")), OnPermission::Deny);
        assert_eq!(on_permission(&Settings::default()), OnPermission::Deny);
    }

    #[test]
    fn bad_arguments_for_claude_are_refused_with_their_setting() {
        let good = settings("[spawn]\nclaude-args = ['--verbose']\n");
        assert_eq!(args(&good).unwrap().words(), ["--verbose"]);
        let refusal = args(&settings("[spawn]\nclaude-args = ['word']\n")).unwrap_err();
        assert_eq!(refusal.hints.last().unwrap(), "agent-cli config shows where spawn.claude-args is set");
    }

    #[test]
    fn the_folder_of_questions_is_a_directory_without_links() {
        let temp = tempfile::tempdir().unwrap();
        let real = fs::canonicalize(temp.path()).unwrap().join("q");
        let link = temp.path().join("link");
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let configured = |path: &Path| settings(&format!("[spawn]\nquestions-dir = '{}'\n", path.display()));
        assert_eq!(questions_dir(&configured(&link)).unwrap(), Some(real.clone()));
        assert_eq!(questions_dir(&Settings::default()).unwrap(), None);
        fs::remove_dir(&real).unwrap();
        let gone = questions_dir(&configured(&real)).unwrap_err().to_string();
        assert!(gone.starts_with("`spawn.questions-dir` is ") && gone.contains("but it cannot be used"), "{gone}");
        fs::write(&real, "").unwrap();
        assert_eq!(real_questions_dir(&real), Err("it is not a directory".to_owned()));
    }

    #[test]
    fn a_folder_of_questions_is_made_where_no_link_leads_it_elsewhere() {
        let temp = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(temp.path()).unwrap();
        fs::create_dir(top.join("real")).unwrap();
        std::os::unix::fs::symlink("real", top.join("link")).unwrap();
        std::os::unix::fs::symlink("gone", top.join("dangling")).unwrap();
        fs::write(top.join("file"), "").unwrap();
        let new = new_questions_dir(&top.join("link/a/b")).unwrap();
        assert_eq!(new, top.join("real/a/b"));
        assert!(!new.exists(), "nothing is made until all is checked");
        make_questions_dir(&new).unwrap();
        make_questions_dir(&new).unwrap();
        assert!(new.is_dir());
        for (name, why) in [
            ("file", "it is not a directory"),
            ("file/a", "it is not a directory"),
            ("dangling", "it cannot be used: "),
            ("dangling/a", "it cannot be used: "),
            ("gone/../x", "it cannot be used: "),
        ] {
            let refused = new_questions_dir(&top.join(name)).unwrap_err().to_string();
            assert!(refused.contains(&format!("but {why}")), "{name}: {refused}");
        }
        let replaced = new_questions_dir(&top.join("later")).unwrap();
        std::os::unix::fs::symlink("real", &replaced).unwrap();
        assert!(make_questions_dir(&replaced).unwrap_err().to_string().ends_with("a link leads elsewhere"));
    }
}
