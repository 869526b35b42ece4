//! The span of an attempt, from what is recorded.

use jiff::Timestamp;
use opentelemetry::Value;

use crate::core::chain::frame::Frame;
use crate::core::chain::frame_state::FrameState;
use crate::core::id::{AttemptId, FrameId};
use crate::core::requests::request::{Request, RequestKind};
use crate::runtime::conclude::spans::AttemptSpan;
use crate::store::{Attempt, Attempts, Extent, Store, StoreError, TreeOf};

/// The span of the last attempt of a frame. `None` if it has not ended.
pub(crate) fn last_attempt(store: &Store, frame: FrameId) -> Result<Option<AttemptSpan>, StoreError> {
    let Some(frame) = store.frame(frame)? else { return Ok(None) };
    let Some(attempt) = store.attempts(Attempts::Of(Extent::One(frame.id)))?.pop() else { return Ok(None) };
    let Some(ended) = attempt.ended else { return Ok(None) };
    Ok(Some(AttemptSpan {
        root: frame.root,
        attempt: attempt.id,
        parent: started_by(store, &frame)?,
        name: frame.task.title(),
        began: attempt.began,
        ended,
        error: match &frame.state {
            FrameState::Failed { failure } => Some(failure.message.clone()),
            _ => None,
        },
        attributes: attributes(&frame, attempt, ended),
    }))
}

/// The attempt whose request started the agent of a frame. A group is started by the attempt that started its members.
fn started_by(store: &Store, frame: &Frame) -> Result<Option<AttemptId>, StoreError> {
    let (mut child, mut parent) = (frame.id, frame.parent);
    while let Some(above) = parent {
        let family = store.tree(TreeOf::Family(above))?;
        let Some(node) = family.get(above) else { return Ok(None) };
        let starts =
            |request: &&Request| matches!(request.kind, RequestKind::Spawn { child: started, .. } if started == child);
        if let Some(request) = node.requests.iter().find(starts) {
            return Ok(Some(request.attempt));
        }
        (child, parent) = (above, if node.is_group { node.parent } else { None });
    }
    Ok(None)
}

fn attributes(frame: &Frame, attempt: Attempt, ended: Timestamp) -> Vec<(&'static str, Value)> {
    let number = |number: u64| Value::from(i64::try_from(number).unwrap_or(i64::MAX));
    let usage = attempt.spending.usage;
    let ran = attempt.ran.unwrap_or_else(|| ended.duration_since(attempt.began).unsigned_abs());
    let optional = [
        ("agent_cli.outcome", attempt.outcome),
        ("gen_ai.request.model", attempt.model),
        ("agent_cli.claude_version", attempt.version),
        ("agent_cli.host", attempt.host),
    ];
    let mut attributes: Vec<(&'static str, Value)> = vec![
        ("agent_cli.chain", frame.root.to_string().into()),
        ("agent_cli.agent", frame.id.to_string().into()),
        ("agent_cli.attempt", attempt.id.to_string().into()),
        ("agent_cli.session", attempt.session.to_string().into()),
        ("agent_cli.depth", i64::from(frame.depth).into()),
        ("agent_cli.ran_seconds", ran.as_secs_f64().into()),
        ("agent_cli.cost_usd", attempt.spending.usd.into()),
        ("gen_ai.usage.input_tokens", number(usage.input_tokens)),
        ("gen_ai.usage.output_tokens", number(usage.output_tokens)),
        ("gen_ai.usage.cache_creation.input_tokens", number(usage.cache_creation_input_tokens)),
        ("gen_ai.usage.cache_read.input_tokens", number(usage.cache_read_input_tokens)),
    ];
    attributes.extend(optional.into_iter().filter_map(|(key, value)| Some((key, value?.into()))));
    attributes
}
