//! The denied tool calls of an attempt, as its events list them.

use std::collections::HashMap;

use serde_json::Value;

use crate::claude::stream::event::{StreamBlock, StreamEvent};
use crate::claude::stream::hooks::asking_hooks::AskingHooks;
use crate::core::agent::denied_call::Denied;
use crate::core::text::escape::shortened;

/// The denied calls of an attempt, from its events.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Denials {
    /// What failed calls returned, and whether a subagent made them.
    errors: HashMap<String, (String, bool)>,
    listed: Vec<Denial>,
}

/// A call that an attempt's `result` lists as denied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Denial {
    /// Claude's id for it.
    pub call: String,
    /// Everything that is recorded, except what only the text of its result says.
    pub denied: Denied,
}

/// A longer list or text would not be read.
const MOST: usize = 1_000;

/// The list of denied calls does not say who denied them. If an approval was missing, the message to the agent does: this is part
/// of the message to an agent about a call that was not approved. Other messages name a rule or a mode, or are a hook's own
/// words.
const UNAPPROVED: [&str; 4] = [
    "you haven't granted it yet", "require approval", "needs approval",
    "was blocked. For security, Claude Code may only",
];

impl Denials {
    /// The denied calls, in order.
    pub(crate) fn listed(&self) -> &[Denial] {
        &self.listed
    }

    /// Processes the next event. Each `result` lists what was denied since the previous one.
    pub(crate) fn absorb(&mut self, event: &StreamEvent) {
        match event.kind.as_str() {
            Some("user") => {
                let by_subagent = !event.parent_tool_use_id.is_null();
                let results = event.message.content.iter().filter_map(StreamBlock::as_result);
                for result in results.filter(|result| result.is_error) {
                    if self.errors.len() == MOST {
                        break;
                    }
                    self.errors.insert(result.call, (result.text.chars().take(MOST).collect(), by_subagent));
                }
            }
            Some("result") => {
                let listed = event.permission_denials.as_array().into_iter().flatten();
                for denial in listed.filter_map(|denial| self.denial(denial)).collect::<Vec<_>>() {
                    let is_known = self.listed.iter().any(|known| known.call == denial.call);
                    if !is_known && self.listed.len() < MOST {
                        self.listed.push(denial);
                    }
                }
            }
            _ => {}
        }
    }

    fn denial(&self, denial: &Value) -> Option<Denial> {
        let call = denial["tool_use_id"].as_str()?.to_owned();
        let (said, by_subagent) = self.errors.get(&call).cloned().unwrap_or_default();
        let input = shortened(&in_short(&denial["tool_input"]));
        let tool = shortened(denial["tool_name"].as_str()?);
        Some(Denial {
            call,
            denied: Denied { tool, input, said, unapproved: false, asked_by_hook: false, by_subagent },
        })
    }
}

fn in_short(input: &Value) -> String {
    let named = ["command", "file_path", "notebook_path", "url"].iter().find_map(|key| input[key].as_str());
    named.map_or_else(|| input.to_string(), str::to_owned)
}

/// What is recorded about denied calls.
pub(crate) fn recorded<'a>(denials: impl IntoIterator<Item = &'a Denial>, hooks: &AskingHooks) -> Vec<Denied> {
    let denials = denials.into_iter().map(|denial| {
        let denied = denial.denied.clone();
        // A hook's reason replaces Claude Code's words.
        let asked_by_hook = hooks.have_asked(&denied.tool, &denied.said);
        let unapproved = asked_by_hook || UNAPPROVED.iter().any(|words| denied.said.contains(words));
        Denied { unapproved, asked_by_hook, said: shortened(&denied.said), ..denied }
    });
    denials.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn denials(events: &[Value]) -> Vec<Denial> {
        let mut denials = Denials::default();
        for event in events {
            denials.absorb(&serde_json::from_value(event.clone()).unwrap());
        }
        denials.listed().to_vec()
    }

    fn refused(call: &str, said: &str, parent: &Value) -> Value {
        let block = json!({"type": "tool_result", "tool_use_id": call, "is_error": true, "content": said});
        json!({"type": "user", "parent_tool_use_id": parent, "message": {"content": [block]}})
    }

    fn ended(calls: &[(&str, &str, Value)]) -> Value {
        let listed =
            calls.iter().map(|(id, tool, input)| json!({"tool_use_id": id, "tool_name": tool, "tool_input": input}));
        json!({"type": "result", "permission_denials": listed.collect::<Vec<_>>()})
    }

    #[test]
    fn each_denied_call_is_known_with_its_reason() {
        let found = denials(&[
            refused("t1", "not this", &Value::Null),
            refused("t2", "nor that", &json!("t0")),
            ended(&[("t1", "Bash", json!({"command": "touch a\nb"})), ("t2", "Write", json!({"file_path": "/x"}))]),
            // A later result lists only what came after the previous one.
            ended(&[("t2", "Write", json!({"file_path": "/x"})), ("t3", "Odd", json!({"a": 1}))]),
        ]);
        let words = found.iter().map(|denial| {
            let Denied { tool, input, said, by_subagent, .. } = &denial.denied;
            (tool.as_str(), input.as_str(), said.as_str(), *by_subagent)
        });
        let expected = [
            ("Bash", "touch a⏎b", "not this", false),
            ("Write", "/x", "nor that", true),
            ("Odd", "{\"a\":1}", "", false),
        ];
        assert_eq!(words.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn odd_lists_are_passed_over() {
        for listed in [json!(null), json!({}), json!([1, null, {}, {"tool_use_id": 1}, {"tool_use_id": "a"}])] {
            assert_eq!(denials(&[json!({"type": "result", "permission_denials": listed})]), []);
        }
    }

    #[test]
    fn what_nobody_approved_is_distinguished_from_what_was_denied() {
        let denied = Denied {
            tool: "Bash".to_owned(),
            input: "x".to_owned(),
            said: String::new(),
            unapproved: false,
            asked_by_hook: false,
            by_subagent: false,
        };
        for (said, expected) in [
            ("Claude requested permissions to use Bash, but you haven't granted it yet.", true),
            ("This Bash command contains multiple operations. The following parts require approval: touch b", true),
            ("Permission to use Bash with command touch made has been denied.", false),
            ("PreToolUse:Bash hook error: my rule", false),
            ("a person has denied this call", false),
            ("", false),
        ] {
            let denied = Denied { said: said.to_owned(), ..denied.clone() };
            let recorded = recorded(&[Denial { call: "t1".into(), denied }], &AskingHooks::default());
            assert_eq!(recorded[0].unapproved, expected, "{said}");
        }
    }
}
