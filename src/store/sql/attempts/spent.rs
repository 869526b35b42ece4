//! Reads and records what attempts have cost.

use jiff::SignedDuration;
use rusqlite::params;

use crate::core::agent::usage::{Spending, Spent, Totals, Usage};
use crate::core::id::{AttemptId, FrameId};
use crate::store::records::{Counted, Counting};
use crate::store::sql::database::codec::{self, At, Id, count, signed, time};
use crate::store::sql::engine::{Connection, Row, TxResult};
use crate::store::sql::tables::attempt_rows::usage;
use crate::store::sql::tables::below::below;

/// What the attempts of a query have cost. `?2`: now, for those that still run.
macro_rules! sums {
    () => {
        "count(*) AS attempts, coalesce(sum(a.cost_usd), 0.0) AS cost_usd, coalesce(max(a.estimated), 0) AS estimated,
         CAST(coalesce(sum(a.requests), 0) AS BIGINT) AS requests,
         CAST(coalesce(sum(CASE WHEN coalesce(a.ended, ?2) > a.began THEN coalesce(a.ended, ?2) - a.began ELSE 0 END), 0) AS BIGINT)
           AS milliseconds,
         CAST(coalesce(sum(a.input_tokens), 0) AS BIGINT) AS input_tokens,
         CAST(coalesce(sum(a.output_tokens), 0) AS BIGINT) AS output_tokens,
         CAST(coalesce(sum(a.cache_creation_input_tokens), 0) AS BIGINT) AS cache_creation_input_tokens,
         CAST(coalesce(sum(a.cache_read_input_tokens), 0) AS BIGINT) AS cache_read_input_tokens"
    };
}

/// The costs of a frame and all frames below it.
pub(crate) const SPENT: &str = concat!(
    below!("SELECT "),
    sums!(),
    " FROM below CROSS JOIN attempts AS a INDEXED BY attempts_by_frame ON a.frame = below.id"
);

// Added up here, because there may be very many rows. 900,000 milliseconds are a quarter of an hour.
macro_rules! counted {
    ($attempts:literal) => {
        concat!(
            "SELECT min(a.began) AS began, a.ended IS NULL AS runs, a.model, f.task_file AS file, ",
            sums!(),
            " FROM ",
            $attempts,
            " AS a CROSS JOIN frames AS f ON f.id = a.frame GROUP BY a.began / 900000, runs, a.model, file ORDER BY min(a.seq)"
        )
    };
}

const SINCE: &str = counted!("(SELECT * FROM attempts WHERE began >= ?1)");
const LAST_PRICED: &str =
    counted!("(SELECT * FROM attempts WHERE model = ?1 AND estimated = 0 AND cost_usd > 0 ORDER BY seq DESC LIMIT 1)");

pub(crate) fn spent(connection: &Connection, tops: &[FrameId]) -> TxResult<Vec<Spent>> {
    let now = codec::now();
    for top in tops {
        connection.send_ahead(SPENT, (Id(*top), now))?;
    }
    tops.iter().map(|top| connection.read_one(SPENT, (Id(*top), now), spent_row)).collect()
}

pub(crate) fn counted(connection: &Connection, of: Counting<'_>) -> TxResult<Vec<Counted>> {
    match of {
        Counting::Since(since) => connection.read_all(SINCE, (At(since), codec::now()), counted_row),
        Counting::LastPriced(model) => connection.read_all(LAST_PRICED, (model, codec::now()), counted_row),
    }
}

fn counted_row(row: &Row<'_>) -> rusqlite::Result<Counted> {
    Ok(Counted {
        began: time(row, "began")?,
        model: row.get("model")?,
        runs: row.get("runs")?,
        file: row.get("file")?,
        spent: spent_row(row)?,
    })
}

fn spent_row(row: &Row<'_>) -> rusqlite::Result<Spent> {
    Ok(Spent {
        usage: usage(row)?,
        cost_usd: row.get("cost_usd")?,
        estimated: row.get("estimated")?,
        requests: count(row, "requests")?,
        attempts: count(row, "attempts")?,
        time: SignedDuration::from_millis(row.get("milliseconds")?),
    })
}

/// Records what an attempt of `frame` spent. If its model's price was not known before, the attempts of the same tree
/// without an estimate for this reason are estimated now.
pub(crate) fn record(
    connection: &Connection,
    (frame, attempt): (FrameId, AttemptId),
    model: Option<&str>,
    spending: &Spending,
    total: &Totals,
) -> TxResult<()> {
    let tokens = spending.usage;
    connection.run(
        "UPDATE attempts SET input_tokens = ?2, output_tokens = ?3, cache_creation_input_tokens = ?4,
             cache_read_input_tokens = ?5, cost_usd = ?6, total_cost_usd = ?7, total_usage = ?8, requests = ?9,
             estimated = ?10, model = ?11 WHERE id = ?1",
        params![
            Id(attempt),
            signed(tokens.input_tokens),
            signed(tokens.output_tokens),
            signed(tokens.cache_creation_input_tokens),
            signed(tokens.cache_read_input_tokens),
            finite(spending.usd),
            finite(total.usd),
            total.usage.map(|usage| codec::json(&usage, &[])).transpose()?,
            signed(spending.requests),
            spending.estimated,
            model,
        ],
    )?;
    let (Some(rate), Some(model)) = (tokens.rate(spending.usd, spending.estimated), model) else { return Ok(()) };
    let unpriced: Vec<(AttemptId, Usage)> = connection.read_all(
        "SELECT a.* FROM frames AS f CROSS JOIN attempts AS a INDEXED BY attempts_by_frame ON a.frame = f.id
         WHERE f.root = (SELECT root FROM frames WHERE id = ?1) AND a.estimated = 1 AND a.cost_usd = 0 AND a.model = ?2",
        (Id(frame), model),
        |row| Ok((codec::id(row, "id")?, usage(row)?)),
    )?;
    for (attempt, usage) in unpriced {
        let usd = finite(rate * usage.weight());
        connection.run("UPDATE attempts SET cost_usd = ?2 WHERE id = ?1", (Id(attempt), usd))?;
    }
    Ok(())
}

/// The database cannot store a value that is not a number.
fn finite(cost: f64) -> f64 {
    if cost.is_finite() { cost } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::attempt::decision::decide;
    use crate::core::attempt::ending::Ending;
    use crate::core::attempt::facts::Facts;
    use crate::store::AttemptEnd;
    use crate::store::handle::Store;
    use crate::store::records::Caller;
    use crate::store::testing::{attempt_end, new, reply, store};
    use jiff::Timestamp;

    fn end(store: &Store, caller: Caller, spending: Spending) {
        let decision = decide(&Facts::from_ending(reply("SGN_PEND_STARTED")));
        let model = Some("opus".into());
        store.end_attempt(&AttemptEnd { spending, model, ..attempt_end(caller, &decision) }).unwrap();
    }

    #[test]
    fn a_tree_costs_what_its_attempts_cost() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let (_, child) = store.request_child(caller, None, &new("child"), "child").unwrap();
        store.end(caller, &Ending::Suspended);
        store.end(store.start(child), &reply("42"));
        store.end(store.start(store.root()), &reply("another tree"));
        let spent = store.spent(caller.frame).unwrap();
        assert_eq!((spent.attempts, spent.requests, spent.estimated), (2, 2, false));
        assert_eq!((spent.cost_usd, spent.usage.output_tokens), (0.5, 4));
        assert_eq!(store.spent(child).unwrap().attempts, 1);
        assert_eq!(store.spent(FrameId::random()).unwrap(), Spent::default());
        let counted = store.counted(Counting::Since(Timestamp::UNIX_EPOCH)).unwrap();
        assert_eq!(counted.iter().map(|them| them.spent.attempts).sum::<u64>(), 3);
        assert_eq!(store.counted(Counting::Since(Timestamp::MAX)).unwrap(), []);
    }

    #[test]
    fn what_died_is_priced_once_its_model_has_a_price() {
        let (_temp, store) = store();
        let usage = Usage { input_tokens: 100, output_tokens: 20, ..Usage::default() };
        let root = store.root();
        let died = Spending { usage, requests: 1, usd: 0.0, estimated: true };
        end(&store, store.start(root), died);
        let priced = |model| store.counted(Counting::LastPriced(model)).unwrap();
        assert_eq!((priced("opus"), store.spent(root).unwrap().cost_usd), (vec![], 0.0));
        end(&store, store.start(root), Spending { usd: 0.5, estimated: false, ..died });
        let spent = store.spent(root).unwrap();
        assert_eq!((spent.cost_usd, spent.estimated, spent.requests), (1.0, true, 2));
        assert_eq!(priced("opus").iter().map(|it| it.spent.rate()).collect::<Vec<_>>(), [Some(0.0025)]);
        assert_eq!(priced("haiku"), []);
    }
}
