//! Which options would let a denied call run.

use std::path::Path;

use crate::claude::tools::hook_input::BASH;
use crate::core::agent::denied_call::Denied;
use crate::core::agent::launch::{Launch, OnPermission};

/// The options of `agent-cli spawn` with which the call runs or a person is asked about it: each a list of arguments. Empty if a
/// rule, a hook or the mode denied it, or if it is not certain to help.
pub(crate) fn remedies(denied: &Denied, launch: &Launch, cwd: &Path) -> Vec<Vec<String>> {
    let mode = launch.permission_mode.as_deref();
    // Plan mode permits no changes, even if a rule allows them.
    if !denied.unapproved || mode == Some("plan") {
        return Vec::new();
    }
    let mut remedies = Vec::new();
    if launch.native_questions && launch.on_permission == OnPermission::Deny && !denied.by_subagent {
        remedies.push(vec!["--on-permission".to_owned(), "ask".to_owned()]);
    }
    // A hook that asks for an approval takes precedence over what a rule or a mode allows.
    if denied.asked_by_hook {
        return remedies;
    }
    let rule = |rule: String| vec!["--".to_owned(), format!("--allowedTools={rule}")];
    match denied.tool.as_str() {
        BASH => remedies.extend(bash_rule(&denied.input).map(rule)),
        "Edit" | "MultiEdit" | "NotebookEdit" | "Write" => match place(&denied.input, cwd) {
            Some(FileLocation::Inside) if matches!(mode, None | Some("default")) => {
                remedies.push(vec!["--permission-mode".to_owned(), "acceptEdits".to_owned()]);
            }
            Some(FileLocation::Outside) => remedies.push(rule(format!("Edit(/{})", denied.input))),
            _ => {}
        },
        "Read" => {
            if let Some(FileLocation::Outside) = place(&denied.input, cwd) {
                remedies.push(rule(format!("Read(/{})", denied.input)));
            }
        }
        // The words in other tools' rules have other meanings, but a tool's bare name is a rule for each.
        tool if is_name(tool) => remedies.push(rule(tool.to_owned())),
        _ => {}
    }
    remedies
}

enum FileLocation {
    Inside,
    Outside,
}

/// The directory of a file, if Claude Code has no special rule for the file, as it has for names that begin with a dot, and a
/// permission rule can name it.
fn place(file: &str, cwd: &Path) -> Option<FileLocation> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let has_dot = |path: &Path| path.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(b"."));
    let path = Path::new(file);
    match path.strip_prefix(cwd) {
        Ok(inside) => (!has_dot(inside) && !file.ends_with('…')).then_some(FileLocation::Inside),
        Err(_) => (path.is_absolute() && file.chars().all(plain) && !has_dot(path)).then_some(FileLocation::Outside),
    }
}

/// The rule that allows a command: a single command, without anything special to a shell or a rule, and without other
/// directories, which no rule for a command allows.
fn bash_rule(command: &str) -> Option<String> {
    /// Programs whose first argument determines what they do.
    const COMMANDED: [&str; 12] =
        ["bundle", "cargo", "git", "go", "gradle", "make", "mvn", "npm", "pip", "pnpm", "poetry", "yarn"];
    let plain = |c: char| c.is_ascii_alphanumeric() || " ./_:+-=@%".contains(c);
    let words: Vec<&str> = command.split(' ').collect();
    let outside = |word: &str| word.starts_with('/') || word.contains("=/") || word.contains("..");
    let is_program = words.first().is_some_and(|word| is_name(word));
    if !is_program || !command.chars().all(plain) || words.iter().any(|word| word.is_empty() || outside(word)) {
        return None;
    }
    Some(match words.as_slice() {
        [program, first, ..] if COMMANDED.contains(program) && is_name(first) => format!("Bash({program} {first}:*)"),
        _ => format!("Bash({command})"),
    })
}

fn is_name(word: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    word.starts_with(|c: char| c.is_ascii_alphabetic()) && word.chars().all(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unapproved(tool: &str, input: &str) -> Denied {
        let (tool, input) = (tool.to_owned(), input.to_owned());
        Denied { tool, input, said: String::new(), unapproved: true, asked_by_hook: false, by_subagent: false }
    }

    fn advice(denied: &Denied, launch: &Launch) -> Vec<String> {
        remedies(denied, launch, Path::new("/p")).iter().map(|remedy| remedy.join(" ")).collect()
    }

    #[test]
    fn advice_fits_the_call() {
        let launch = Launch { native_questions: true, ..Launch::default() };
        let ask = "--on-permission ask";
        for (tool, input, expected) in [
            ("Bash", "cargo test --all", Some("-- --allowedTools=Bash(cargo test:*)")),
            ("Bash", "touch made", Some("-- --allowedTools=Bash(touch made)")),
            ("Bash", "git -C x push", Some("-- --allowedTools=Bash(git -C x push)")),
            // No rule for a command allows another directory, and some characters are special in rules.
            ("Bash", "touch /etc/x", None),
            ("Bash", "touch ../x", None),
            ("Bash", "a; b", None),
            ("Bash", "touch a⏎b", None),
            ("Bash", "rm *", None),
            ("Bash", "echo $(id)", None),
            ("Bash", "./x", None),
            ("Bash", "", None),
            ("Write", "/p/src/a.rs", Some("--permission-mode acceptEdits")),
            ("Edit", "/p/.claude/settings.json", None),
            ("Edit", "/q/a.rs", Some("-- --allowedTools=Edit(//q/a.rs)")),
            ("Read", "/q/a.rs", Some("-- --allowedTools=Read(//q/a.rs)")),
            ("Read", "/q/a(b).rs", None),
            ("Read", "/q/…", None),
            ("WebSearch", "{\"query\":\"x\"}", Some("-- --allowedTools=WebSearch")),
            ("mcp__a__b", "{}", Some("-- --allowedTools=mcp__a__b")),
            ("x) Bash(*", "{}", None),
        ] {
            let expected: Vec<&str> = [ask].into_iter().chain(expected).collect();
            assert_eq!(advice(&unapproved(tool, input), &launch), expected, "{tool} {input}");
        }
    }

    #[test]
    fn what_would_not_help_is_not_advised() {
        let launch = Launch { native_questions: true, ..Launch::default() };
        let (touch, edit) = (unapproved("Bash", "touch a"), unapproved("Edit", "/p/a"));
        assert_eq!(advice(&Denied { unapproved: false, ..touch.clone() }, &launch), [""; 0]);
        assert_eq!(advice(&Denied { by_subagent: true, ..edit.clone() }, &launch), ["--permission-mode acceptEdits"]);
        let with_mode = |mode: &str| Launch { permission_mode: Some(mode.into()), ..launch.clone() };
        assert_eq!(advice(&touch, &with_mode("plan")), [""; 0]);
        assert_eq!(advice(&edit, &with_mode("acceptEdits")), ["--on-permission ask"]);
        let asking = Launch { on_permission: OnPermission::Ask, ..launch.clone() };
        assert_eq!(advice(&edit, &asking), ["--permission-mode acceptEdits"]);
        assert_eq!(advice(&edit, &Launch::default()), ["--permission-mode acceptEdits"], "nobody can be asked");
    }
}
