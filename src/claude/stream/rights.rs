//! An agent's rights, and how they changed while it ran, from its stream.

use std::collections::HashSet;

use serde_json::Value;

use crate::claude::stream::event::StreamEvent;
use crate::core::agent::starting_mode::Modes;

/// An agent's rights, as far as `claude` printed them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rights {
    pub modes: Option<Modes>,
    /// The permission rules that its skills brought.
    pub of_skills: Vec<SkillRules>,
    skill_calls: HashSet<String>,
    has_called: bool,
}

/// The permission rules that a skill brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SkillRules {
    /// The call that started it.
    pub call: String,
    pub rules: Vec<String>,
    /// Whether the call was made before this run began, so that only its result shows that it belongs to a skill.
    pub made_before: bool,
}

/// The tool that starts a skill.
pub(crate) const SKILL: &str = "Skill";

impl Rights {
    pub(crate) fn absorb(&mut self, event: &StreamEvent) {
        if event.kind == "system" && (event.subtype == "init" || event.subtype == "status") {
            self.absorb_mode(&event.permission_mode);
        }
        if !event.parent_tool_use_id.is_null() {
            return;
        }
        for block in &event.message.content {
            if event.kind == "assistant" && block.kind == "tool_use" {
                self.has_called = true;
                self.skill_calls.extend(block.id.as_str().filter(|_| block.name == SKILL).map(str::to_owned));
            }
            if event.kind == "user"
                && let Some(call) = block.tool_use_id.as_str().map(str::to_owned)
                && let Some(rules) = rules_of(&event.tool_use_result)
            {
                // A call that was open when the run began gets its result before the agent makes another.
                let made_before = !self.has_called;
                if made_before || self.skill_calls.contains(&call) {
                    self.of_skills.push(SkillRules { call, rules, made_before });
                }
            }
        }
    }

    fn absorb_mode(&mut self, mode: &Value) {
        let Some(mode) = mode.as_str().map(str::to_owned) else { return };
        match &mut self.modes {
            Some(modes) => modes.last = mode,
            None => self.modes = Some(Modes { first: mode.clone(), last: mode }),
        }
    }
}

/// The permission rules in what Claude Code records with the result of a skill's call.
fn rules_of(beside: &Value) -> Option<Vec<String>> {
    beside["commandName"].as_str().filter(|_| beside["success"] == true)?;
    let rules = beside["allowedTools"].as_array()?.iter().filter_map(Value::as_str).map(str::to_owned);
    Some(rules.collect::<Vec<_>>()).filter(|rules| !rules.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rights(events: &[Value]) -> Rights {
        let mut rights = Rights::default();
        for event in events {
            rights.absorb(&serde_json::from_value(event.clone()).unwrap());
        }
        rights
    }

    #[test]
    fn the_first_mode_and_the_last_are_known() {
        let init = json!({"type": "system", "subtype": "init", "permissionMode": "acceptEdits"});
        let status =
            |mode: Value| json!({"type": "system", "subtype": "status", "status": null, "permissionMode": mode});
        let modes = |first: &str, last: &str| Some(Modes { first: first.into(), last: last.into() });
        assert_eq!(rights(&[]).modes, None);
        assert_eq!(rights(std::slice::from_ref(&init)).modes, modes("acceptEdits", "acceptEdits"));
        assert_eq!(
            rights(&[init.clone(), status(json!("plan")), status(Value::Null)]).modes,
            modes("acceptEdits", "plan")
        );
        assert_eq!(rights(&[init.clone(), status(json!("plan")), init]).modes, modes("acceptEdits", "acceptEdits"));
        let said = json!({"type": "assistant", "subtype": "init", "permissionMode": "bypassPermissions"});
        assert_eq!(rights(&[said]).modes, None);
    }

    #[test]
    fn rules_are_those_of_skills_and_of_nothing_that_looks_like_one() {
        let call = |id: &str, name: &str| json!({"type": "assistant", "message": {"content": [{"type": "tool_use", "id": id, "name": name}]}});
        let result = |id: &str| {
            json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": id}]},
                "tool_use_result": {"success": true, "commandName": "tidy", "allowedTools": ["Bash(touch:*)", 7]}})
        };
        let rules = || vec!["Bash(touch:*)".to_owned()];
        let both = rights(&[call("t1", "Skill"), call("t2", "mcp__echo__say"), result("t1"), result("t2")]);
        assert_eq!(both.of_skills, [SkillRules { call: "t1".into(), rules: rules(), made_before: false }]);
        let made_before = rights(&[result("t0"), call("t1", "Bash"), result("t0")]);
        assert_eq!(made_before.of_skills, [SkillRules { call: "t0".into(), rules: rules(), made_before: true }]);
        let mut of_subagent = result("t1");
        of_subagent["parent_tool_use_id"] = json!("t0");
        assert!(rights(&[call("t1", "Skill"), of_subagent]).of_skills.is_empty());
        let mut failed = result("t1");
        failed["tool_use_result"]["success"] = json!(false);
        assert!(rights(&[call("t1", "Skill"), failed]).of_skills.is_empty());
    }
}
