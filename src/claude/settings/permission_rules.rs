//! Permission rules: entries of the list `permissions.allow` that agents get on the user's behalf, and rules that deny calls of
//! agents or require a person's approval.
//!
//! The text in the parentheses of `Read(…)` is a pattern as in `.gitignore`, in a notation in which backslashes and parentheses
//! have a special meaning. A path is escaped for both, so that the rule matches one file.
//!
//! Claude Code applies rules that deny after the hooks, so it never sees a call that a hook suspends.

use std::path::Path;

use crate::claude::environment::config_dir::config_dir;
use crate::claude::settings::settings_file::{given_settings, managed_files, settings_file};
use crate::core::agent::launch::Launch;
use crate::core::requests::agent_command::verb::global_options;
use crate::core::text::shell::quoted;

/// The commands of agent-cli that agents may always call. Nothing else is allowed on the user's behalf. `wait --command` is not
/// among them: it would run any command. It is refused after the other options of `wait`, which these rules allow.
const REQUESTS: [&str; 10] = [
    "Bash(agent-cli spawn:*)", "Bash(agent-cli ask:*)", "Bash(agent-cli resume:*)", "Bash(agent-cli logs:*)",
    "Bash(agent-cli wait --file:*)", "Bash(agent-cli wait --for:*)", "Bash(agent-cli wait --until:*)",
    "Bash(agent-cli wait --agent:*)", "Bash(agent-cli wait --any:*)", "Bash(agent-cli wait --all:*)",
];

/// The rule for the command that returns a result. `own`: the executable of agent-cli. In plan mode a command needs a rule from
/// 2.1.300 on, even if a hook allows it. `None`: Claude Code could take the path for a pattern.
fn hook_result(own: &Path) -> Option<String> {
    let path = own.to_str()?;
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@=, ".contains(c);
    path.chars().all(is_plain).then(|| format!("Bash({} hook-result:*)", quoted(path)))
}

/// All rules. `own`: the executable of agent-cli, if it is the hook. `instructions`: a file that the agent may read wherever it
/// is, because a person named it. `of_skills`: rules of its skills, which Claude Code forgets when a session is resumed. A rule
/// that denies a call takes precedence over all of them.
pub(crate) fn rules(own: Option<&Path>, instructions: Option<&Path>, of_skills: &[String]) -> Vec<String> {
    let requests = REQUESTS.into_iter().map(str::to_owned);
    let own = requests.chain(own.and_then(hook_result)).chain(instructions.and_then(read));
    own.chain(of_skills.iter().cloned()).collect()
}

/// The rule that lets an agent read one file, given by an absolute path. `None`: no rule matches exactly that file, or Claude
/// Code asks about such a path regardless of rules.
pub(crate) fn read(file: &Path) -> Option<String> {
    let path = file.to_str()?;
    // The pattern has no escape for a question mark, and in 2.1.197 none for a backslash before a slash.
    let has_rule = path.starts_with('/')
        && !is_always_asked_about(file)
        && !path.contains('?')
        && !path.chars().any(char::is_control)
        && path.split('/').skip(1).all(|name| !name.is_empty() && !name.ends_with('\\'));
    has_rule.then(|| format!("Read(/{})", escaped(&escaped(path, "\\*[]{}!#"), "\\()")))
}

/// The rule that keeps all file tools from changing paths that begin with a path and continue with `pattern`. `None`: no rule
/// can express it.
pub(crate) fn no_edit(path: &Path, pattern: &str) -> Option<String> {
    let path = path.to_str().filter(|path| path.starts_with('/') && !path.chars().any(char::is_control))?;
    Some(format!("Edit(/{}{pattern})", escaped(&escaped(path, "\\*[]{}!#"), "\\()")))
}

/// The rule that keeps all file tools from reading such paths.
pub(crate) fn no_read(path: &Path, pattern: &str) -> Option<String> {
    Some(no_edit(path, pattern)?.replacen("Edit", "Read", 1))
}

/// Whether a rule may concern a Bash call with this command. If in doubt, it does.
pub(crate) fn may_match(rule: &str, command: &str) -> bool {
    let rule = rule.trim();
    if rule == "*" {
        return true;
    }
    let Some(rest) = rule.strip_prefix("Bash") else { return false };
    let Some(pattern) = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) else { return rest.is_empty() };
    let pattern = pattern.trim().replace('\\', "");
    let prefix = pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *"));
    match prefix {
        _ if pattern.is_empty() => true,
        Some(prefix) => is_like(&format!("{prefix}*"), command),
        None => is_like(&pattern, command),
    }
}

/// Whether `text` matches a pattern in which `*` stands for any text.
fn is_like(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = text.find(part) else { return false };
        text = &text[at + part.len()..];
    }
    text.ends_with(last)
}

/// Whether Claude Code asks before an agent reads a file there, regardless of rules: it treats trailing blanks and dots in a
/// name as an attack on Windows.
pub(crate) fn is_always_asked_about(file: &Path) -> bool {
    file.to_str().is_none_or(|path| path.split('/').any(|name| name.ends_with([' ', '.'])))
}

fn escaped(text: &str, special: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if special.contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// Whether a rule may concern a Bash call that runs `command`, which is the request with these words.
pub(crate) fn may_concern(command: &str, words: &[String], cwd: &Path, launch: &Launch) -> bool {
    let forms = forms(command, words);
    restrictions(cwd, launch).iter().any(|rule| forms.iter().any(|form| may_match(rule, form)))
}

/// The texts that a rule may concern: the command, and the request in it, unchanged and without its quotes, its path and its global
/// options.
fn forms(command: &str, words: &[String]) -> Vec<String> {
    let command = command.trim();
    let program = words.first().and_then(|program| program.rsplit('/').next()).unwrap_or_default();
    let in_it = command.match_indices(program).map(|(at, _)| command[at..].to_owned());
    let arguments = words.get(1..).unwrap_or_default();
    let request = arguments.get(global_options(arguments)..).unwrap_or_default();
    let plain = [arguments, request].map(|arguments| [&[program.to_owned()], arguments].concat().join(" "));
    in_it.chain([command.to_owned(), words.join(" ")]).chain(plain).collect()
}

/// The rules that restrict an agent that works in `cwd`.
fn restrictions(cwd: &Path, launch: &Launch) -> Vec<String> {
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

    use proptest::prelude::*;

    use super::*;
    use crate::core::agent::claude_args::ClaudeArgs;

    fn of(path: &str) -> Option<String> {
        read(Path::new(path))
    }

    #[test]
    fn the_path_is_escaped_for_the_pattern_and_then_for_the_rule() {
        for (path, rule) in [
            ("/home/dev/ins1.md", "Read(//home/dev/ins1.md)"),
            ("/my files/ü 日本.md", "Read(//my files/ü 日本.md)"),
            ("/*/[a-z]/{a,b}/ins.md", r"Read(//\\*/\\[a-z\\]/\\{a,b\\}/ins.md)"),
            ("/a.md) Bash(*", r"Read(//a.md\) Bash\(\\*)"),
            ("/!x/#y/~/$HOME", r"Read(//\\!x/\\#y/~/$HOME)"),
            (r"/back\slash.md", r"Read(//back\\\\slash.md)"),
        ] {
            assert_eq!(of(path).as_deref(), Some(rule), "{path}");
        }
    }

    #[test]
    fn a_rule_against_changes_names_a_path_and_what_begins_with_it() {
        let of = |path: &str, pattern: &str| no_edit(Path::new(path), pattern);
        assert_eq!(of("/s/frames", "/**").as_deref(), Some("Edit(//s/frames/**)"));
        assert_eq!(of("/my [s]/a.db", "*").as_deref(), Some(r"Edit(//my \\[s\\]/a.db*)"));
        assert_eq!((of("relative", ""), of("/a\nb", "")), (None, None));
    }

    #[test]
    fn a_rule_may_match_a_command_by_its_beginning_or_by_a_pattern() {
        let request = "agent-cli spawn --prompt 'a b'";
        for rule in [
            "Bash", " Bash() ", "*", "Bash(*)", "Bash(:*)", "Bash(agent-cli:*)", "Bash(agent-cli spawn:*)",
            "Bash(agent-cli *)", "Bash(*spawn*)", "Bash(agent*prompt*b')", "Bash(agent-cli spawn --prompt 'a b')",
            "Bash(agent-cli spawn --prompt 'a b' *)",
        ] {
            assert!(may_match(rule, request), "{rule}");
        }
        for rule in
            ["Edit", "BashOutput", "Bash(agent-cli ask:*)", "Bash(agent-cli spawn)", "Bash(*spawn)", "Bash(", "Read(*)"]
        {
            assert!(!may_match(rule, request), "{rule}");
        }
    }

    #[test]
    fn the_rule_for_results_is_for_this_program_alone() {
        let of = |own: &str| rules(Some(Path::new(own)), None, &[]).split_off(REQUESTS.len());
        assert_eq!(of("/opt/my bin/agent-cli"), ["Bash('/opt/my bin/agent-cli' hook-result:*)"]);
        for pattern in ["/*/agent-cli", "/a) Bash(b/agent-cli", "/it's/agent-cli", "/a\\b/agent-cli"] {
            assert!(of(pattern).is_empty(), "{pattern}");
        }
    }

    #[test]
    fn a_path_that_no_rule_names_alone_has_none() {
        for path in ["/a?.md", "/a /b.md", "/a.md ", "/.../b.md", "/a/../b.md", r"/a\/b.md", "/a\nb.md", "//b", "b.md"]
        {
            assert_eq!(of(path), None, "{path}");
        }
    }

    proptest! {
        /// Claude Code takes the text between the first and the last unescaped parenthesis and removes its escapes; the rest is a
        /// pattern.
        #[test]
        fn the_rule_is_for_that_path_and_no_other(path in "/[a-z*?\\[\\](){}\\\\!#,.: ~/-]{0,12}") {
            if let Some(rule) = of(&path) {
                let pattern = rule.strip_prefix("Read(").and_then(|rest| rest.strip_suffix(')')).unwrap();
                let pattern = plain(pattern, "()").unwrap();
                prop_assert_eq!(plain(&pattern, "*?[]{}!#").unwrap(), format!("/{path}"));
            }
        }

        #[test]
        fn rules_are_never_fewer_or_more(path: String) {
            let rules = rules(None, Some(Path::new(&path)), &[]);
            prop_assert_eq!(&rules[..REQUESTS.len()], REQUESTS);
            prop_assert!(rules.len() <= REQUESTS.len() + 1);
        }
    }

    /// The text without its escapes, if it has no unescaped special characters.
    fn plain(text: &str, special: &str) -> Option<String> {
        let mut plain = String::new();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '\\' => plain.push(chars.next()?),
                c if special.contains(c) => return None,
                c => plain.push(c),
            }
        }
        Some(plain)
    }

    fn words(command: &str) -> Vec<String> {
        command.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn rules_of_every_place_count() {
        let home = tempfile::tempdir().unwrap();
        let cwd = home.path().join("project");
        let launch = |args: &[&str]| Launch {
            config_dir: Some(home.path().join("config")),
            args: ClaudeArgs::from_recorded(args),
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

    #[test]
    fn global_options_hide_a_request_from_no_rule() {
        for options in ["-q", "--color never", "--color=never --verbose"] {
            let command = format!("agent-cli {options} spawn --prompt x");
            let forms = forms(&command, &words(&command));
            for (rule, expected) in [
                ("Bash(agent-cli spawn:*)".to_owned(), true),
                (format!("Bash(agent-cli {options} spawn:*)"), true),
                ("Bash(agent-cli ask:*)".to_owned(), false),
            ] {
                assert_eq!(forms.iter().any(|form| may_match(&rule, form)), expected, "{rule}: {command}");
            }
        }
    }
}
