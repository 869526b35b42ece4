//! Which of the user's hooks ask for an approval of a call, and why, from the events of an attempt.
//!
//! The events of a hook name a tool but no call. However, a call is printed before its hooks start, they start together, and
//! they end before its result is printed. If several calls are still possible, the reason is given for none: a wrong reason
//! would be false information.

use std::collections::HashSet;

use serde_json::Value;

use crate::claude::stream::event::StreamEvent;
use crate::core::text::json;

/// The hooks before the calls that have no result yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AskingHooks {
    open: Vec<OpenCall>,
    groups: Vec<Group>,
    /// The first of the groups that hooks started for in a row.
    starting: Option<usize>,
    /// Tools, each with a reason why a hook asked for an approval of a call.
    asked: HashSet<(String, String)>,
}

/// Which of several reasons for one call is given: this differs between versions of Claude Code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prevailing {
    /// The reason of the hook that ended first.
    First,
    /// The reason of the hook that ended last.
    Last,
}

#[derive(Clone, Debug, PartialEq)]
struct OpenCall {
    id: String,
    tool: String,
}

/// The hooks before one call.
#[derive(Clone, Debug, PartialEq)]
struct Group {
    tool: String,
    /// The calls that it may belong to. Empty: an earlier attempt printed its call, or no call fits.
    calls: Vec<String>,
    running: Vec<String>,
    /// The reasons of those that ask, in the order in which they ended.
    reasons: Vec<String>,
}

const EVENT: &str = "PreToolUse";

/// More different reasons than hooks give.
const MOST: usize = 1_000;

impl AskingHooks {
    /// Whether the call was printed and has no result yet, whether the agent or a subagent made it.
    pub(crate) fn knows(&self, call: &str) -> bool {
        self.open.iter().any(|open| open.id == call)
    }

    /// Why a hook asks for an approval of this call, in the words of plain `claude -p`. `None`: no hook does, or it is not
    /// certain that it means this call.
    pub(crate) fn reason(&self, call: &str, tool: &str, prevailing: Prevailing) -> Option<&str> {
        let is_known = self.knows(call);
        let may_be_its =
            |group: &&Group| if is_known { group.calls.iter().any(|id| id == call) } else { group.calls.is_empty() };
        let mut asking = self.groups.iter().filter(|group| group.tool == tool && !group.reasons.is_empty());
        let group = asking.find(may_be_its)?;
        if group.calls.len() > 1 || asking.any(|other| may_be_its(&other)) {
            return None;
        }
        let reason = match prevailing {
            Prevailing::First => group.reasons.first(),
            Prevailing::Last => group.reasons.last(),
        };
        reason.map(String::as_str)
    }

    /// Whether a hook asked for an approval of a call of this tool for this reason, or for one that begins with it.
    pub(crate) fn have_asked(&self, tool: &str, reason: &str) -> bool {
        !reason.is_empty() && self.asked.iter().any(|(of, why)| of == tool && why.starts_with(reason))
    }

    pub(crate) fn absorb(&mut self, event: &StreamEvent) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let is_start = event.is_of_a_hook() && event.subtype == "hook_started";
        if !is_start {
            self.starting = None;
        }
        match event.kind.as_str() {
            Some("system") if event.is_of_a_hook() && event.hook_event == EVENT => {
                let name = text(&event.hook_name);
                let hook = text(&event.hook_id);
                if is_start {
                    self.start(hook, name.split_once(':').map_or("", |(_, tool)| tool));
                } else if event.subtype == "hook_response" {
                    self.end(&hook, why_it_asks(&name, &event.stdout));
                }
            }
            Some("assistant") => {
                let calls = event.message.content.iter().filter(|block| block.kind == "tool_use");
                for call in calls {
                    let (id, tool) = (text(&call.id), text(&call.name));
                    if !self.knows(&id) {
                        self.open.push(OpenCall { id, tool });
                    }
                }
            }
            Some("user") => {
                let results = event.message.content.iter().filter_map(|block| block.tool_use_id.as_str());
                results.for_each(|call| self.close(call));
            }
            _ => {}
        }
    }

    fn start(&mut self, hook: String, tool: &str) {
        let from = *self.starting.get_or_insert(self.groups.len());
        if let Some(group) = self.groups[from..].iter_mut().find(|group| group.tool == tool) {
            group.running.push(hook);
            return;
        }
        let begun =
            |call: &String| self.groups.iter().any(|group| group.calls.as_slice() == std::slice::from_ref(call));
        let calls: Vec<_> = self.open.iter().filter(|call| call.tool == tool).map(|call| call.id.clone()).collect();
        let (old, new): (Vec<_>, Vec<_>) = calls.into_iter().partition(begun);
        let calls = if new.is_empty() { old } else { new };
        self.groups.push(Group { tool: tool.to_owned(), calls, running: vec![hook], reasons: Vec::new() });
        self.narrow();
    }

    fn end(&mut self, hook: &str, reason: Option<String>) {
        let Some(group) = self.groups.iter_mut().find(|group| group.running.iter().any(|id| id == hook)) else {
            return;
        };
        group.running.retain(|id| id != hook);
        if let Some(reason) = reason {
            if self.asked.len() < MOST {
                self.asked.insert((group.tool.clone(), reason.clone()));
            }
            group.reasons.push(reason);
        }
    }

    fn close(&mut self, call: &str) {
        self.open.retain(|open| open.id != call);
        for group in &mut self.groups {
            // A call whose hooks run has no result yet.
            if !group.running.is_empty() && group.calls.len() > 1 {
                group.calls.retain(|id| id != call);
            }
        }
        let open = &self.open;
        let is_open = |id: &String| open.iter().any(|open| open.id == *id);
        self.groups.retain(|group| group.calls.is_empty() || group.calls.iter().any(is_open));
        self.narrow();
    }

    /// What is certain for one group cannot be true for another.
    fn narrow(&mut self) {
        loop {
            let certain: Vec<String> = self.groups.iter().filter_map(Group::only_call).map(str::to_owned).collect();
            let mut has_changed = false;
            for group in self.groups.iter_mut().filter(|group| group.calls.len() > 1) {
                let others: Vec<_> = group.calls.iter().filter(|id| !certain.contains(id)).cloned().collect();
                if !others.is_empty() && others.len() < group.calls.len() {
                    group.calls = others;
                    has_changed = true;
                }
            }
            if !has_changed {
                return;
            }
        }
    }
}

impl Group {
    fn only_call(&self) -> Option<&str> {
        let [call] = self.calls.as_slice() else { return None };
        Some(call)
    }
}

/// Why a hook that printed this asks for an approval, if it does.
fn why_it_asks(name: &str, printed: &Value) -> Option<String> {
    let printed: Value = json::read(printed.as_str()?.as_bytes()).ok()?;
    let said = &printed["hookSpecificOutput"];
    if said["hookEventName"] != EVENT || said["permissionDecision"] != "ask" {
        return None;
    }
    let reason = said["permissionDecisionReason"].as_str().filter(|reason| !reason.is_empty());
    Some(reason.map_or_else(|| format!("Hook {name} asked for confirmation for this tool"), str::to_owned))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn call(id: &str, tool: &str) -> Value {
        json!({"type": "assistant", "message": {"content": [{"type": "tool_use", "id": id, "name": tool, "input": {}}]}})
    }

    fn result(id: &str) -> Value {
        json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": id}]}})
    }

    fn of_hook(subtype: &str, hook: &str, tool: &str, stdout: &str) -> Value {
        json!({"type": "system", "subtype": subtype, "hook_id": hook, "hook_event": EVENT,
            "hook_name": format!("PreToolUse:{tool}"), "stdout": stdout})
    }

    fn starts(hook: &str, tool: &str) -> Value {
        of_hook("hook_started", hook, tool, "")
    }

    fn asks(hook: &str, tool: &str, reason: &str) -> Value {
        let said = json!({"hookSpecificOutput": {"hookEventName": EVENT, "permissionDecision": "ask",
            "permissionDecisionReason": reason}});
        of_hook("hook_response", hook, tool, &format!("\n{said:#}\n"))
    }

    fn says(hook: &str, stdout: &str) -> Value {
        of_hook("hook_response", hook, "Bash", stdout)
    }

    fn seen(events: impl IntoIterator<Item = Value>) -> AskingHooks {
        let mut hooks = AskingHooks::default();
        events.into_iter().for_each(|event| hooks.absorb(&serde_json::from_value(event).unwrap()));
        hooks
    }

    fn reason<'a>(hooks: &'a AskingHooks, call: &str) -> Option<&'a str> {
        hooks.reason(call, "Bash", Prevailing::First)
    }

    #[test]
    fn the_reason_of_a_hook_is_that_of_the_call_before_it() {
        let hooks =
            seen([call("a", "Bash"), starts("1", "Bash"), starts("2", "Bash"), asks("2", "Bash", "x"), says("1", "")]);
        assert_eq!(reason(&hooks, "a"), Some("x"));
        assert_eq!(reason(&hooks, "b"), None);
        assert_eq!(hooks.reason("a", "Read", Prevailing::First), None);
    }

    #[test]
    fn of_several_reasons_one_prevails() {
        let ends = [asks("2", "Bash", ""), asks("1", "Bash", "slow")];
        let hooks = seen([call("a", "Bash"), starts("1", "Bash"), starts("2", "Bash")].into_iter().chain(ends));
        let unsaid = "Hook PreToolUse:Bash asked for confirmation for this tool";
        assert_eq!(hooks.reason("a", "Bash", Prevailing::First), Some(unsaid));
        assert_eq!(hooks.reason("a", "Bash", Prevailing::Last), Some("slow"));
    }

    #[test]
    fn calls_that_run_one_after_another_have_reasons_of_their_own() {
        // As printed by 2.1.330: the result of the first comes after the start of the second's hooks.
        let first = [call("a", "Bash"), starts("1", "Bash"), call("b", "Bash"), asks("1", "Bash", "of a")];
        let hooks = seen(first.clone());
        assert_eq!((reason(&hooks, "a"), reason(&hooks, "b")), (Some("of a"), None));
        let then = [starts("2", "Bash"), result("a"), asks("2", "Bash", "of b")];
        assert_eq!(reason(&seen(first.clone().into_iter().chain(then)), "b"), Some("of b"));
        let no_hook = [result("a")];
        assert_eq!(reason(&seen(first.into_iter().chain(no_hook)), "b"), None);
        let only_second =
            [call("a", "Bash"), call("b", "Bash"), starts("1", "Bash"), result("a"), asks("1", "Bash", "of b")];
        assert_eq!(reason(&seen(only_second), "b"), Some("of b"));
    }

    #[test]
    fn calls_side_by_side_have_reasons_of_their_own_or_none() {
        let begun = [call("a", "Bash"), starts("1", "Bash"), call("b", "Bash"), starts("2", "Bash")];
        let hooks = seen(begun.into_iter().chain([asks("2", "Bash", "of b"), asks("1", "Bash", "of a")]));
        assert_eq!((reason(&hooks, "a"), reason(&hooks, "b")), (Some("of a"), Some("of b")));
        let together = [call("a", "Bash"), call("b", "Bash"), starts("1", "Bash"), starts("2", "Bash")];
        let hooks = seen(together.into_iter().chain([asks("2", "Bash", "of b"), says("1", "")]));
        assert_eq!((reason(&hooks, "a"), reason(&hooks, "b")), (None, None));
    }

    #[test]
    fn a_resumed_call_is_one_that_was_not_printed() {
        let resumed = [starts("1", "Bash"), asks("1", "Bash", "hm")];
        assert_eq!(reason(&seen(resumed.clone()), "a"), Some("hm"));
        let later = [call("b", "Bash"), starts("2", "Bash"), says("2", "")];
        assert_eq!(reason(&seen(resumed.into_iter().chain(later)), "b"), None);
    }

    #[test]
    fn what_does_not_ask_has_no_reason() {
        let asking = json!({"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "x"}});
        let allowing = json!({"hookSpecificOutput": {"hookEventName": EVENT, "permissionDecision": "allow"}});
        for said in ["", "no JSON", "[]", &asking.to_string(), &allowing.to_string(), &format!("hello\n{asking}")] {
            let hooks = seen([call("a", "Bash"), starts("1", "Bash"), says("1", said)]);
            assert_eq!(reason(&hooks, "a"), None, "{said}");
        }
    }

    proptest! {
        /// Calls in sequence, some without a hook, some with several, some of which ask.
        #[test]
        fn no_call_is_given_the_reason_of_another(
            calls in prop::collection::vec((0..3usize, any::<bool>(), any::<bool>(), any::<bool>()), 1..6),
        ) {
            let mut hooks = AskingHooks::default();
            let absorb = |event: Value, hooks: &mut AskingHooks| hooks.absorb(&serde_json::from_value(event).unwrap());
            let mut printed = 0;
            let mut late: Option<Value> = None;
            for (at, (count, is_asking, all_are_printed, is_late)) in calls.iter().enumerate() {
                let until = if *all_are_printed { calls.len() } else { at + 1 };
                for next in printed..until {
                    absorb(call(&next.to_string(), "Bash"), &mut hooks);
                }
                printed = printed.max(until);
                let hook = |number: usize| format!("{at}.{number}");
                (0..*count).for_each(|number| absorb(starts(&hook(number), "Bash"), &mut hooks));
                late.take().into_iter().for_each(|result| absorb(result, &mut hooks));
                for number in 0..*count {
                    let ends = if *is_asking { asks(&hook(number), "Bash", &at.to_string()) } else { says(&hook(number), "") };
                    absorb(ends, &mut hooks);
                }
                let found = reason(&hooks, &at.to_string());
                prop_assert!(found.is_none_or(|found| found == at.to_string()));
                if *is_late { late = Some(result(&at.to_string())) } else { absorb(result(&at.to_string()), &mut hooks) }
            }
        }
    }
}
