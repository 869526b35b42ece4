//! The summary that an agent writes of its conversation, and how a new session continues from it.

use std::env;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::memory::Memory;
use crate::transcript::Mark;
use crate::turn::{Flow, Turn};

/// What the agent knows in its new session.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Known {
    /// The number of steps that are over.
    pub(crate) over: usize,
    /// Requests without a result.
    pub(crate) pending: Vec<String>,
    /// The results of all requests.
    pub(crate) results: Vec<String>,
}

const LINE: &str = "I know ";
const ASKED: &str = "Reply with the summary and nothing else";
const ASKED_AGAIN: &str = "You were asked for this before";

/// Whether a prompt asks for a summary.
pub(crate) fn is_asked_for(prompt: &str) -> bool {
    prompt.starts_with("SGN_RESUME") && prompt.contains(ASKED)
}

/// What a summary in a prompt says.
pub(crate) fn known(prompt: &str) -> Option<Known> {
    prompt.lines().find_map(|line| serde_json::from_str(line.strip_prefix(LINE)?).ok())
}

/// Replies with a summary, or as `STAND_IN_SUMMARY` says.
pub(crate) async fn write(turn: &mut Turn<'_>, prompt: &str) -> Result<std::process::ExitCode> {
    let how = env::var("STAND_IN_SUMMARY").unwrap_or_default();
    let is_short = how == "never" || (how == "late" && !prompt.contains(ASKED_AGAIN));
    if is_short {
        return turn.reply("I am nearly done.", &Mark::default());
    }
    let known = turn.memory().known()?;
    let command = how.strip_prefix("after ");
    if let Some(command) = command {
        let call = ("Bash".to_owned(), json!({"command": command}));
        if let Flow::Over(code) = turn.call(&[call], &Mark { step: usize::MAX, ..Mark::default() }).await? {
            return Ok(code);
        }
    }
    let known = serde_json::to_string(&known).context("it is JSON")?;
    let summary = format!(
        "## Goal\nThe task.\n\n## Decisions\n{LINE}{known}\n\n## State of the files\nNone.\n\n## Open questions\nNone."
    );
    turn.reply(&summary, &Mark::default())
}

impl Memory {
    /// What is needed to continue elsewhere. A call that has no result yet is not over.
    fn known(&self) -> Result<Known> {
        let open = self.without_result.iter().min();
        let over = open.map_or(self.over, |step| step.saturating_sub(1));
        Ok(Known { over, pending: self.pending.clone(), results: self.results.clone() })
    }
}
