//! An answer of the scripted model in the format of the API.

use serde_json::{Value, json};
use uuid::Uuid;

use super::turn::{ToolCall, Turn};

/// What stands for half a character in the input of a call, and how `claude` and models write it.
pub(super) const HALF_A_CHARACTER: &str = "\u{e000}";
pub(super) const HALF_WRITTEN: &str = r"\ud83d";

/// The answer in one piece.
pub(super) fn message(turn: &Turn, model: &str, input_tokens: usize) -> Value {
    let content = content(turn);
    // Four bytes per token: close enough for plausible costs.
    let output_tokens = content.iter().map(|block| block.to_string().len() / 4).sum::<usize>();
    let stop_reason = if turn.tool_calls().is_empty() { "end_turn" } else { "tool_use" };
    json!({
        "id": id("msg"), "type": "message", "role": "assistant", "model": model, "content": content,
        "stop_reason": stop_reason, "stop_sequence": null,
        "usage": {
            "input_tokens": input_tokens, "output_tokens": output_tokens,
            "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        },
    })
}

/// A whole message as the server-sent events that stream it.
pub(super) fn events(message: &Value) -> String {
    let mut start = message.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    start["usage"]["output_tokens"] = json!(1);
    let mut events = vec![json!({"type": "message_start", "message": start})];
    for (index, block) in message["content"].as_array().into_iter().flatten().enumerate() {
        let mut opening = block.clone();
        let delta = if block["type"] == "text" {
            opening["text"] = json!("");
            json!({"type": "text_delta", "text": block["text"]})
        } else {
            opening["input"] = json!({});
            let input = block["input"].to_string().replace(HALF_A_CHARACTER, HALF_WRITTEN);
            json!({"type": "input_json_delta", "partial_json": input})
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": opening}));
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({
        "type": "message_delta",
        "delta": {"stop_reason": message["stop_reason"], "stop_sequence": null},
        "usage": {"output_tokens": message["usage"]["output_tokens"]},
    }));
    events.push(json!({"type": "message_stop"}));
    let event = |data: &Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default());
    events.iter().map(event).collect()
}

fn content(turn: &Turn) -> Vec<Value> {
    let text = turn.said().map(|text| json!({"type": "text", "text": text}));
    let call = |call: &ToolCall| json!({"type": "tool_use", "id": call.id.clone().unwrap_or_else(|| id("toolu")), "name": call.name, "input": call.input});
    text.into_iter().chain(turn.tool_calls().iter().map(call)).collect()
}

/// Ids are random: one conversation may meet more than one server.
fn id(kind: &str) -> String {
    format!("{kind}_{}", Uuid::new_v4().simple())
}
