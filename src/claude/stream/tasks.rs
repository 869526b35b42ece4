//! What runs beside an agent.

use crate::claude::stream::event::Event;
use crate::core::text::escape::shortened;

/// A task that runs beside the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    /// Claude's id of it.
    pub id: String,
    /// What the agent says that it is, on one short line.
    pub title: String,
}

/// Notes what begins to run, and what has ended. Claude Code tells of every task, those too that it waits for.
pub(crate) fn absorb(tasks: &mut Vec<Task>, event: &Event) {
    let Some(id) = event.task_id.as_str() else { return };
    match event.subtype.as_str() {
        Some("task_started") => {
            let title = event.description.as_str().filter(|title| !title.trim().is_empty()).unwrap_or(id);
            tasks.retain(|task| task.id != id);
            tasks.push(Task { id: id.to_owned(), title: shortened(title) });
        }
        Some("task_notification") => tasks.retain(|task| task.id != id),
        _ => {}
    }
}
