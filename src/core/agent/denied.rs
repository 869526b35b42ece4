//! Tool calls that were denied: an agent that was denied one ends like any other, and nobody sees why it did so little.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::core::requests::request::shortened;
use crate::core::stream::event::{Block, Event};

/// A call that did not run because nobody, or somebody, did not allow it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denied {
    /// The tool.
    pub tool: String,
    /// What it was to do, on one line and shortened: the command, the file, the address, or the whole input.
    pub input: String,
    /// What the agent was told.
    pub said: String,
    /// Whether it was denied because nobody approved it. Otherwise a rule, a hook or a mode denied it.
    pub unapproved: bool,
    /// Whether a hook of the user wanted an approval, whatever rules and modes allow.
    #[serde(default)]
    pub asked_by_hook: bool,
    /// Whether one of Claude Code's own subagents made it, which nobody is asked about.
    pub by_subagent: bool,
}

/// The denied calls of an attempt, read off its events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Denials {
    /// What failed calls returned, and whether a subagent made them.
    errors: HashMap<String, (String, bool)>,
    listed: Vec<Denial>,
}

/// A call that the end of an attempt lists as denied.
#[derive(Clone, Debug, PartialEq)]
pub struct Denial {
    /// Claude's id of it.
    pub call: String,
    /// All that is recorded, but what only the words tell.
    pub denied: Denied,
}

/// A longer list describes nothing, nor do more words.
const MOST: usize = 1_000;

impl Denials {
    /// The denied calls, in order.
    #[must_use]
    pub fn listed(&self) -> &[Denial] {
        &self.listed
    }

    /// Takes the next event into account. Each `result` lists what was denied since the one before it.
    pub(crate) fn absorb(&mut self, event: &Event) {
        match event.kind.as_str() {
            Some("user") => {
                let by_subagent = !event.parent_tool_use_id.is_null();
                let results = event.message.0.content.0.iter().filter_map(Block::as_result);
                for result in results.filter(|result| result.is_error) {
                    if self.errors.len() == MOST {
                        break;
                    }
                    self.errors.insert(result.call, (result.text.chars().take(MOST).collect(), by_subagent));
                }
            }
            Some("result") => {
                let listed = event.permission_denials.as_array().into_iter().flatten();
                for denial in listed.filter_map(|denial| self.of(denial)).collect::<Vec<_>>() {
                    let is_known = self.listed.iter().any(|known| known.call == denial.call);
                    if !is_known && self.listed.len() < MOST {
                        self.listed.push(denial);
                    }
                }
            }
            _ => {}
        }
    }

    fn of(&self, denial: &Value) -> Option<Denial> {
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

impl Denied {
    /// The call in a few words.
    #[must_use]
    pub fn call(&self) -> String {
        format!("{}: `{}`", self.tool, self.input)
    }
}

/// Denied calls in words, some of them by name: `2 calls were denied: Bash: ...`. `whose` names the agent, if that has to be
/// said.
#[must_use]
pub fn in_words(denied: &[Denied], whose: Option<&str>) -> String {
    const NAMED: usize = 4;
    let mut named: Vec<String> = Vec::new();
    for call in denied.iter().map(Denied::call) {
        if !named.contains(&call) {
            named.push(call);
        }
    }
    let more = match named.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    named.truncate(NAMED);
    let of = whose.map_or_else(String::new, |whose| format!(" of {whose}"));
    let (calls, were) = if denied.len() == 1 { ("call", "was") } else { ("calls", "were") };
    format!("{} {calls}{of} {were} denied: {}{more}", denied.len(), named.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::stream::digest::Digest;

    fn denials(events: &[Value]) -> Vec<Denial> {
        let mut digest = Digest::default();
        for event in events {
            digest.absorb(serde_json::from_value(event.clone()).unwrap());
        }
        digest.denials.listed().to_vec()
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
    fn each_denied_call_is_known_with_what_the_agent_was_told() {
        let found = denials(&[
            refused("t1", "not this", &Value::Null),
            refused("t2", "nor that", &json!("t0")),
            ended(&[("t1", "Bash", json!({"command": "touch a\nb"})), ("t2", "Write", json!({"file_path": "/x"}))]),
            // A later result lists only what came after the one before it.
            ended(&[("t2", "Write", json!({"file_path": "/x"})), ("t3", "Odd", json!({"a": 1}))]),
        ]);
        let told = found.iter().map(|denial| {
            let Denied { tool, input, said, by_subagent, .. } = &denial.denied;
            (tool.as_str(), input.as_str(), said.as_str(), *by_subagent)
        });
        let expected = [
            ("Bash", "touch a⏎b", "not this", false),
            ("Write", "/x", "nor that", true),
            ("Odd", "{\"a\":1}", "", false),
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn odd_lists_are_passed_over() {
        for listed in [json!(null), json!({}), json!([1, null, {}, {"tool_use_id": 1}, {"tool_use_id": "a"}])] {
            assert_eq!(denials(&[json!({"type": "result", "permission_denials": listed})]), []);
        }
    }

    #[test]
    fn words_name_a_few() {
        let call = |n: usize| Denied {
            tool: "Bash".into(),
            input: format!("make {n}"),
            said: String::new(),
            unapproved: true,
            asked_by_hook: false,
            by_subagent: false,
        };
        assert_eq!(in_words(&[call(1)], None), "1 call was denied: Bash: `make 1`");
        let twice = [call(1), call(1)];
        assert_eq!(in_words(&twice, Some("a.md (4f2c1a90)")), "2 calls of a.md (4f2c1a90) were denied: Bash: `make 1`");
        let many: Vec<_> = (0..9).map(call).collect();
        assert!(in_words(&many, None).ends_with("`make 3` and 5 more"), "{}", in_words(&many, None));
    }
}
