//! Checks an answer against its question, for every way of answering.

use crate::cli::error::CliError;
use crate::core::id::RequestId;
use crate::core::requests::answer::{self, NoAnswer};
use crate::core::requests::request::RequestKind;
use crate::core::text::shell::quoted;
use crate::store::Question;

/// Each answer is kept several times, and becomes a part of a conversation.
const LARGEST: usize = 8 << 20;

/// The text as the answer that it is to a question.
pub(super) fn checked_answer(asked: &Question, text: &str, is_text: bool) -> Result<String, CliError> {
    let read = if is_text { answer::verbatim } else { answer::from_text };
    let text = read(&asked.kind, text).map_err(|error| refused(asked.id, &asked.kind, text, &error))?;
    if text.len() > LARGEST {
        let message = format!("the answer has {} bytes, where 8 MiB are allowed", text.len());
        return Err(CliError::usage(message).hint("write it to a file, and answer with the name of the file"));
    }
    Ok(text)
}

fn refused(id: RequestId, kind: &RequestKind, text: &str, error: &NoAnswer) -> CliError {
    let command = |answer: &str| format!("agent-cli answer {} {answer}", id.short());
    let example = match kind {
        RequestKind::Ask(form) => form.example().unwrap_or("ANSWER"),
        _ => "ANSWER",
    };
    let refused = CliError::usage(error.to_string());
    match (error, kind) {
        (NoAnswer::NoSuchChoice { .. }, _) => {
            let text = format!("--text={}", quoted(text.trim()));
            refused.hint(command(example)).hint(format!("to answer with text, not a choice: {}", command(&text)))
        }
        (NoAnswer::NotAnOption { .. }, _) => refused.hint(command(example)),
        (_, RequestKind::Permission { .. } | RequestKind::Plan(_)) => {
            refused.hint(command("allow")).hint(format!("or {}", command("\"deny use the test server\"")))
        }
        _ => refused.hint(command("ANSWER")),
    }
}
