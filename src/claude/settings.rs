//! The settings that `claude` is given: the user's own, with our hooks behind theirs.
//!
//! There can be only one `--settings`, so the user's has to be taken out of their arguments and merged into ours.

use std::fs;
use std::ops::Range;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::hook::{BASH, PRE_TOOL_USE};
use super::question::ASK_USER_QUESTION;
use crate::core::shell::quoted;

/// The settings of `user` with the hooks of this program, whose file is `own`, an absolute path. `native_questions`:
/// whether agents have Claude Code's own tool for questions.
///
/// Settings whose shape is wrong stay as they are, because it is for Claude Code to refuse them. A path that is not
/// UTF-8 cannot be named in settings: there are no hooks then, and agents pause by signals.
#[must_use]
pub fn settings(own: &Path, user: Option<&Value>, native_questions: bool) -> Value {
    let mut settings = user.cloned().unwrap_or_else(|| json!({}));
    if let (Some(own), Some(fields)) = (own.to_str(), settings.as_object_mut()) {
        let hooks = fields.entry("hooks").or_insert_with(|| json!({}));
        if let Some(hooks) = hooks.as_object_mut() {
            add_hooks(hooks, &format!("{} hook", quoted(own)), native_questions);
        }
    }
    settings
}

/// The value of the user's own `--settings`, a file or JSON, in their arguments for `claude`. The last one counts.
#[must_use]
pub fn user_settings(args: &[String]) -> Option<&str> {
    given(args).pop().map(|(_, value)| value)
}

/// What the user's `--settings` hold: JSON, or the path of a file with it. `None`: neither.
#[must_use]
pub fn read(given: &str, cwd: &Path) -> Option<Value> {
    let of_file = || fs::read_to_string(cwd.join(given)).ok();
    let text = if given.trim_start().starts_with('{') { given.to_owned() } else { of_file()? };
    serde_json::from_str(&text).ok()
}

/// The user's arguments for `claude` without `--settings`.
#[must_use]
pub fn without_settings(args: &[String]) -> Vec<String> {
    let given = given(args);
    let is_given = |at: &usize| given.iter().any(|(range, _)| range.contains(at));
    (0..args.len()).filter(|at| !is_given(at)).map(|at| args[at].clone()).collect()
}

/// The option that names settings.
const OPTION: &str = "--settings";

/// The commands that the hook is started for. Which of them are requests it decides itself; for all others, which are
/// most, no process is started.
const OWN_COMMANDS: &str = "Bash(*agent-cli*)";

/// Longer than the store waits for another process.
const SECONDS: u32 = 30;

fn add_hooks(hooks: &mut Map<String, Value>, command: &str, native_questions: bool) {
    let hook = json!({"type": "command", "command": command, "timeout": SECONDS});
    if let Some(list) = hooks.entry(PRE_TOOL_USE).or_insert_with(|| json!([])).as_array_mut() {
        let mut of_bash = hook.clone();
        of_bash["if"] = json!(OWN_COMMANDS);
        list.push(json!({"matcher": BASH, "hooks": [of_bash]}));
        if native_questions {
            list.push(json!({"matcher": ASK_USER_QUESTION, "hooks": [hook]}));
        }
    }
}

/// Where `--settings` stands in the arguments, and its values. One without a value is left for `claude` to refuse.
fn given(args: &[String]) -> Vec<(Range<usize>, &str)> {
    let mut found = Vec::new();
    let mut at = 0;
    // What follows two dashes is no option.
    while let Some(arg) = args.get(at).filter(|arg| *arg != "--") {
        let (width, value) = match arg.strip_prefix(OPTION) {
            Some("") => (2, args.get(at + 1).map(String::as_str)),
            Some(rest) => (1, rest.strip_prefix('=')),
            None => (1, None),
        };
        found.extend(value.map(|value| (at..at + width, value)));
        at += width;
    }
    found
}

/// Any JSON, for tests.
#[cfg(test)]
pub(crate) fn any_json() -> impl proptest::strategy::Strategy<Value = Value> {
    use proptest::prelude::*;

    let name = "hooks|PreToolUse|SessionStart|agent_id|tool_name|[a-z]{0,4}";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn args(list: &[&str]) -> Vec<String> {
        list.iter().map(|arg| (*arg).to_owned()).collect()
    }

    #[test]
    fn our_hooks_are_these() {
        let ours = "'/opt/bin/agent-cli' hook";
        let hook = json!({"type": "command", "command": ours, "if": "Bash(*agent-cli*)", "timeout": 30});
        let expected = json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}});
        assert_eq!(settings(Path::new("/opt/bin/agent-cli"), None, false), expected);

        let with_questions = settings(Path::new("/opt/bin/agent-cli"), None, true);
        let hook = json!({"type": "command", "command": ours, "timeout": 30});
        let added = json!({"matcher": "AskUserQuestion", "hooks": [hook]});
        assert_eq!(with_questions["hooks"]["PreToolUse"][1], added);
    }

    #[test]
    fn the_users_settings_and_hooks_are_kept() {
        let user = json!({
            "model": "opus",
            "permissions": {"deny": ["Bash(rm:*)"]},
            "hooks": {
                "PreToolUse": [{"matcher": "*", "hooks": [{"type": "command", "command": "mine"}]}],
                "Stop": [{"hooks": [{"type": "command", "command": "bell"}]}],
            },
        });
        let merged = settings(Path::new("/opt/agent-cli"), Some(&user), false);
        assert_eq!(merged["model"], "opus");
        assert_eq!(merged["permissions"], user["permissions"]);
        assert_eq!(merged["hooks"]["Stop"], user["hooks"]["Stop"]);
        assert_eq!(merged["hooks"]["PreToolUse"][0], user["hooks"]["PreToolUse"][0]);
        assert_eq!(merged["hooks"]["PreToolUse"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn the_path_is_one_word_for_the_shell() {
        let merged = settings(Path::new("/home/o'neil/my programs/$x/agent-cli"), None, false);
        let command = &merged["hooks"]["PreToolUse"][0]["hooks"][0]["command"];
        assert_eq!(command, r"'/home/o'\''neil/my programs/$x/agent-cli' hook");
    }

    #[test]
    fn wrong_settings_are_for_claude_code_to_refuse() {
        for user in [json!(7), json!([]), json!({"hooks": []}), json!({"hooks": null})] {
            assert_eq!(settings(Path::new("/agent-cli"), Some(&user), false), user);
        }
        let merged = settings(Path::new("/agent-cli"), Some(&json!({"hooks": {"PreToolUse": 7}})), false);
        assert_eq!(merged["hooks"]["PreToolUse"], 7);
    }

    #[test]
    fn the_users_own_settings_are_found_and_taken_out() {
        for (given, found, rest) in [
            (&[][..], None, &[][..]),
            (&["--max-turns", "3"], None, &["--max-turns", "3"]),
            (&["--settings", "a.json", "--effort", "low"], Some("a.json"), &["--effort", "low"]),
            (&["--effort", "low", "--settings={}"], Some("{}"), &["--effort", "low"]),
            (&["--settings=a=b", "--settings", "--x"], Some("--x"), &[]),
            (&["--settings", "a", "--settings="], Some(""), &[]),
            (&["--settings"], None, &["--settings"]),
            (&["--setting-sources", "user", "--settingsx"], None, &["--setting-sources", "user", "--settingsx"]),
            (&["--", "--settings", "a"], None, &["--", "--settings", "a"]),
        ] {
            assert_eq!(user_settings(&args(given)), found, "{given:?}");
            assert_eq!(without_settings(&args(given)), rest, "{given:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_of_any_settings_is_lost(user in any_json()) {
            let merged = settings(Path::new("/agent-cli"), Some(&user), false);
            prop_assert!(holds(&merged, &user), "{} in {}", user, merged);
        }

        #[test]
        fn other_arguments_are_kept(list in prop::collection::vec("--settings|--settings=x|--|-x|y", 0..6)) {
            let rest = without_settings(&list);
            prop_assert_eq!(user_settings(&rest), None);
            prop_assert_eq!(user_settings(&list).is_none(), rest == list);
        }
    }

    /// Whether all of `part` is in `whole`: every field, and every list as the beginning of one.
    fn holds(whole: &Value, part: &Value) -> bool {
        match (whole, part) {
            (Value::Object(whole), Value::Object(part)) => {
                part.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| holds(whole, part)))
            }
            (Value::Array(whole), Value::Array(part)) => whole.starts_with(part),
            _ => whole == part,
        }
    }
}
