//! The settings that `claude` gets: the user's, with agent-cli's rules and hooks added after them.
//!
//! There can be only one `--settings`, so the user's is removed from their arguments and merged into ours. Rules are entries of a
//! list there, whereas an argument with rules is split at blanks and commas, which a path may contain.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::claude::environment::agent_variables;
use crate::claude::environment::regular_file;
use crate::claude::tools::ask_user_question::ASK_USER_QUESTION;
use crate::claude::tools::exit_plan_mode::EXIT_PLAN_MODE;
use crate::claude::tools::hook_input::{BASH, HookAnswer, POST_TOOL_USE, PRE_TOOL_USE};
use crate::claude::tools::native_agents;
use crate::claude::tools::scheduling::{CRON_CREATE, CRON_DELETE, SCHEDULE_WAKEUP};
use crate::core::text::shell::quoted;

/// The settings of `user` with these permission rules and, if given, agent-cli's hooks. Variables that break a chain are set to
/// the empty string.
///
/// Settings of the wrong shape are not changed, so that Claude Code refuses them. A path that is not UTF-8 cannot be named in
/// settings: then there are no hooks, and agents pause by signals.
pub(crate) fn settings(user: Option<&Value>, rules: &[String], own: Option<&OwnHooks<'_>>) -> Value {
    let mut settings = user.cloned().unwrap_or_else(|| json!({}));
    let Some(fields) = settings.as_object_mut() else { return settings };
    if let Some(variables) = fields.entry("env").or_insert_with(|| json!({})).as_object_mut() {
        variables.extend(agent_variables::BREAKING.map(|name| (name.to_owned(), json!(""))));
    }
    if let Some(permissions) = fields.entry("permissions").or_insert_with(|| json!({})).as_object_mut()
        && let Some(allowed) = permissions.entry("allow").or_insert_with(|| json!([])).as_array_mut()
    {
        allowed.extend(rules.iter().cloned().map(Value::from));
    }
    if let Some(own) = own
        && let Some(program) = own.program.to_str()
        && let Some(hooks) = fields.entry("hooks").or_insert_with(|| json!({})).as_object_mut()
    {
        let program = format!("{} hook", quoted(program));
        match own.denies_all {
            Some(reason) => deny_all(hooks, reason),
            None => add_hooks(hooks, &program, own),
        }
        own.stop.add_to(hooks, &program);
        if own.limits_agents
            && own.denies_all.is_none()
            && let Some(list) = hooks.entry(PRE_TOOL_USE).or_insert_with(|| json!([])).as_array_mut()
        {
            let hook = json!({"type": "command", "command": program, "timeout": SECONDS});
            list.push(json!({"matcher": native_agents::ALL.join("|"), "hooks": [hook]}));
        }
    }
    settings
}

/// Sets variables of agents, whatever other settings say.
pub(crate) fn set_variables(settings: &mut Value, variables: [(&str, String); 2]) {
    let Some(fields) = settings.as_object_mut() else { return };
    if let Some(set) = fields.entry("env").or_insert_with(|| json!({})).as_object_mut() {
        set.extend(variables.map(|(name, value)| (name.to_owned(), value.into())));
    }
}

/// Adds rules that deny calls, which no other rule and no permission mode overrides.
pub(crate) fn deny(settings: &mut Value, rules: Vec<String>) {
    let Some(fields) = settings.as_object_mut() else { return };
    if let Some(permissions) = fields.entry("permissions").or_insert_with(|| json!({})).as_object_mut()
        && let Some(denied) = permissions.entry("deny").or_insert_with(|| json!([])).as_array_mut()
    {
        denied.extend(rules.into_iter().map(Value::from));
    }
}

/// Adds a hook that denies every call. It uses only the shell.
fn deny_all(hooks: &mut Map<String, Value>, reason: &str) {
    let answer = HookAnswer::Deny { reason: reason.to_owned() }.to_json().unwrap_or_default().to_string();
    let hook = json!({"type": "command", "command": format!("echo {}", quoted(&answer)), "timeout": SECONDS});
    if let Some(list) = hooks.entry(PRE_TOOL_USE).or_insert_with(|| json!([])).as_array_mut() {
        list.push(json!({"hooks": [hook]}));
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnHooks<'a> {
    /// The executable, an absolute path.
    pub program: &'a Path,
    /// Whether agents have Claude Code's own tool for questions.
    pub native_questions: bool,
    /// Whether it is limited how many agents of Claude Code's own they start.
    pub limits_agents: bool,
    /// For how many seconds the hook of a command may wait for the result of its request.
    pub linger: u64,
    /// How many agents of all chains may run, if there is a limit.
    pub parallel_total: Option<u32>,
    /// How to stop an agent when its running tool is done.
    pub stop: StopHook<'a>,
    /// If it may call no tool at all: what it is told.
    pub denies_all: Option<&'a str>,
}

/// A hook that stops the agent after a tool call once a file exists, and gives it messages once another one does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StopHook<'a> {
    pub file: &'a Path,
    /// The file that exists while there are messages for the agent.
    pub message_file: &'a Path,
    /// Whether Claude Code has a hook for all calls of a message together. It also stops the agent after a call that failed.
    pub after_all_calls: bool,
}

impl StopHook<'_> {
    /// It runs after every call, so it uses only the shell, which Claude Code starts in any case.
    fn add_to(&self, hooks: &mut Map<String, Value>, program: &str) {
        let (Some(file), Some(message)) = (self.file.to_str(), self.message_file.to_str()) else { return };
        let answer = json!({"continue": false, "stopReason": "it was stopped with agent-cli"}).to_string();
        let (file, message, answer) = (quoted(file), quoted(message), quoted(&answer));
        let command =
            format!("if [ -e {file} ]; then echo {answer}; elif [ -e {message} ]; then {program} --messages; fi");
        let event = if self.after_all_calls { "PostToolBatch" } else { POST_TOOL_USE };
        if let Some(list) = hooks.entry(event).or_insert_with(|| json!([])).as_array_mut() {
            list.push(json!({"hooks": [{"type": "command", "command": command, "timeout": SECONDS}]}));
        }
    }
}

/// The value of the user's `--settings`: JSON, or the path of a JSON file. `None`: neither.
pub(crate) fn read(given: &str, cwd: &Path) -> Option<Value> {
    let of_file = || regular_file::read_text(&cwd.join(given)).ok();
    let text = if given.trim_start().starts_with('{') { given.to_owned() } else { of_file()? };
    serde_json::from_str(&text).ok()
}

/// The option for settings. If it is given twice, Claude Code uses only the last.
pub(crate) const OPTION: &str = "--settings";

/// The commands for which the hook is started; it decides itself which of them are requests. All others, which are most, start
/// no process.
const OWN_COMMANDS: &str = "Bash(*agent-cli*)";

/// Shells that may read commands from a here-document, which the condition above does not see.
const SHELLS: [&str; 2] = ["Bash(*sh)", "Bash(*sh -*)"];

/// The commands that return results. A similar command of another program costs a process and nothing else.
const RESULTS: &str = "Bash(*agent-cli* hook-result *)";

/// Longer than the store waits for another process.
const SECONDS: u64 = 30;

/// The tools with which agents wait for a time or leave plan mode, and the events of their calls that start the hook.
const OF_WAITS: [(&str, &str); 5] = [
    (PRE_TOOL_USE, SCHEDULE_WAKEUP),
    (PRE_TOOL_USE, CRON_CREATE),
    (PRE_TOOL_USE, EXIT_PLAN_MODE),
    (POST_TOOL_USE, CRON_CREATE),
    (POST_TOOL_USE, CRON_DELETE),
];

/// The options by which a program of agent-cli in an agent's `claude` knows how long it may wait.
pub(crate) fn lingers(seconds: u64, parallel_total: Option<u32>) -> String {
    match (seconds, parallel_total) {
        (0, _) => String::new(),
        (linger, None) => format!(" --linger {linger}"),
        (linger, Some(total)) => format!(" --linger {linger} --parallel-total {total}"),
    }
}

fn add_hooks(hooks: &mut Map<String, Value>, command: &str, own: &OwnHooks<'_>) {
    let lingers = lingers(own.linger, own.parallel_total);
    let hook = json!({"type": "command", "command": command, "timeout": SECONDS});
    for (event, rule) in [(PRE_TOOL_USE, OWN_COMMANDS), (POST_TOOL_USE, RESULTS)] {
        if let Some(list) = hooks.entry(event).or_insert_with(|| json!([])).as_array_mut() {
            let with = |command: String, rule: &str, seconds: u64| json!({"type": "command", "command": command, "if": rule, "timeout": seconds});
            let of_bash = if event == PRE_TOOL_USE {
                let mut before = vec![with(format!("{command}{lingers}"), rule, SECONDS + own.linger)];
                // It only refuses: if a command meets several conditions, all these hooks run at the same time.
                before.extend(SHELLS.map(|rule| with(format!("{command} --embedded"), rule, SECONDS)));
                before
            } else {
                vec![with(command.to_owned(), rule, SECONDS)]
            };
            list.push(json!({"matcher": BASH, "hooks": of_bash}));
            if own.native_questions {
                let asks = if event == PRE_TOOL_USE {
                    let command = format!("{command}{lingers}");
                    json!({"type": "command", "command": command, "timeout": SECONDS + own.linger})
                } else {
                    hook.clone()
                };
                list.push(json!({"matcher": ASK_USER_QUESTION, "hooks": [asks]}));
            }
            let tools: Vec<_> = OF_WAITS.iter().filter(|(of, _)| *of == event).map(|(_, tool)| *tool).collect();
            list.push(json!({"matcher": tools.join("|"), "hooks": [hook]}));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::core::text::json::any_json;

    fn hooks_of(program: &str, native_questions: bool) -> OwnHooks<'_> {
        let (file, message_file) = (Path::new("/state/it's/stop"), Path::new("/state/message"));
        let stop = StopHook { file, message_file, after_all_calls: true };
        OwnHooks {
            program: Path::new(program),
            native_questions,
            limits_agents: false,
            linger: 0,
            parallel_total: None,
            stop,
            denies_all: None,
        }
    }

    fn own() -> OwnHooks<'static> {
        hooks_of("/opt/agent-cli", false)
    }

    fn rule() -> Vec<String> {
        vec!["Read(//ins.md)".to_owned()]
    }

    #[test]
    fn our_rules_and_hooks_are_these() {
        let own = hooks_of("/opt/bin/agent-cli", false);
        let ours = "'/opt/bin/agent-cli' hook";
        let hook = json!({"type": "command", "command": ours, "if": "Bash(*agent-cli*)", "timeout": 30});
        let shell = |rule: &str| json!({"type": "command", "command": format!("{ours} --embedded"), "if": format!("Bash({rule})"), "timeout": 30});
        let always = json!({"type": "command", "command": ours, "timeout": 30});
        let mut after = hook.clone();
        after["if"] = json!("Bash(*agent-cli* hook-result *)");
        let allowed = json!({"allow": ["Read(//ins.md)"]});
        let env: Map<_, _> = agent_variables::BREAKING.map(|name| (name.to_owned(), json!(""))).into_iter().collect();
        let stop = r#"if [ -e '/state/it'\''s/stop' ]; then echo '{"continue":false,"stopReason":"it was stopped with agent-cli"}'; elif [ -e '/state/message' ]; then '/opt/bin/agent-cli' hook --messages; fi"#;
        let stop = json!({"hooks": [{"type": "command", "command": stop, "timeout": 30}]});
        let expected = json!({"env": env, "permissions": allowed, "hooks": {
            "PreToolUse": [{"matcher": "Bash", "hooks": [hook, shell("*sh"), shell("*sh -*")]}, {"matcher": "ScheduleWakeup|CronCreate|ExitPlanMode", "hooks": [always]}],
            "PostToolUse": [{"matcher": "Bash", "hooks": [after]}, {"matcher": "CronCreate|CronDelete", "hooks": [always]}],
            "PostToolBatch": [stop],
        }});
        assert_eq!(settings(None, &rule(), Some(&own)), expected);
        let older = OwnHooks { stop: StopHook { after_all_calls: false, ..own.stop }, ..own };
        assert_eq!(settings(None, &rule(), Some(&older))["hooks"]["PostToolUse"][2], stop);
        assert_eq!(settings(None, &rule(), None), json!({"env": env, "permissions": allowed}), "without hooks");

        let with_questions = settings(None, &rule(), Some(&hooks_of("/opt/bin/agent-cli", true)));
        let hook = json!({"type": "command", "command": ours, "timeout": 30});
        let added = json!({"matcher": "AskUserQuestion", "hooks": [hook]});
        for event in ["PreToolUse", "PostToolUse"] {
            assert_eq!(with_questions["hooks"][event][1], added);
        }
    }

    #[test]
    fn the_users_settings_and_hooks_are_kept() {
        let user = json!({
            "model": "opus",
            "permissions": {"deny": ["Bash(rm:*)"], "allow": ["Edit"]},
            "hooks": {
                "PreToolUse": [{"matcher": "*", "hooks": [{"type": "command", "command": "mine"}]}],
                "Stop": [{"hooks": [{"type": "command", "command": "bell"}]}],
            },
        });
        let merged = settings(Some(&user), &rule(), Some(&own()));
        assert_eq!(merged["model"], "opus");
        assert_eq!(merged["permissions"], json!({"deny": ["Bash(rm:*)"], "allow": ["Edit", "Read(//ins.md)"]}));
        assert_eq!(merged["hooks"]["Stop"], user["hooks"]["Stop"]);
        assert_eq!(merged["hooks"]["PreToolUse"][0], user["hooks"]["PreToolUse"][0]);
        assert_eq!(merged["hooks"]["PreToolUse"].as_array().map(Vec::len), Some(3));
    }

    #[test]
    fn what_is_denied_is_added_to_what_the_user_denies() {
        let mut merged = json!({"permissions": {"deny": ["Bash(rm:*)"]}});
        deny(&mut merged, rule());
        assert_eq!(merged["permissions"]["deny"], json!(["Bash(rm:*)", "Read(//ins.md)"]));
        let mut wrong = json!({"permissions": {"deny": "Bash"}});
        deny(&mut wrong, rule());
        assert_eq!(wrong, json!({"permissions": {"deny": "Bash"}}));
    }

    #[test]
    fn the_path_is_one_word_for_the_shell() {
        let merged = settings(None, &[], Some(&hooks_of("/home/o'neil/my programs/$x/agent-cli", false)));
        let command = &merged["hooks"]["PreToolUse"][0]["hooks"][0]["command"];
        assert_eq!(command, r"'/home/o'\''neil/my programs/$x/agent-cli' hook");
    }

    #[test]
    fn wrong_settings_are_for_claude_code_to_refuse() {
        for user in [json!(7), json!([]), json!({"env": 7, "hooks": [], "permissions": null})] {
            assert_eq!(settings(Some(&user), &rule(), Some(&own())), user);
        }
        let user = json!({"env": 7, "hooks": {"PreToolUse": 7, "PostToolUse": 7, "PostToolBatch": 7}, "permissions": {"allow": "Bash"}});
        assert_eq!(settings(Some(&user), &rule(), Some(&own())), user);
    }

    proptest! {
        #[test]
        fn nothing_of_any_settings_is_lost(user in any_json()) {
            let merged = settings(Some(&user), &rule(), Some(&own()));
            prop_assert!(holds(&merged, &user), "{} in {}", user, merged);
        }
    }

    /// Whether `whole` contains all of `part`: every field, and every list as a prefix of its list.
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
