//! The last request of a conversation: when it was, what it sent, and how it used the prompt cache.

use std::io::{self, BufRead};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::claude::json_lines::json_lines;
use crate::claude::stream::tokens::of_answer;
use crate::core::agent::usage::Usage;
use crate::core::agent::usage::prices::Lifetime;
use crate::core::agent::usage::prices::estimate::LastRequest;

/// The last request, with what the next one sends again.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sent {
    pub(crate) request: LastRequest,
    /// What it sent and what was answered.
    pub(crate) tokens: u64,
    /// How long the cache keeps what was written last; `None`: the conversation does not say.
    pub(crate) lifetime: Option<Lifetime>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnswerLine {
    timestamp: Option<Timestamp>,
    version: Option<String>,
    #[serde(default)]
    is_sidechain: bool,
    message: Answer,
}

#[derive(Deserialize)]
struct Answer {
    model: String,
    usage: Value,
}

/// The last request of the conversation itself, without those of its subagents; `None`: there was none.
pub(crate) fn last_request(transcript: impl BufRead) -> io::Result<Option<Sent>> {
    let (mut last, mut lifetime) = (None, None);
    for line in json_lines::<AnswerLine>(transcript) {
        let AnswerLine { timestamp, version, is_sidechain, message: Answer { model, usage } } = line?;
        // Claude Code words its own messages as a model of this kind of name.
        if is_sidechain || model.starts_with('<') {
            continue;
        }
        let Some(at) = timestamp else { continue };
        let written = |name: &str| usage["cache_creation"][name].as_u64().is_some_and(|tokens| tokens > 0);
        if written("ephemeral_1h_input_tokens") {
            lifetime = Some(Lifetime::Hour);
        } else if written("ephemeral_5m_input_tokens") {
            lifetime = Some(Lifetime::FiveMinutes);
        }
        let Usage { input_tokens, output_tokens, cache_creation_input_tokens, cache_read_input_tokens } =
            of_answer(&usage);
        let cached = cache_creation_input_tokens.saturating_add(cache_read_input_tokens);
        let tokens = input_tokens.saturating_add(output_tokens).saturating_add(cached);
        if tokens > 0 {
            last = Some((LastRequest { at, model, version, is_cached: cached > 0 }, tokens));
        }
    }
    Ok(last.map(|(request, tokens)| Sent { request, tokens, lifetime }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(model: &str, usage: &str, rest: &str) -> String {
        format!(
            r#"{{"type":"assistant","timestamp":"2026-11-21T20:53:17.945Z","version":"2.1.330"{rest},"message":{{"model":"{model}","usage":{usage}}}}}"#
        )
    }

    fn of(lines: &[String]) -> Option<Sent> {
        last_request(lines.join("\n").as_bytes()).unwrap()
    }

    #[test]
    fn it_is_the_last_of_the_conversation_itself() {
        let one = r#"{"input_tokens":3,"output_tokens":5,"cache_creation_input_tokens":1000,"cache_read_input_tokens":0,"cache_creation":{"ephemeral_1h_input_tokens":1000,"ephemeral_5m_input_tokens":0}}"#;
        let two =
            r#"{"input_tokens":2,"output_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":1003}"#;
        let opus = "claude-opus-4-8";
        let found = of(&[
            line(opus, one, ""),
            "torn".to_owned(),
            line(opus, two, ""),
            line("claude-haiku-5-5", two, r#","isSidechain":true"#),
            line("<synthetic>", r#"{"input_tokens":0,"output_tokens":0}"#, ""),
        ]);
        let request = LastRequest {
            at: "2026-11-21T20:53:17.945Z".parse().unwrap(),
            model: opus.to_owned(),
            version: Some("2.1.330".to_owned()),
            is_cached: true,
        };
        assert_eq!(found, Some(Sent { request, tokens: 1015, lifetime: Some(Lifetime::Hour) }));
    }

    #[test]
    fn a_conversation_may_not_use_the_cache_or_not_have_begun() {
        let plain = of(&[line("claude-opus-4-8", r#"{"input_tokens":12234,"output_tokens":1}"#, "")]).unwrap();
        assert_eq!((plain.request.is_cached, plain.tokens, plain.lifetime), (false, 12235, None));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[r#"{"type":"user","message":{"role":"user","content":"hi"}}"#.to_owned()]), None);
    }
}
