//! Presents chains as tasks of the protocol.

use rmcp::model::{
    CallToolResult, ContentBlock, DetailedTask, ElicitRequest, ElicitRequestParams, ElicitationSchema, ErrorData,
    InputRequest, JsonObject, Task, TaskPayload, TaskStatus,
};
use serde::Serialize;
use serde_json::Value;

use crate::app::App;
use crate::app::error::AppError;
use crate::app::fronts::dialog::Dialog;
use crate::app::fronts::task::{self, TaskState};
use crate::core::id::FrameId;

/// Builds the task of a chain.
pub(super) fn task(app: &App<'_>, root: FrameId) -> Result<DetailedTask, AppError> {
    let read = task::read(app, root)?;
    let payload = match read.state {
        TaskState::Works => TaskPayload::Working,
        TaskState::Asks(dialogs) => {
            let forms = dialogs.into_iter().map(|(id, dialog)| (id, form(dialog)));
            TaskPayload::InputRequired { input_requests: forms.collect() }
        }
        TaskState::Replied(reply) => {
            TaskPayload::Completed { result: object(&CallToolResult::success(vec![ContentBlock::text(reply)])) }
        }
        TaskState::PartlyFailed(replies) => {
            TaskPayload::Completed { result: object(&CallToolResult::error(vec![ContentBlock::text(replies)])) }
        }
        TaskState::Failed(why) => TaskPayload::Failed { error: object(&ErrorData::internal_error(why, None)) },
        TaskState::Stopped => TaskPayload::Cancelled,
    };
    let task = Task::new(root.to_string(), TaskStatus::Working, read.created.to_string(), app.now.to_string());
    let interval = u64::try_from(read.look_after.as_millis()).unwrap_or_default();
    Ok(DetailedTask::new(task.with_status_message(read.message).with_poll_interval_ms(interval), payload))
}

fn form(Dialog { message, schema }: Dialog) -> InputRequest {
    let schema = schema.as_object().cloned().and_then(|schema| ElicitationSchema::from_json_schema(schema).ok());
    // A form without fields still has a message that says what to do.
    let requested_schema = schema.unwrap_or_else(|| ElicitationSchema::new(Default::default()));
    let params = ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema };
    InputRequest::Elicitation(ElicitRequest::new(params))
}

fn object(value: &impl Serialize) -> JsonObject {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => object,
        _ => JsonObject::new(),
    }
}
