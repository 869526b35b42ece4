//! What runs in an agent's background.

use crate::claude::stream::event::Event;
use crate::core::text::escape::shortened;

/// A task in the agent's background.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    /// Claude's id for it.
    pub id: String,
    /// The agent's description of it, on one short line.
    pub title: String,
    /// The call that started it. As long as that has no result, the agent waits for the task.
    pub call: Option<String>,
}

/// Notes which tasks begin and end. Claude Code prints every task, including those that it waits for.
pub(crate) fn absorb(tasks: &mut Vec<Task>, event: &Event) {
    let Some(id) = event.task_id.as_str() else { return };
    match event.subtype.as_str() {
        Some("task_started") => {
            let title = event.description.as_str().filter(|title| !title.trim().is_empty()).unwrap_or(id);
            tasks.retain(|task| task.id != id);
            let call = event.tool_use_id.as_str().map(str::to_owned);
            tasks.push(Task { id: id.to_owned(), title: shortened(title), call });
        }
        Some("task_notification") => tasks.retain(|task| task.id != id),
        _ => {}
    }
}
