//! What an agent has in the background, from its stream: tasks, and the jobs that it created and deleted with Claude Code's own
//! tools.

use std::collections::HashMap;

use serde_json::Value;

use crate::claude::stream::event::StreamEvent;
use crate::claude::tools::scheduling::{CRON_CREATE, CRON_DELETE};
use crate::core::text::escape::shortened;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Jobs {
    /// The jobs that it created and did not delete.
    pub made: Vec<Made>,
    /// The ids of the jobs that it deleted, whichever attempt created them.
    pub removed: Vec<String>,
    calls: HashMap<String, Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Made {
    pub input: Value,
    /// What the tool returned in addition to the text.
    pub response: Value,
}

impl Jobs {
    pub(crate) fn absorb(&mut self, event: &StreamEvent) {
        if !event.parent_tool_use_id.is_null() {
            return;
        }
        for block in &event.message.content {
            if event.kind == "assistant" && (block.name == CRON_CREATE || block.name == CRON_DELETE) {
                let id = block.id.as_str().unwrap_or_default().to_owned();
                let input = if block.name == CRON_CREATE { block.input.clone() } else { Value::Null };
                self.calls.insert(id, input);
            }
            if event.kind == "user"
                && let Some(input) = block.tool_use_id.as_str().and_then(|call| self.calls.remove(call))
                && let Some(job) = event.tool_use_result["id"].as_str()
            {
                if input.is_null() {
                    self.made.retain(|made| made.response["id"] != job);
                    self.removed.push(job.to_owned());
                } else {
                    self.made.push(Made { input, response: event.tool_use_result.clone() });
                }
            }
        }
    }
}

/// A task in the agent's background.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BackgroundTask {
    /// Claude's id for it.
    pub id: String,
    /// The agent's description of it, on one short line.
    pub title: String,
    /// The call that started it. As long as this call has no result, the agent waits for the task.
    pub call: Option<String>,
}

/// Records which tasks begin and end. Claude Code prints every task, including those that it waits for.
pub(crate) fn absorb_task(tasks: &mut Vec<BackgroundTask>, event: &StreamEvent) {
    let Some(id) = event.task_id.as_str() else { return };
    match event.subtype.as_str() {
        Some("task_started") => {
            let title = event.description.as_str().filter(|title| !title.trim().is_empty()).unwrap_or(id);
            tasks.retain(|task| task.id != id);
            let call = event.tool_use_id.as_str().map(str::to_owned);
            tasks.push(BackgroundTask { id: id.to_owned(), title: shortened(title), call });
        }
        Some("task_notification") => tasks.retain(|task| task.id != id),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn jobs(events: &[Value]) -> Jobs {
        let mut jobs = Jobs::default();
        for event in events {
            jobs.absorb(&serde_json::from_value(event.clone()).unwrap());
        }
        jobs
    }

    fn call(tool: &str, id: &str) -> Value {
        let block = json!({"type": "tool_use", "id": id, "name": tool, "input": {"prompt": id}});
        json!({"type": "assistant", "message": {"content": [block]}})
    }

    fn returned(call: &str, result: &Value) -> Value {
        let block = json!({"type": "tool_result", "tool_use_id": call, "content": "x"});
        json!({"type": "user", "message": {"content": [block]}, "tool_use_result": result})
    }

    #[test]
    fn what_was_made_and_not_removed_is_there() {
        let found = jobs(&[
            call(CRON_CREATE, "t1"),
            call(CRON_CREATE, "t2"),
            returned("t2", &json!({"id": "j2"})),
            returned("t1", &json!({"id": "j1"})),
            call(CRON_CREATE, "t3"),
            returned("t3", &json!("Error: too many")),
            call(CRON_DELETE, "t4"),
            returned("t4", &json!({"id": "j2"})),
            call("Bash", "t5"),
            returned("t5", &json!({"id": "j5"})),
        ]);
        let made = Made { input: json!({"prompt": "t1"}), response: json!({"id": "j1"}) };
        assert_eq!((found.made, found.removed), (vec![made], vec!["j2".to_owned()]));
    }

    #[test]
    fn those_of_subagents_are_not_counted() {
        let mut made = returned("t1", &json!({"id": "j1"}));
        made["parent_tool_use_id"] = json!("t0");
        assert_eq!(jobs(&[call(CRON_CREATE, "t1"), made]).made, []);
    }

    #[test]
    fn what_is_no_job_is_none() {
        for odd in [Value::Null, json!("x"), json!([1]), json!({"id": 7}), json!({"id": null})] {
            assert_eq!(jobs(&[call(CRON_CREATE, "t1"), returned("t1", &odd)]).made, [], "{odd}");
        }
    }
}
