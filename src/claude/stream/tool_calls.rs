//! The tool calls of an attempt, and those whose results a conversation lacks.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::path::PathBuf;

use serde_json::Value;

use crate::claude::stream::event::{StreamBlock, StreamEvent, ToolCall};

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ToolCalls {
    /// The agent's calls without a result so far, the newest last.
    pub open: Vec<ToolCall>,
    /// The agent's calls that were cut short: they have a result, but it does not say what they did.
    cut_short: Vec<ToolCall>,
    /// The agent's calls whose result says that the command was killed, if nothing has followed yet.
    killed: Vec<ToolCall>,
    /// The subagents' calls without a result so far, or cut short, each with the call that started the subagent.
    of_subagents: Vec<(Value, ToolCall)>,
    /// The last few calls that the agent made, the newest last.
    last: VecDeque<ToolCall>,
    /// The agent's calls that have returned something, perhaps an error, and were not cut short.
    pub returned: BTreeSet<String>,
    /// The files that its tools read or wrote, as it named them.
    pub files: BTreeSet<PathBuf>,
}

/// How many calls are kept. The calls that a conversation lacks were made within a fraction of a second.
const LAST_CALLS: usize = 20;

impl ToolCalls {
    /// The last tool calls whose results the conversation lacks, given that it has the results of the calls `answered`. Claude
    /// Code removes a call without a result from a conversation that is continued.
    pub(crate) fn uncertain(&self, has_ended: bool, answered: &HashSet<String>) -> Vec<String> {
        let unfinished = |call: &&ToolCall| self.is_unfinished(&call.id, has_ended) || !answered.contains(&call.id);
        self.summaries(self.last.iter().filter(unfinished))
    }

    /// The tool calls whose results the conversation lacks, given that it has everything that was printed.
    pub(crate) fn unfinished(&self, has_ended: bool) -> Vec<String> {
        let made = self.last.iter().chain(self.open.iter().filter(|open| !self.last.contains(open)));
        self.summaries(made.filter(|call| self.is_unfinished(&call.id, has_ended)))
    }

    fn is_unfinished(&self, id: &str, has_ended: bool) -> bool {
        // A process that was asked to end reports that its commands were killed, and prints no result itself.
        let killed = self.killed.iter().filter(|_| !has_ended);
        self.open.iter().chain(&self.cut_short).chain(killed).any(|call| call.id == id)
    }

    fn summaries<'a>(&'a self, calls: impl Iterator<Item = &'a ToolCall>) -> Vec<String> {
        let of_subagents = self.of_subagents.iter().map(|(_, call)| format!("{} (in a subagent)", call.summary));
        calls.map(|call| call.summary.clone()).chain(of_subagents).collect()
    }

    /// Whether the agent has made this call and has its result.
    pub(crate) fn has_result(&self, id: &str) -> bool {
        let is_it = |call: &ToolCall| call.id == id;
        self.last.iter().any(is_it) && !self.open.iter().any(is_it)
    }

    /// Forgets these calls.
    pub(crate) fn remove(&mut self, ids: &HashSet<String>) {
        let stays = |call: &ToolCall| !ids.contains(&*call.id);
        [&mut self.open, &mut self.cut_short, &mut self.killed].into_iter().for_each(|calls| calls.retain(stays));
        self.last.retain(stays);
    }

    pub(crate) fn last(&self) -> Option<&ToolCall> {
        self.last.back()
    }

    /// Records a call of the agent.
    pub(crate) fn absorb(&mut self, content: Vec<StreamBlock>) {
        self.killed.clear();
        for block in content.into_iter().filter(|block| block.kind == "tool_use") {
            self.files.extend(block.file());
            let Some(call) = block.into_call() else { continue };
            self.last.push_back(call.clone());
            self.open.push(call);
        }
        while self.last.len() > LAST_CALLS {
            self.last.pop_front();
        }
    }

    /// Records a result of the agent's calls. `beside`: what Claude Code records with it.
    pub(crate) fn absorb_result(&mut self, result: &StreamBlock, beside: &Value) {
        let Some(at) = self.open.iter().position(|call| result.tool_use_id == *call.id) else { return };
        let call = self.open.remove(at);
        if result.is_cut_short(beside) {
            self.cut_short.push(call);
        } else {
            self.returned.insert(call.id.clone());
            // A subagent that has returned has finished its own calls.
            self.of_subagents.retain(|(parent, _)| *parent != *call.id);
            self.killed.extend(Some(call).filter(|_| result.is_of_a_killed_command()));
        }
    }

    /// Records the calls and results of a subagent.
    pub(crate) fn absorb_of_subagent(&mut self, event: StreamEvent) {
        let blocks = event.message.content;
        let (parent, beside) = (&event.parent_tool_use_id, &event.tool_use_result);
        let closes =
            |result: &StreamBlock, call: &ToolCall| result.tool_use_id == *call.id && !result.is_cut_short(beside);
        self.of_subagents.retain(|(_, call)| !blocks.iter().any(|block| closes(block, call)));
        let calls = blocks.into_iter().filter(|block| block.kind == "tool_use");
        self.of_subagents.extend(calls.filter_map(|call| Some((parent.clone(), call.into_call()?))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claude::stream::digest::Digest;

    fn digest(lines: &[&str]) -> Digest {
        let mut digest = Digest::default();
        for line in lines {
            digest.absorb(serde_json::from_str(line).unwrap());
        }
        digest
    }

    const CALL: &str = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"make"}}]}}"#;

    fn result_of(call: &str, content: &str, beside: &str, parent: &str) -> String {
        format!(
            r#"{{"type":"user","parent_tool_use_id":{parent},"message":{{"content":[{{"type":"tool_result","tool_use_id":"{call}","is_error":true,"content":"{content}"}}]}},"tool_use_result":{beside}}}"#
        )
    }

    #[test]
    fn a_call_that_was_cut_short_is_unfinished_though_it_has_a_result() {
        let none = HashSet::new();
        let answered = HashSet::from(["t1".to_owned()]);
        for (content, beside, unfinished) in [
            ("The user doesn't want to proceed with this tool use. The tool use was rejected", "null", true),
            ("anything", r#""User rejected tool use""#, true),
            ("half", r#"{"interrupted":true}"#, true),
            ("Exit code 137", "null", true),
            ("Exit code 1", r#""Error: Exit code 1""#, false),
        ] {
            let digest = digest(&[CALL, &result_of("t1", content, beside, "null")]);
            let expected = if unfinished { vec!["Bash: make"] } else { vec![] };
            assert_eq!(digest.unfinished_calls(), expected, "{content}");
            assert_eq!(digest.uncertain_calls(&answered), expected, "{content}");
            assert_eq!(digest.uncertain_calls(&none), ["Bash: make"]);
            assert!(digest.calls.open.is_empty());
            // A killed command has returned, whatever it had done by then.
            assert_eq!(digest.calls.returned.contains("t1"), !unfinished || content == "Exit code 137", "{content}");
        }
        // If an attempt ended normally or continued, its end did not cut a killed command short.
        let killed = result_of("t1", "Exit code 137", "null", "null");
        let result = r#"{"type":"result","is_error":false,"result":"so"}"#;
        let went_on = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"so"}]}}"#;
        for next in [result, went_on] {
            assert_eq!(digest(&[CALL, &killed, next]).unfinished_calls(), Vec::<String>::new());
        }
    }

    #[test]
    fn calls_of_subagents_are_named_and_close_none_of_the_agents_own() {
        let agent = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Agent","input":{"prompt":"x"}}]}}"#;
        let own = r#"{"type":"assistant","parent_tool_use_id":"t1","message":{"content":[{"type":"tool_use","id":"s1","name":"Bash","input":{"command":"make"}}]}}"#;
        let running = [r#"Agent: {"prompt":"x"}"#, "Bash: make (in a subagent)"];
        assert_eq!(digest(&[agent, own]).unfinished_calls(), running);
        let same_id = result_of("t1", "done", "null", r#""t1""#);
        assert_eq!(digest(&[agent, own, &same_id]).unfinished_calls(), running);
        let rejected = result_of("s1", "x", r#""User rejected tool use""#, r#""t1""#);
        assert_eq!(digest(&[agent, own, &rejected]).unfinished_calls(), running);
        let done = result_of("s1", "made", "null", r#""t1""#);
        assert_eq!(digest(&[agent, own, &done]).unfinished_calls(), running[..1]);
        let returned = result_of("t1", "made", "null", "null");
        assert_eq!(digest(&[agent, own, &returned]).unfinished_calls(), Vec::<String>::new());
    }
}
