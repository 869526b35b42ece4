//! A digest of all events of an attempt.

use std::collections::HashSet;

use crate::claude::stream::background_work::{self, BackgroundTask, Jobs};
use crate::claude::stream::denials::Denials;
use crate::claude::stream::event::{ReachedLimit, ResultEvent, StreamBlock, StreamEvent};
use crate::claude::stream::hooks::asking_hooks::AskingHooks;
use crate::claude::stream::hooks::deciding_hooks::DecidingHooks;
use crate::claude::stream::rights::Rights;
use crate::claude::stream::tokens::{Answers, ContextSize};
use crate::claude::stream::tool_calls::ToolCalls;
use crate::core::requests::request::Returned;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Digest {
    /// The model that the session began with.
    pub model: Option<String>,
    /// The version of Claude Code.
    pub version: Option<String>,
    /// Whether `claude` printed any event of this protocol.
    pub spoke: bool,
    /// Whether the agent did anything: its model answered at least once.
    pub worked: bool,
    /// The kind of error that its last message reports, if any: `rate_limit`, `server_error` and so on.
    pub api_error: Option<String>,
    /// Whether Claude Code wrote a message in the agent's name, usually an error of the API.
    pub worded: bool,
    /// The usage limit that stopped it.
    pub limit: Option<ReachedLimit>,
    /// The result of the call that was open when the run began: it comes before the model's first message.
    pub returned: Option<Returned>,
    /// The tool calls of the agent and its subagents.
    pub calls: ToolCalls,
    /// The calls that were denied.
    pub denials: Denials,
    /// The hooks that ask for an approval.
    pub asking_hooks: AskingHooks,
    /// The hooks that may decide about one.
    pub deciding_hooks: DecidingHooks,
    /// The answers of the API that it got, its subagents included.
    pub answers: Answers,
    /// What the agent may do.
    pub rights: Rights,
    /// What runs in the agent's background.
    pub tasks: Vec<BackgroundTask>,
    /// Whether anything has run in its background since its model was last told about it.
    pub ran_beside: bool,
    /// What was running in its background when it ended its turn.
    pub beside_result: Vec<String>,
    /// The jobs that it created and deleted.
    pub jobs: Jobs,
    /// The call of an earlier attempt at which it was suspended again before it did anything.
    pub suspended_again: Option<String>,
    /// The last `result` event, unless `claude` has continued since.
    pub result: Option<ResultEvent>,
    /// A `result` event that was not final.
    pub interim: Option<ResultEvent>,
    /// Why a hook of the user blocked the prompt.
    pub blocked: Option<String>,
    /// How much of its model's context window its conversation takes.
    pub size: ContextSize,
    /// Lines that were not events.
    pub broken_lines: u64,
}

impl Digest {
    /// The tool call at which the session is suspended, if the call can return its result: it must be the last of its message, or
    /// Claude Code may lose the result (seen with 2.1.197). A call of an earlier attempt that was suspended again does not count:
    /// it could not return its result.
    pub(crate) fn suspended_call(&self) -> Option<&str> {
        let call = self.result.as_ref()?.deferred_call.as_deref()?;
        (self.calls.last().is_some_and(|last| last.id == call)).then_some(call)
    }

    /// Whether it is where it began, suspended at the same call: its turn begins with its standard input.
    pub(crate) fn is_where_it_began(&self) -> bool {
        !self.worked && self.suspended_again.is_some() && self.result.as_ref().is_some_and(|result| result.deferred)
    }

    /// Whether it no longer needs its standard input: it has begun the turn with it, or ended without one.
    pub(crate) fn has_read_input(&self) -> bool {
        match self.result {
            None => self.suspended_again.is_some(),
            Some(_) => !self.is_where_it_began(),
        }
    }

    /// Whether the call at which the session is suspended can get its result from outside. Tasks that have run in the
    /// background would be reported first. A call of an earlier attempt that was suspended again has not accepted it.
    pub(crate) fn takes_result(&self) -> bool {
        let call = self.result.as_ref().and_then(|result| result.deferred_call.as_ref());
        !self.ran_beside
            && self.tasks.is_empty()
            && call.is_some_and(|call| self.calls.open.iter().any(|open| open.id == *call))
    }

    pub(crate) fn absorb(&mut self, event: StreamEvent) {
        self.spoke |= event.kind.is_string() && !event.is_of_a_hook();
        self.denials.absorb(&event);
        self.asking_hooks.absorb(&event);
        self.deciding_hooks.absorb(&event);
        self.rights.absorb(&event);
        self.jobs.absorb(&event);
        if event.kind == "assistant" {
            let message = &event.message;
            self.answers.absorb(&message.id, &message.model, &message.usage);
        }
        match event.kind.as_str() {
            Some("system") => self.absorb_system(&event),
            Some("assistant") if event.parent_tool_use_id.is_null() => self.absorb_assistant(event),
            Some("user") if event.parent_tool_use_id.is_null() => {
                let results = event.message.content;
                if !self.worked && self.returned.is_none() {
                    self.returned = results.iter().find_map(StreamBlock::as_result);
                }
                for result in &results {
                    self.calls.absorb_result(result, &event.tool_use_result);
                }
                self.note_ran_beside();
            }
            Some("assistant" | "user") => self.calls.absorb_of_subagent(event),
            Some("rate_limit_event") => {
                self.limit = ReachedLimit::from_info(&event.rate_limit_info);
            }
            Some("result") => {
                self.size.absorb_models(&event.model_usage);
                self.absorb_result(ResultEvent::from(event));
            }
            _ => {}
        }
    }

    fn absorb_result(&mut self, result: ResultEvent) {
        if let Some(call) = result.deferred_call.as_ref().filter(|_| result.deferred && !self.worked) {
            self.suspended_again = Some(call.clone());
        }
        self.result = Some(result);
        self.note_beside();
    }

    /// Records that a task is running whose call has returned: its end will be a separate message.
    fn note_ran_beside(&mut self) {
        let is_open = |call: &String| self.calls.open.iter().any(|open| open.id == *call);
        self.ran_beside |= self.tasks.iter().any(|task| !task.call.as_ref().is_some_and(is_open));
    }

    /// Records what is running in the background at the end of a turn, for which the turn may wait.
    pub(crate) fn note_beside(&mut self) {
        self.beside_result = self.tasks.iter().map(|task| task.title.clone()).collect();
    }

    fn absorb_system(&mut self, event: &StreamEvent) {
        if event.subtype == "init" {
            self.model = event.model.as_str().map(str::to_owned);
            self.version = event.claude_code_version.as_str().map(str::to_owned);
            self.withdraw_result();
        }
        if let Some(reason) = event.prompt_submit_outcome["reason"].as_str() {
            self.blocked = Some(reason.to_owned());
        }
        background_work::absorb_task(&mut self.tasks, event);
        self.note_ran_beside();
    }

    fn absorb_assistant(&mut self, event: StreamEvent) {
        let message = event.message;
        self.withdraw_result();
        self.api_error = event.error.as_str().map(str::to_owned);
        // Claude Code's own error messages carry this model name.
        if message.model == "<synthetic>" {
            self.worded = true;
            return;
        }
        self.worked = true;
        self.size.absorb_answer(&message.model, &message.usage);
        self.ran_beside = !self.tasks.is_empty();
        self.calls.absorb(message.content);
    }

    /// Withdraws the result of a turn that has not begun: its process was ended before it could continue.
    pub(crate) fn withdraw_beginning(&mut self) {
        if self.is_where_it_began() {
            self.withdraw_result();
        }
    }

    /// Records that `claude` continues: the result that it printed was not final.
    fn withdraw_result(&mut self) {
        self.interim = self.result.take().or(self.interim.take());
    }

    /// The same without these calls.
    pub(crate) fn without_calls(&self, ids: &HashSet<String>) -> Self {
        let mut without = self.clone();
        without.calls.remove(ids);
        without
    }

    /// The last tool calls whose results the conversation lacks, given that it has the results of the calls `answered`. Claude
    /// Code removes a call without a result from a conversation that is continued.
    pub(crate) fn uncertain_calls(&self, answered: &HashSet<String>) -> Vec<String> {
        self.calls.uncertain(self.result.is_some(), answered)
    }

    /// The tool calls whose results the conversation lacks, given that it has everything that was printed.
    pub(crate) fn unfinished_calls(&self) -> Vec<String> {
        self.calls.unfinished(self.result.is_some())
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;

    fn digest(lines: &[&str]) -> Digest {
        let mut digest = Digest::default();
        for line in lines {
            digest.absorb(serde_json::from_str(line).unwrap());
        }
        digest
    }

    #[test]
    fn the_last_result_counts_and_its_keys_come_in_any_order() {
        let digest = digest(&[
            r#"{"type":"result","is_error":true,"result":"first"}"#,
            r#"{"usage":{"input_tokens":7},"result":"Jan 1st","total_cost_usd":0.25,"is_error":false,"type":"result"}"#,
        ]);
        let result = digest.result.unwrap();
        assert_eq!((result.is_error, result.text.as_str()), (false, "Jan 1st"));
        assert_eq!((result.usage.input_tokens, result.total_cost_usd), (7, 0.25));
    }

    #[test]
    fn errors_without_a_result_are_reported() {
        let line = r#"{"type":"result","subtype":"error_max_turns","is_error":true,"errors":["Reached maximum"]}"#;
        assert_eq!(digest(&[line]).result.unwrap().text, "Reached maximum");
        let line = r#"{"type":"result","subtype":"error_of_next_year","is_error":true}"#;
        assert_eq!(digest(&[line]).result.unwrap().text, "error_of_next_year");
    }

    #[test]
    fn an_answer_of_the_model_is_work_and_an_error_message_is_not() {
        let synthetic = r#"{"type":"assistant","message":{"model":"<synthetic>","content":[]}}"#;
        assert!(!digest(&[synthetic]).worked);
        let real = r#"{"type":"assistant","message":{"model":"claude-opus-4-8","content":[]}}"#;
        assert!(digest(&[real]).worked);
    }

    #[test]
    fn the_kind_of_an_error_is_that_of_the_last_message() {
        let error = r#"{"type":"assistant","message":{"model":"<synthetic>"},"error":"server_error"}"#;
        let result = r#"{"type":"result","is_error":true,"api_error_status":529}"#;
        let failed = digest(&[error, result]);
        assert_eq!(failed.api_error.as_deref(), Some("server_error"));
        assert_eq!(failed.result.unwrap().api_error_status, Some(529));
        let went_on = r#"{"type":"assistant","message":{"model":"claude-opus-4-8"}}"#;
        assert_eq!(digest(&[error, went_on]).api_error, None);
    }

    #[test]
    fn a_tool_call_is_open_until_its_result_comes() {
        let call = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"git push"}}]}}"#;
        let result = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1"}]}}"#;
        assert_eq!(digest(&[call]).calls.open[0].summary, "Bash: git push");
        assert!(digest(&[call, result]).calls.open.is_empty());
    }

    #[test]
    fn what_a_subagent_does_is_not_what_the_agent_does() {
        let call = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"git push"}}]}}"#;
        let theirs = [
            r#"{"type":"user","parent_tool_use_id":"t0","message":{"content":[{"type":"tool_result","tool_use_id":"t1"}]}}"#,
            r#"{"type":"assistant","parent_tool_use_id":"t0","message":{"content":[{"type":"tool_use","id":"t2","name":"Read","input":{"file_path":"/a"}}]}}"#,
        ];
        let both = digest(&[call, theirs[0], theirs[1]]);
        assert_eq!((both.calls.open.len(), both.calls.files.len()), (1, 0));
        assert_eq!(both.calls.last().map(|call| call.id.as_str()), Some("t1"));
        assert!(!digest(&theirs).worked);
        assert_eq!(digest(&theirs).returned, None);
    }

    #[test]
    fn what_the_conversation_does_not_tell_of_a_call_is_uncertain() {
        let call = |id: usize| {
            format!(
                r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"t{id}","name":"Bash","input":{{"command":"{id}"}}}}]}}}}"#
            )
        };
        let result = |id| {
            format!(r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"t{id}"}}]}}}}"#)
        };
        let all = digest(&[&call(1), &result(1), &call(2), &result(2), &call(3)]);
        let calls = |ids: &[&str]| all.uncertain_calls(&ids.iter().map(|id| (*id).to_owned()).collect());
        assert_eq!(calls(&["t1", "t2"]), ["Bash: 3"]);
        assert_eq!(calls(&["t1"]), ["Bash: 2", "Bash: 3"]);
        let many: Vec<String> = (0..50).map(call).collect();
        let many = digest(&many.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(many.uncertain_calls(&HashSet::new()).len(), 20);
    }

    #[test]
    fn files_that_tools_are_given_are_known() {
        let call = |tool: &str, input: &str| {
            format!(
                r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"t1","name":"{tool}","input":{input}}}]}}}}"#
            )
        };
        let files = digest(&[
            &call("Read", r#"{"file_path":"/p/a"}"#),
            &call("Edit", r#"{"file_path":"/p/b","old_string":"x"}"#),
            &call("NotebookEdit", r#"{"notebook_path":"/p/c"}"#),
            &call("Bash", r#"{"command":"cat /p/d"}"#),
            &call("Read", r#"{"file_path":7}"#),
            &call("Read", r#"{"file_path":""}"#),
            &call("Read", r#"[]"#),
        ])
        .calls
        .files;
        assert_eq!(files, ["/p/a", "/p/b", "/p/c"].map(PathBuf::from).into());
    }

    #[test]
    fn what_the_resumed_call_returns_is_known_and_other_results_are_not() {
        let result = |content: &str| {
            format!(
                r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"t1","content":{content}}}]}}}}"#
            )
        };
        let returned = |text: &str| Some(Returned { call: "t1".into(), text: text.into(), is_error: false });
        assert_eq!(digest(&[&result("\"Jan 1st\"")]).returned, returned("Jan 1st"));
        assert_eq!(digest(&[&result("[{\"text\":\"a\"},{\"text\":\"b\"}]")]).returned, returned("ab"));
        assert_eq!(digest(&[&result("\"a\""), &result("\"b\"")]).returned, returned("a"));
        let made_here = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash"}]}}"#;
        assert_eq!(digest(&[made_here, &result("\"a\"")]).returned, None);
    }

    #[test]
    fn a_limit_is_one_only_when_it_rejects() {
        let event = |status| {
            format!(r#"{{"type":"rate_limit_event","rate_limit_info":{{"status":"{status}","resetsAt":1795298091}}}}"#)
        };
        assert!(digest(&[&event("allowed")]).limit.is_none());
        let limit = digest(&[&event("rejected")]).limit;
        assert_eq!(limit, Some(ReachedLimit::Until(Timestamp::from_second(1_795_298_091).unwrap())));
    }

    #[test]
    fn what_an_agent_waits_for_does_not_run_beside_it() {
        let calls = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Agent","input":{}},{"type":"tool_use","id":"t2","name":"Bash","input":{}}]}}"#;
        let started = r#"{"type":"system","subtype":"task_started","task_id":"b1","tool_use_id":"t1"}"#;
        let over = r#"{"type":"system","subtype":"task_notification","task_id":"b1","tool_use_id":"t1"}"#;
        let returned = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1"}]}}"#;
        let deferred = r#"{"type":"result","stop_reason":"tool_deferred","deferred_tool_use":{"id":"t2"}}"#;
        assert!(digest(&[calls, started, over, returned, deferred]).takes_result());
        assert!(!digest(&[calls, started, returned, over, deferred]).takes_result(), "it has gone to the background");
        assert!(!digest(&[calls, started, deferred]).takes_result());
        let of_nobody = started.replace("tool_use_id", "of");
        assert!(!digest(&[calls, &of_nobody, over, returned, deferred]).takes_result());
    }

    #[test]
    fn odd_shapes_are_passed_over() {
        for line in [
            r#"{}"#,
            r#"{"type":7}"#,
            r#"{"type":"assistant","message":"text"}"#,
            r#"{"type":"assistant","message":[{"content":1}]}"#,
            r#"{"type":"user","message":{"content":"text"}}"#,
            r#"{"type":"user","message":{"content":{"a":[1,2]}}}"#,
            r#"{"type":"user","message":{"content":[1,"two",null,{"tool_use_id":3}]}}"#,
            r#"{"type":"result","result":{"text":"x"},"is_error":"no","usage":[],"total_cost_usd":"1"}"#,
            r#"{"type":"rate_limit_event","rate_limit_info":null}"#,
            r#"{"type":"an_event_of_next_year","payload":{"a":[{}]}}"#,
        ] {
            digest(&[line]);
        }
    }

    proptest! {
        #[test]
        fn any_line_is_an_event_or_an_error(line: String) {
            if let Ok(event) = serde_json::from_str::<StreamEvent>(&line) {
                Digest::default().absorb(event);
            }
        }

        #[test]
        fn any_message_is_passed_over(kind in "(user|assistant|system|result)", text in "\\PC*") {
            let event = serde_json::json!({"type": kind, "message": {"content": text}, "errors": [text], "result": 1});
            digest(&[&event.to_string()]);
        }
    }
}
