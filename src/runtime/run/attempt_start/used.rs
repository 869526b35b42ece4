//! How much an agent has used of the limits that Claude Code counts within one process.

use std::io::BufReader;

use crate::claude::options::limits_left::{self, Left};
use crate::claude::stream::output_reader;
use crate::core::agent::claude_args::{ClaudeArgs, LIMITS, MAX_TURNS};
use crate::core::chain::frame::Frame;
use crate::core::events::log_entry::LogEntry;
use crate::runtime::{READ_PRINTED, RuntimeError, while_trying};
use crate::store::{Attempt, EventRecord, Store};

/// How much is left for the next attempt of `frame`, which will have these arguments.
pub(super) fn left(store: &Store, frame: &Frame, args: &ClaudeArgs) -> Result<Left, RuntimeError> {
    if !LIMITS.iter().any(|option| args.has(option)) {
        return Ok(Left::Some(args.clone()));
    }
    let attempts = store.attempts(frame.id)?;
    let changes = store.events(frame.id, 0)?;
    let counted = |option: &str| counted(&attempts, &changes, option);
    let turns = match counted(MAX_TURNS) {
        [first, ..] if args.has(MAX_TURNS) => {
            let read = || output_reader::turns(BufReader::new(store.dir().open_printed(frame.id, first.output_from)?));
            read().map_err(while_trying(READ_PRINTED))?
        }
        _ => 0,
    };
    Ok(limits_left::left(args, |option| match option {
        MAX_TURNS => turns as f64,
        _ => counted(option).iter().map(|attempt| attempt.spending.usd).sum(),
    }))
}

/// The attempts that count: those since the limit was set, and since the agent last finished or failed. Continuing such an
/// agent sets the limit again.
fn counted<'a>(attempts: &'a [Attempt], changes: &[EventRecord], option: &str) -> &'a [Attempt] {
    let is_end = |attempt: &Attempt| matches!(attempt.outcome.as_deref(), Some("reply" | "error"));
    let ended = attempts.iter().rposition(is_end).map_or(0, |last| last + 1);
    let given = changes.iter().rev().find(|record| changes_option(record, option)).map(|record| record.at);
    let before = attempts.iter().take_while(|attempt| given.is_some_and(|given| attempt.began < given)).count();
    &attempts[ended.max(before)..]
}

/// Whether a person gave another value for an option of an agent.
fn changes_option(record: &EventRecord, option: &str) -> bool {
    matches!(&record.entry, LogEntry::Launch { from, to } if from.args.last(option) != to.args.last(option))
}
