//! Denied tool calls: an agent whose call was denied ends like any other, and nothing else shows why it did so little.

use serde::{Deserialize, Serialize};

/// A call that did not run because a person, a rule or the lack of an answer denied it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Denied {
    pub tool: String,
    /// What the call would have done, shortened to one line: the command, the file, the address, or the whole input.
    pub input: String,
    /// The message to the agent.
    pub said: String,
    /// Whether it was denied because it was not approved. Otherwise a rule, a hook or a mode denied it.
    pub unapproved: bool,
    /// Whether a user's hook asked for an approval, whatever rules and modes allow.
    #[serde(default)]
    pub asked_by_hook: bool,
    /// Whether one of Claude Code's own subagents made the call. No person can be asked about those.
    pub by_subagent: bool,
}

impl Denied {
    /// A summary of the call.
    pub(crate) fn call(&self) -> String {
        format!("{}: `{}`", self.tool, self.input)
    }
}

/// Denied calls in words, some of them by name: `2 calls were denied: Bash: ...`. `whose` names the agent if the context does
/// not.
pub(crate) fn in_words(denied: &[Denied], whose: Option<&str>) -> String {
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
    use super::*;

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
