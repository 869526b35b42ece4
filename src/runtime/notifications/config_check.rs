//! The part of `doctor` about notifications. It reports nothing to people who do not use them.

use std::path::Path;

use crate::claude::environment::variables::Variables;
use crate::core::housekeeping::doctor_finding::Finding;
use crate::core::notifications::occasion::Occasion;
use crate::runtime::notifications::config_file::{BadConfig, ConfigFile};
use crate::store::{Notifications, Store};

const NAME: &str = "notifications";
const LIST: &str = "agent-cli notifications lists them; agent-cli notifications --test EVENT tries a command";
/// How many of the newest notifications are checked.
const NEWEST: usize = 50;

/// The findings about the config file, and about sent notifications.
pub(crate) fn findings(
    config: &Result<Option<ConfigFile>, BadConfig>,
    store: Option<&Store>,
    under_cron: bool,
    shell: &Variables,
) -> Vec<Finding> {
    let mut found = match config {
        Err(bad) => vec![Finding::warning(NAME, bad.to_string(), bad.hint.clone())],
        Ok(None) => Vec::new(),
        Ok(Some(config)) => of_file(config),
    };
    if let Ok(Some(config)) = config
        && under_cron
        && !cron_finds(&config.path, shell)
    {
        let message = format!("cron would not find {}", config.path.display());
        found.push(Finding::warning(NAME, message, "put AGENT_CLI_CONFIG into the crontab"));
    }
    found.extend(store.and_then(failed));
    found
}

fn of_file(config: &ConfigFile) -> Vec<Finding> {
    let path = config.path.display();
    let wrong = config.problems.iter().map(|problem| {
        Finding::warning("configuration", format!("{path}: {problem}"), "agent-cli config edit opens it")
    });
    let events: Vec<_> = config.commands.of.keys().copied().map(Occasion::name).collect();
    let commands =
        if events.is_empty() { "no commands".to_owned() } else { format!("commands for {}", events.join(", ")) };
    wrong.chain([Finding::ok(NAME, format!("{path} has {commands}"))]).collect()
}

/// Cron knows a person's home directory, but no other relevant variable.
fn cron_finds(config: &Path, shell: &Variables) -> bool {
    let home = shell.get("HOME").map(Path::new);
    let usual = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".config" };
    home.is_some_and(|home| home.join(usual).join("agent-cli/config.toml") == config)
}

fn failed(store: &Store) -> Option<Finding> {
    let listed = store.outbox().list(Notifications::Newest(NEWEST)).ok()?;
    let failed: Vec<_> =
        listed.iter().filter(|it| it.status == "failed" || it.failures > 0 && it.status == "pending").collect();
    let last = failed.last()?;
    let why = last.why.as_deref().unwrap_or_default();
    let count = failed.len();
    let message =
        format!("{count} of the newest {} could not be sent; the last, of {}: {why}", listed.len(), last.event);
    Some(Finding::warning(NAME, message, LIST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::notifications::event_commands::EventCommands;

    #[test]
    fn a_file_that_only_the_shell_knows_is_not_there_under_cron() {
        let shell: Variables = [("HOME", "/home/ann")].into_iter().collect();
        let usual = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".config" };
        let usual = Path::new("/home/ann").join(usual).join("agent-cli/config.toml");
        let said = |path: &Path, under_cron| {
            let config = ConfigFile { path: path.to_owned(), commands: EventCommands::default(), problems: Vec::new() };
            let found = findings(&Ok(Some(config)), None, under_cron, &shell);
            found.iter().filter(|found| found.message.starts_with("cron would not find")).count()
        };
        assert_eq!([said(&usual, true), said(&usual, false)], [0, 0]);
        assert_eq!([said(Path::new("/elsewhere.toml"), true), said(Path::new("/elsewhere.toml"), false)], [1, 0]);
    }
}
