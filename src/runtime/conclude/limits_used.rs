//! Computes how much an agent has used of the limits that Claude Code counts within one process.

use std::io::BufReader;

use crate::claude::options::limits_left::{self, Left};
use crate::claude::stream::output_reader;
use crate::core::agent::claude_args::{ClaudeArgs, LIMITS, MAX_BUDGET, MAX_TURNS, number};
use crate::core::agent::usage::prices::Prices;
use crate::core::chain::frame::Frame;
use crate::core::events::log_entry::LogEntry;
use crate::runtime::{READ_PRINTED, RuntimeError, while_trying};
use crate::store::{Attempt, EventRecord, Store};

/// How much is left for the next attempt of `frame`, which will have these arguments. Takes the rest of the chain's budget
/// into account, unless a person has set other `prices` than those by which `claude` counts.
pub(crate) fn left(store: &Store, prices: &Prices, frame: &Frame, args: &ClaudeArgs) -> Result<Left, RuntimeError> {
    let args = match left_of_own(store, frame, args)? {
        Left::Some(args) => args,
        nothing @ Left::Nothing(_) => return Ok(nothing),
    };
    let chain = store.chain_of(frame.id)?;
    let Some(max_usd) = chain.limits.max_budget_usd else { return Ok(Left::Some(args)) };
    let rest = max_usd - store.spent(frame.root)?.cost_usd - chain.others_usd;
    let named = || frame.launch.model.clone();
    let model = store.attempts(frame.id)?.pop().and_then(|attempt| attempt.model).or_else(named);
    let has_own_price = model.is_some_and(|model| prices.configured(&model).is_some());
    Ok(Left::Some(if rest > 0.0 && !has_own_price { limits_left::within(&args, rest) } else { args }))
}

/// Whether Claude Code reports that a budget is spent, and that budget is the rest of the chain's budget.
pub(super) fn is_chain_spent(store: &Store, frame: &Frame, said: &str) -> Result<bool, RuntimeError> {
    if !limits_left::is_budget_of_chain(said, None) || store.chain_of(frame.id)?.limits.max_budget_usd.is_none() {
        return Ok(false);
    }
    let Some(limit) = frame.launch.args.last(MAX_BUDGET).and_then(number) else { return Ok(true) };
    let (attempts, changes) = (store.attempts(frame.id)?, store.events(frame.id, 0)?);
    let own_usd = limit - spent(counted(&attempts, &changes, MAX_BUDGET));
    Ok(limits_left::is_budget_of_chain(said, Some(own_usd)))
}

fn spent(attempts: &[Attempt]) -> f64 {
    attempts.iter().map(|attempt| attempt.spending.usd).sum()
}

fn left_of_own(store: &Store, frame: &Frame, args: &ClaudeArgs) -> Result<Left, RuntimeError> {
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
        _ => spent(counted(option)),
    }))
}

/// The attempts that count: attempts since the limit was set, and since the agent last finished or failed. Continuing such
/// an agent sets the limit again.
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
