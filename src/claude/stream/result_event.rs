//! The last event of a `claude` process.

use serde_json::Value;

use crate::claude::stream::event::StreamEvent;
use crate::claude::stream::tokens;
use crate::core::agent::usage::Usage;

/// The event that ends an attempt.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ResultEvent {
    /// Whether it is an error. `subtype` says "success" for some errors and decides nothing.
    pub is_error: bool,
    /// The reply, or the error.
    pub text: String,
    /// The HTTP status of the error, if it has one.
    pub api_error_status: Option<u64>,
    /// Whether the attempt ended because a hook suspended a tool call.
    pub deferred: bool,
    /// The id of that call.
    pub deferred_call: Option<String>,
    /// Whether a hook stopped the agent.
    pub stopped_by_hook: bool,
    /// Whether its model was not asked: what was to be done with the prompt ended without a request.
    pub is_unasked: bool,
    pub usage: Usage,
    /// US dollars, as `claude` counts them. Newer versions include what the session cost before it was resumed.
    pub total_cost_usd: f64,
    /// Tokens, counted as `total_cost_usd` is; `None`: its version does not.
    pub total_usage: Option<Usage>,
}

impl From<StreamEvent> for ResultEvent {
    fn from(event: StreamEvent) -> Self {
        let deferred = event.stop_reason == "tool_deferred" || event.terminal_reason == "tool_deferred";
        let text = match event.result {
            Value::String(text) => text,
            _ => said_otherwise(&event.errors, &event.subtype),
        };
        Self {
            is_error: event.is_error.as_bool().unwrap_or(false),
            text,
            api_error_status: event.api_error_status.as_u64(),
            deferred,
            deferred_call: event.deferred_tool_use["id"].as_str().map(str::to_owned),
            stopped_by_hook: event.terminal_reason == "hook_stopped",
            is_unasked: event.num_turns == 0,
            usage: tokens::of_answer(&event.usage),
            total_usage: tokens::of_models(&event.model_usage),
            total_cost_usd: event.total_cost_usd.as_f64().unwrap_or(0.0),
        }
    }
}

/// Errors that stop an agent come as a list, without a `result`.
fn said_otherwise(errors: &Value, subtype: &Value) -> String {
    let errors: Vec<_> = errors.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if errors.is_empty() { subtype.as_str().unwrap_or_default().to_owned() } else { errors.join("; ") }
}
