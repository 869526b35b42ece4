//! The permission rules that agents get on the user's behalf, as entries of the list `permissions.allow`.
//!
//! The text in the parentheses of `Read(…)` is a pattern as in `.gitignore`, in a notation in which backslashes and parentheses
//! have a special meaning. A path is escaped for both, so that the rule matches one file.

use std::path::Path;

use crate::core::text::shell::quoted;

/// The commands of agent-cli that agents may always call. Nothing else is allowed on the user's behalf. `wait --command` is not
/// among them: it would run whatever an agent likes. It is refused behind the other options of `wait`, which these rules allow.
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
/// is, because a person named it. `of_skills`: what its skills allow it, which Claude Code forgets when a session is resumed. A
/// rule that denies a call takes precedence over all of them.
pub(crate) fn rules(own: Option<&Path>, instructions: Option<&Path>, of_skills: &[String]) -> Vec<String> {
    let requests = REQUESTS.into_iter().map(str::to_owned);
    let own = requests.chain(own.and_then(hook_result)).chain(instructions.and_then(read));
    own.chain(of_skills.iter().cloned()).collect()
}

/// The rule that lets an agent read one file, given by an absolute path. `None`: no rule matches exactly that file, or Claude
/// Code asks about such a path whatever the rules say.
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

/// The rule that keeps every tool for files from changing what begins with a path and continues with `pattern`. `None`: no rule can
/// name it.
pub(crate) fn no_edit(path: &Path, pattern: &str) -> Option<String> {
    let path = path.to_str().filter(|path| path.starts_with('/') && !path.chars().any(char::is_control))?;
    Some(format!("Edit(/{}{pattern})", escaped(&escaped(path, "\\*[]{}!#"), "\\()")))
}

/// Whether a rule may be about a Bash call with this command. In doubt it is.
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

/// Whether `text` is like a pattern in which `*` stands for any text.
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

/// Whether Claude Code asks before an agent reads a file there, whatever the rules say: it treats trailing blanks and dots in a
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
}
