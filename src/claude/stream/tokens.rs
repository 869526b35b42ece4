//! Tokens, in the shapes in which Claude Code reports them: in its transcripts, its output and its totals.

use std::collections::HashMap;

use serde_json::Value;

use crate::core::agent::usage::Usage;
use crate::core::agent::usage::context_size::Context;

/// The tokens of a response of the API, or of a result.
pub(crate) fn of_answer(usage: &Value) -> Usage {
    let tokens = |name| usage[name].as_u64().unwrap_or(0);
    Usage {
        input_tokens: tokens("input_tokens"),
        output_tokens: tokens("output_tokens"),
        cache_creation_input_tokens: tokens("cache_creation_input_tokens"),
        cache_read_input_tokens: tokens("cache_read_input_tokens"),
    }
}

/// The tokens of a session, which are counted for each of its models; `None`: its version does not count them.
pub(crate) fn of_models(usage: &Value) -> Option<Usage> {
    let of_model = |usage: &Value| {
        let tokens = |name| usage[name].as_u64().unwrap_or(0);
        Usage {
            input_tokens: tokens("inputTokens"),
            output_tokens: tokens("outputTokens"),
            cache_creation_input_tokens: tokens("cacheCreationInputTokens"),
            cache_read_input_tokens: tokens("cacheReadInputTokens"),
        }
    };
    Some(usage.as_object()?.values().map(of_model).fold(Usage::default(), Usage::plus))
}

/// The responses of the API that an attempt got, each by the id of its message. A message comes in several parts, which repeat
/// its tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answers(HashMap<String, Usage>);

impl Answers {
    /// Counts a part of a message.
    pub(crate) fn absorb(&mut self, id: &Value, model: &Value, usage: &Value) {
        // Claude Code words its own messages as a model of this name.
        let (Some(id), true) = (id.as_str(), model != "<synthetic>") else { return };
        let known = self.0.entry(id.to_owned()).or_default();
        *known = known.max(of_answer(usage));
    }

    /// Adds more accurate values from a transcript: the stream prints a message before its last tokens are generated.
    pub(crate) fn complete(&mut self, written: &Self) {
        for (id, usage) in &mut self.0 {
            *usage = written.0.get(id).map_or(*usage, |written| usage.max(*written));
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// The sum of all tokens.
    pub(crate) fn usage(&self) -> Usage {
        self.0.values().copied().fold(Usage::default(), Usage::plus)
    }
}

/// How much of its model's context window a conversation takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ContextSize {
    /// The model that answered last, and how many tokens that request sent and received.
    last: Option<(String, u64)>,
    known: Option<Context>,
}

impl ContextSize {
    /// Takes a message of the model into account.
    pub(crate) fn absorb_answer(&mut self, model: &Value, usage: &Value) {
        let tokens = of_answer(usage).all();
        if let Some(model) = model.as_str().filter(|_| tokens > 0) {
            self.last = Some((model.to_owned(), tokens));
        }
    }

    /// Takes into account what a result says about its models.
    pub(crate) fn absorb_models(&mut self, models: &Value) {
        let Some((model, tokens)) = &self.last else { return };
        // The name of a model with a larger window may end in its size.
        let of_model = models.as_object().and_then(|models| models.iter().find(|(name, _)| name.starts_with(model)));
        let window = of_model.and_then(|(_, usage)| usage["contextWindow"].as_u64()).filter(|window| *window > 0);
        if let Some(window) = window {
            self.known = Some(Context { tokens: *tokens, window });
        }
    }

    pub(crate) fn known(&self) -> Option<Context> {
        self.known
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_parts_of_a_message_are_one_answer() {
        let mut answers = Answers::default();
        let part = |answers: &mut Answers, id: &str, model: &str, output: u64| {
            answers.absorb(&json!(id), &json!(model), &json!({"input_tokens": 10, "output_tokens": output}));
        };
        part(&mut answers, "m1", "claude-opus-4-8", 1);
        part(&mut answers, "m1", "claude-opus-4-8", 1);
        part(&mut answers, "m2", "claude-opus-4-8", 1);
        part(&mut answers, "m3", "<synthetic>", 1);
        answers.absorb(&Value::Null, &Value::Null, &json!({"input_tokens": 9}));
        let mut written = Answers::default();
        part(&mut written, "m1", "claude-opus-4-8", 7);
        part(&mut written, "of an earlier attempt", "claude-opus-4-8", 7);
        answers.complete(&written);
        assert_eq!((answers.count(), answers.usage().input_tokens, answers.usage().output_tokens), (2, 20, 8));
    }

    #[test]
    fn a_conversation_is_as_large_as_its_last_request() {
        let mut size = ContextSize::default();
        size.absorb_models(&json!({"claude-opus-4-8": {"contextWindow": 200_000}}));
        assert_eq!(size.known(), None, "nothing was asked");
        for tokens in [150_000, 20_000] {
            let usage = json!({"input_tokens": 5, "output_tokens": 10, "cache_read_input_tokens": tokens - 15});
            size.absorb_answer(&json!("claude-opus-4-8"), &usage);
        }
        size.absorb_answer(&json!("claude-opus-4-8"), &json!({}));
        size.absorb_models(&json!({"claude-haiku-4-5": {"contextWindow": 7}}));
        assert_eq!(size.known(), None);
        size.absorb_models(&json!({"claude-haiku-4-5": {}, "claude-opus-4-8[1m]": {"contextWindow": 1_000_000}}));
        assert_eq!(size.known(), Some(Context { tokens: 20_000, window: 1_000_000 }));
    }

    #[test]
    fn the_models_of_a_session_are_added_up() {
        let model =
            json!({"inputTokens": 1, "outputTokens": 2, "cacheReadInputTokens": 3, "cacheCreationInputTokens": 4});
        let total = of_models(&json!({"opus": model, "haiku": model})).unwrap();
        assert_eq!((total.input_tokens, total.output_tokens), (2, 4));
        assert_eq!((total.cache_read_input_tokens, total.cache_creation_input_tokens), (6, 8));
        assert_eq!((of_models(&json!({})), of_models(&Value::Null)), (Some(Usage::default()), None));
    }
}
