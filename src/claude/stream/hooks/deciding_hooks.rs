//! The user's PermissionRequest hooks, which may decide about a call that needs an approval, from the events of an attempt.
//!
//! The events of a hook name a tool but no call. However, a call is printed before its hooks start.

use std::collections::HashMap;

use serde_json::Value;

use crate::claude::stream::event::StreamEvent;
use crate::core::text::json;

/// What the hooks about a call are doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deciding {
    NotStarted,
    Running,
    Undecided,
    /// One of them has allowed or denied the call.
    Decided,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DecidingHooks {
    /// Those that run, each with its tool.
    running: HashMap<String, String>,
    /// What has happened so far, for each tool.
    counts: HashMap<String, Counts>,
    /// The calls that have no result yet, with their tools and what had happened before they were printed.
    open: HashMap<String, (String, Counts)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    started: usize,
    decisions: usize,
}

pub(crate) const PERMISSION_REQUEST: &str = "PermissionRequest";
/// The exit status of a hook that denies a call.
const DENIES: u64 = 2;

impl DecidingHooks {
    /// `call`: the id of a call of `tool`. If several calls of the tool are open, it is unknown which of them a decision is about.
    pub(crate) fn about(&self, call: &str, tool: &str) -> Deciding {
        let before = self.open.get(call).map(|(_, before)| *before).unwrap_or_default();
        let now = self.counts.get(tool).copied().unwrap_or_default();
        let is_only = self.open.values().filter(|(of, _)| of == tool).count() <= 1;
        match () {
            () if self.running.values().any(|of| of == tool) => Deciding::Running,
            () if now.started == before.started => Deciding::NotStarted,
            () if now.decisions > before.decisions && is_only => Deciding::Decided,
            () => Deciding::Undecided,
        }
    }

    pub(crate) fn absorb(&mut self, event: &StreamEvent) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match event.kind.as_str() {
            Some("system") if event.is_of_a_hook() && event.hook_event == PERMISSION_REQUEST => {
                let hook = text(&event.hook_id);
                if event.subtype == "hook_started" {
                    let name = text(&event.hook_name);
                    let tool = name.split_once(':').map_or("", |(_, tool)| tool);
                    self.counts.entry(tool.to_owned()).or_default().started += 1;
                    self.running.insert(hook, tool.to_owned());
                } else if event.subtype == "hook_response"
                    && let Some(tool) = self.running.remove(&hook)
                    && decides(event)
                {
                    self.counts.entry(tool).or_default().decisions += 1;
                }
            }
            Some("assistant") => {
                for call in event.message.content.iter().filter(|block| block.kind == "tool_use") {
                    let tool = text(&call.name);
                    let before = self.counts.get(&tool).copied().unwrap_or_default();
                    self.open.entry(text(&call.id)).or_insert((tool, before));
                }
            }
            Some("user") => {
                for call in event.message.content.iter().filter_map(|block| block.tool_use_id.as_str()) {
                    self.open.remove(call);
                }
            }
            _ => {}
        }
    }
}

fn decides(event: &StreamEvent) -> bool {
    let printed = event.stdout.as_str().unwrap_or_default();
    let said = json::read::<Value>(printed.as_bytes()).unwrap_or_default();
    let behavior = &said["hookSpecificOutput"]["decision"]["behavior"];
    event.exit_code.as_u64() == Some(DENIES) || behavior == "allow" || behavior == "deny"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn after(events: &[Value]) -> DecidingHooks {
        let mut hooks = DecidingHooks::default();
        for event in events {
            hooks.absorb(&serde_json::from_value(event.clone()).unwrap());
        }
        hooks
    }

    fn call(id: &str) -> Value {
        json!({"type": "assistant", "message": {"content": [{"type": "tool_use", "id": id, "name": "Bash"}]}})
    }

    fn result(id: &str) -> Value {
        json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": id}]}})
    }

    fn start(hook: &str) -> Value {
        json!({"type": "system", "subtype": "hook_started", "hook_event": PERMISSION_REQUEST, "hook_id": hook,
            "hook_name": "PermissionRequest:Bash"})
    }

    fn end(hook: &str, stdout: &str, exit_code: u8) -> Value {
        json!({"type": "system", "subtype": "hook_response", "hook_event": PERMISSION_REQUEST, "hook_id": hook,
            "hook_name": "PermissionRequest:Bash", "stdout": stdout, "exit_code": exit_code})
    }

    const ALLOWS: &str = r#"{"hookSpecificOutput":{"decision":{"behavior":"allow"}}}"#;

    #[test]
    fn a_call_is_decided_on_when_all_of_its_hooks_have_ended_and_one_has_decided() {
        let about = |events: &[Value]| after(events).about("t1", "Bash");
        let (one, other) = (start("h1"), start("h2"));
        assert_eq!(about(&[]), Deciding::NotStarted);
        assert_eq!(about(&[call("t1")]), Deciding::NotStarted);
        assert_eq!(about(&[call("t1"), one.clone(), other.clone(), end("h1", ALLOWS, 0)]), Deciding::Running);
        let ended = |stdout: &str, code| {
            about(&[call("t1"), one.clone(), other.clone(), end("h1", stdout, code), end("h2", "", 0)])
        };
        assert_eq!([ended(ALLOWS, 0), ended("", 2)], [Deciding::Decided; 2]);
        assert_eq!([ended("", 0), ended("no JSON", 0), ended("{}", 1)], [Deciding::Undecided; 3]);
        assert_eq!(after(&[call("t1"), one]).about("t2", "Edit"), Deciding::NotStarted);
    }

    #[test]
    fn what_was_decided_about_another_call_says_nothing() {
        let before = [call("t0"), start("h0"), end("h0", ALLOWS, 0), result("t0"), call("t1")];
        assert_eq!(after(&before).about("t1", "Bash"), Deciding::NotStarted);
        let both = [call("t0"), call("t1"), start("h0"), end("h0", ALLOWS, 0)];
        assert_eq!(after(&both).about("t1", "Bash"), Deciding::Undecided);
    }
}
