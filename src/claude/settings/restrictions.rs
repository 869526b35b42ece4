//! The rules that deny calls of agents, or have a person asked about them: of every settings file, and of the command line.
//!
//! Claude Code looks at them after the hooks, so it never gets to look at a call that a hook suspends.

use std::path::Path;

use crate::claude::environment::config_dir::config_dir;
use crate::claude::settings::permission_rules::may_match;
use crate::claude::settings::settings_file::{given_settings, managed_files, settings_file};
use crate::core::agent::launch::Launch;

/// Whether a rule may concern a Bash call that runs `command`, which is the request with these words.
pub(crate) fn may_concern(command: &str, words: &[String], cwd: &Path, launch: &Launch) -> bool {
    let forms = forms(command, words);
    rules(cwd, launch).iter().any(|rule| forms.iter().any(|form| may_match(rule, form)))
}

/// The texts that a rule may be about: the command, and the request in it as it stands and without its quotes and its path.
fn forms(command: &str, words: &[String]) -> Vec<String> {
    let command = command.trim();
    let program = words.first().and_then(|program| program.rsplit('/').next()).unwrap_or_default();
    let in_it = command.match_indices(program).map(|(at, _)| command[at..].to_owned());
    let plain = [&[program.to_owned()], words.get(1..).unwrap_or_default()].concat().join(" ");
    in_it.chain([command.to_owned(), words.join(" "), plain]).collect()
}

/// The rules for an agent that works in `cwd`.
fn rules(cwd: &Path, launch: &Launch) -> Vec<String> {
    let of_project = ["settings.json", "settings.local.json"].map(|name| cwd.join(".claude").join(name));
    let of_user = config_dir(launch).map(|config| config.join("settings.json"));
    let paths = managed_files().into_iter().chain(of_project).chain(of_user);
    let files = paths.filter_map(|path| settings_file(path, false)).chain(given_settings(cwd, launch));
    let of_files = files.filter_map(|file| file.content.ok()).flat_map(|settings| settings.denied);
    let given = launch.args.pairs().filter(|(name, _)| *name == "--disallowedTools").filter_map(|(_, rules)| rules);
    of_files.chain(given.flat_map(split)).collect()
}

/// The rules in an argument, which are separated by blanks and commas.
fn split(argument: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let rules = argument.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (c == ',' || c.is_whitespace())
    });
    rules.filter(|rule| !rule.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::core::agent::claude_args::ClaudeArgs;

    fn words(command: &str) -> Vec<String> {
        command.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn rules_of_every_place_count() {
        let home = tempfile::tempdir().unwrap();
        let cwd = home.path().join("project");
        let launch = |args: &[&str]| Launch {
            config_dir: Some(home.path().join("config")),
            args: ClaudeArgs::of(args),
            ..Launch::default()
        };
        let may = |args: &[&str]| may_concern("agent-cli ask x", &words("agent-cli ask x"), &cwd, &launch(args));
        assert!(!may(&[]) && !may(&["--disallowedTools=Edit,Bash(rm *, x) Bash(agent-cli spawn:*)"]));
        assert!(may(&["--disallowedTools=Edit Bash(agent-cli spawn:*),Bash(agent-cli ask:*)"]));
        for option in ["--settings", "--managed-settings"] {
            assert!(may(&[&format!(r#"{option}={{"permissions": {{"deny": ["Bash(agent-cli *)"]}}}}"#)]), "{option}");
        }
        for name in ["config/settings.json", "project/.claude/settings.json", "project/.claude/settings.local.json"] {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            for list in ["deny", "ask"] {
                fs::write(&path, format!(r#"{{"permissions": {{"{list}": ["Bash(agent-cli ask:*)"]}}}}"#)).unwrap();
                assert!(may(&[]), "{list} in {name}");
            }
            fs::remove_file(path).unwrap();
        }
        assert!(!may(&[]));
    }

    #[test]
    fn a_rule_is_about_the_request_wherever_it_is_in_the_command() {
        let forms =
            forms("cd sub && /opt/agent-cli ask 'a b' 2>&1", &["/opt/agent-cli", "ask", "a b"].map(str::to_owned));
        for rule in [
            "Bash(cd:*)", "Bash(agent-cli ask:*)", "Bash(/opt/agent-cli ask:*)", "Bash(agent-cli ask a b)",
            "Bash(*'a b'*)", "Bash",
        ] {
            assert!(forms.iter().any(|form| may_match(rule, form)), "{rule}");
        }
        assert!(!forms.iter().any(|form| may_match("Bash(agent-cli spawn:*)", form)));
    }
}
