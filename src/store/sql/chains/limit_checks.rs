//! The limits of a tree, which apply to every process that runs a part of it.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::json;

use crate::core::agent::usage::rounded_usd;
use crate::core::chain::admission::{Load, NotAdmitted};
use crate::core::chain::frame::Frame;
use crate::core::chain::frame_state::FrameState;
use crate::core::chain::limits::{Limits, NewLimits};
use crate::core::chain::tree::{Node, Whole};
use crate::core::events::log_entry::LogEntry;
use crate::core::housekeeping::hosting::Elsewhere;
use crate::core::id::FrameId;
use crate::core::notifications::occasion::Occasion;
use crate::store::error::StoreError;
use crate::store::records::{ChainOf, Target};
use crate::store::sql::database::codec::{self, At, Id, from_json, id, maybe_id, maybe_json, time};
use crate::store::sql::engine::{Connection, Row, TxResult};
use crate::store::sql::tables::chains::{self, family};
use crate::store::sql::tables::events;
use crate::store::sql::tables::notifications::{self, Noted};

// These find the few relevant frames by an index, however large the tree is. Each repeats the condition of its index
// (`schema`) word for word.
const RUNNING: &str = "SELECT count(*) FROM frames WHERE root = ?1 AND status = 'running'";
const RUNNING_ANYWHERE: &str = "SELECT count(*) FROM frames WHERE status = 'running'";
const RUNNING_ON_HOST: &str = "SELECT count(*) FROM frames AS f CROSS JOIN chains AS c ON c.root = f.root
     WHERE f.status = 'running' AND c.host = ?1";
const LIMITED: &str = "SELECT state, since FROM frames
     WHERE root = ?1 AND waits_for = 'usage_limit'
     AND config_dir IS NOT DISTINCT FROM (SELECT config_dir FROM frames WHERE id = ?2)";

const SPENT: &str = concat!(
    "SELECT coalesce(sum(cost_usd), 0.0) + (SELECT coalesce(sum(removed_usd), 0.0) FROM chains WHERE root IN ",
    family!(),
    ") FROM frames AS f CROSS JOIN attempts AS a
     INDEXED BY attempts_by_frame ON a.frame = f.id WHERE f.root IN ",
    family!()
);

const LIMITS_OF_TREE: &str =
    "SELECT root, limits, host FROM chains WHERE root = (SELECT root FROM frames WHERE id = ?1)";

/// Selects a chain. `$found` must name its frame `f`.
macro_rules! chain {
    ($found:literal) => {
        concat!(
            "SELECT f.id, c.root, c.limits, c.name, c.host, c.family, c.detached, CASE WHEN c.family IS NULL THEN c.removed_usd ELSE
               (SELECT coalesce(sum(a.cost_usd), 0.0) FROM chains AS other CROSS JOIN frames AS o ON o.root = other.root
                CROSS JOIN attempts AS a INDEXED BY attempts_by_frame ON a.frame = o.id
                WHERE other.family = c.family AND other.root <> c.root)
               + (SELECT coalesce(sum(other.removed_usd), 0.0) FROM chains AS other WHERE other.family = c.family)
               END AS others_usd FROM ",
            $found
        )
    };
}

const CHAIN_OF_FRAME: &str = chain!("frames AS f CROSS JOIN chains AS c ON c.root = f.root WHERE f.id = ?1");
const CHAIN_OF_REQUEST: &str = chain!(
    "requests AS r CROSS JOIN frames AS f ON f.id = r.frame CROSS JOIN chains AS c ON c.root = f.root WHERE r.id = ?1"
);

pub(crate) fn chain_of(connection: &Connection, target: Target) -> TxResult<ChainOf> {
    let of = |row: &Row<'_>| {
        Ok(ChainOf {
            frame: id(row, "id")?,
            root: id(row, "root")?,
            limits: from_json(row, "limits")?,
            name: row.get("name")?,
            elsewhere: elsewhere(connection.host(), row.get("host")?),
            detached: maybe_json(row, "detached")?,
            family: maybe_id(row, "family")?,
            others_usd: row.get("others_usd")?,
        })
    };
    match target {
        Target::Frame(frame) => {
            Ok(connection.read_first(CHAIN_OF_FRAME, [Id(frame)], of)?.ok_or(StoreError::UnknownFrame(frame))?)
        }
        Target::Request(request) => Ok(connection
            .read_first(CHAIN_OF_REQUEST, [Id(request)], of)?
            .ok_or(StoreError::UnknownRequest(request))?),
    }
}

fn elsewhere(own: Option<&str>, host: Option<String>) -> Option<Elsewhere> {
    match (own, host) {
        (Some(_), None) => Some(Elsewhere::Waiting),
        (Some(own), Some(host)) if host != own => Some(Elsewhere::Host(host)),
        _ => None,
    }
}

/// Changes the limits of a tree from now on.
pub(crate) fn change(connection: &Connection, root: FrameId, new: NewLimits) -> TxResult<()> {
    let before = chains::limits(connection, root)?;
    let limits = before.changed(new);
    chains::set_limits(connection, root, limits)?;
    events::append(connection, codec::now(), root, &LogEntry::Limits { from: before, to: limits })
}

/// Why a frame may not start, in terms of [`crate::core::chain::admission`]. Checked in the transaction in which it would
/// start, so that no other process can start another frame in between.
pub(crate) fn not_admitted(
    connection: &Connection,
    frame: &Frame,
    now: Timestamp,
    max_parallel_total: Option<u32>,
) -> TxResult<Option<NotAdmitted>> {
    let running = connection.read_one(RUNNING, [Id(frame.root)], |row| row.get(0))?;
    let limits = chains::limits(connection, frame.root)?;
    let spent_usd = spent_for_budget(connection, frame.root, limits)?;
    let until = |row: &Row<'_>| {
        let (state, since) = (from_json(row, "state")?, time(row, "since")?);
        Ok(match state {
            FrameState::Waiting { wait } => wait.paused_until(since, now),
            _ => None,
        })
    };
    let limited = connection.read_all(LIMITED, (Id(frame.root), Id(frame.id)), until)?;
    let refused = limits.refuse(Load { running, spent_usd }, limited.into_iter().flatten().max());
    let (None, Some(most)) = (refused, max_parallel_total) else { return Ok(refused) };
    // Each host has room for this many.
    let here: u32 = match connection.host() {
        Some(host) => connection.read_one(RUNNING_ON_HOST, [host], |row| row.get(0))?,
        None => connection.read_one(RUNNING_ANYWHERE, [], |row| row.get(0))?,
    };
    Ok((here >= most).then_some(NotAdmitted::ParallelTotal { most }))
}

/// Records that the tree of a frame has spent its budget, once for each amount.
pub(crate) fn note_spent_budget(connection: &Connection, now: At, frame: &Frame) -> TxResult<()> {
    let occasion = Occasion::Budget;
    // Adding up the costs of a tree takes longer than everything else.
    if !notifications::is_wanted(connection, occasion)? {
        return Ok(());
    }
    let limits = chains::limits(connection, frame.root)?;
    let spent_usd = spent_for_budget(connection, frame.root, limits)?;
    let Some(max_usd) = limits.max_budget_usd.filter(|max_usd| spent_usd >= *max_usd) else { return Ok(()) };
    let subject = format!("budget {} {max_usd}", frame.root);
    let detail = json!({"max_usd": max_usd, "spent_usd": rounded_usd(spent_usd)});
    notifications::note(
        connection,
        now,
        &Noted { occasion, frame: frame.root, request: None, subject: Some(&subject), detail },
    )
}

/// Announces [`of_tree`].
pub(crate) fn send_ahead(connection: &Connection, frame: FrameId) -> TxResult<()> {
    connection.send_ahead(LIMITS_OF_TREE, [Id(frame)])
}

/// Facts about the whole tree of a frame. `nodes` are all of its frames.
pub(crate) fn of_tree(connection: &Connection, frame: FrameId, nodes: &[Node]) -> TxResult<Whole> {
    let found = connection.read_first(LIMITS_OF_TREE, [Id(frame)], |row| {
        let elsewhere = elsewhere(connection.host(), row.get("host")?);
        Ok((id(row, "root")?, from_json(row, "limits")?, elsewhere.is_some()))
    })?;
    let Some((root, limits, is_elsewhere)) = found else { return Ok(Whole::default()) };
    let limited = |node: &Node| matches!(&node.state, FrameState::Waiting { wait } if wait.is_pause());
    let accounts = if nodes.iter().any(limited) { accounts(connection, root)? } else { HashMap::new() };
    Ok(Whole { limits, spent_usd: spent_for_budget(connection, root, limits)?, accounts, is_elsewhere })
}

/// The spending of a tree and the other trees of its family. Only needed if there is a budget.
fn spent_for_budget(connection: &Connection, root: FrameId, limits: Limits) -> TxResult<f64> {
    if limits.max_budget_usd.is_none() {
        return Ok(0.0);
    }
    connection.read_one(SPENT, [Id(root)], |row| row.get(0))
}

fn accounts(connection: &Connection, root: FrameId) -> TxResult<HashMap<FrameId, String>> {
    let sql = "SELECT id, config_dir AS account FROM frames WHERE root = ?1 AND config_dir IS NOT NULL";
    let accounts = connection.read_all(sql, [Id(root)], |row| Ok((id(row, "id")?, row.get("account")?)))?;
    Ok(accounts.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Barrier;

    use super::*;
    use crate::core::attempt::ending::Ending;
    use crate::core::chain::frame_state::Wait;
    use crate::core::chain::runnable::Attempted;
    use crate::store::error::StoreError;
    use crate::store::handle::Store;
    use crate::store::records::Caller;
    use crate::store::testing::{attempt, in_file, new, refused, reply, store};

    /// A root that waits for this many children.
    fn parent(store: &Store, limits: Limits, children: usize) -> (Caller, Vec<FrameId>) {
        let root = store.create_root(&crate::store::NewFrame { limits, ..new("root") }).unwrap();
        let caller = store.start(root);
        let child = |n| store.request_child(caller, None, &new(&format!("child {n}")), "child").unwrap().1;
        let children = (0..children).map(child).collect();
        store.end(caller, &Ending::Suspended);
        (caller, children)
    }

    fn held(store: &Store, frame: FrameId) -> NotAdmitted {
        match store.begin(frame, &attempt(vec![])) {
            Err(StoreError::NotAdmitted(why)) => {
                let tree = store.tree(frame).unwrap();
                let now = Timestamp::now();
                assert_eq!(tree.admission(now).refuse(tree.get(frame).unwrap()), Some(why), "both say the same");
                assert_eq!(tree.runnable(&Attempted::default(), now), []);
                why
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn of_many_that_begin_at_once_no_more_run_than_may() {
        let (_temp, store) = store();
        let (_, children) = parent(&store, Limits { max_parallel: 3, ..Limits::default() }, 12);
        let barrier = Barrier::new(children.len());
        let began = std::thread::scope(|scope| {
            let begin = |child: &FrameId| {
                let (barrier, dir, child) = (&barrier, store.dir().path(), *child);
                scope.spawn(move || {
                    let store = Store::open(dir).unwrap();
                    barrier.wait();
                    match store.begin(child, &attempt(vec![])) {
                        Ok(()) => true,
                        Err(StoreError::NotAdmitted(NotAdmitted::Parallel { most: 3 })) => false,
                        Err(error) => panic!("{error}"),
                    }
                })
            };
            let threads: Vec<_> = children.iter().map(begin).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).filter(|began| *began).count()
        });
        assert_eq!(began, 3);
    }

    #[test]
    fn an_end_makes_room_for_another() {
        let (_temp, store) = store();
        let (root, children) = parent(&store, Limits { max_parallel: 1, ..Limits::default() }, 2);
        let first = store.start(children[0]);
        assert_eq!(held(&store, children[1]), NotAdmitted::Parallel { most: 1 });
        store.change_chain(children[1], NewLimits { max_parallel: Some(2), ..NewLimits::default() }).unwrap();
        let second = store.start(children[1]);
        store.change_chain(root.frame, NewLimits { max_parallel: Some(1), ..NewLimits::default() }).unwrap();
        store.end(second, &refused("bad flag"));
        assert_eq!(store.chain_of(children[0]).unwrap().limits.max_parallel, 1);
        store.end(first, &reply("ok"));
        store.start(root.frame);
    }

    #[test]
    fn no_more_agents_of_all_chains_run_than_whoever_starts_one_wants() {
        let (_temp, store) = store();
        store.start(store.root());
        let begin = |most| {
            let attempt = crate::store::NewAttempt { max_parallel_total: Some(most), ..attempt(vec![]) };
            store.begin(store.root(), &attempt)
        };
        assert!(matches!(begin(1), Err(StoreError::NotAdmitted(NotAdmitted::ParallelTotal { most: 1 }))));
        begin(2).unwrap();
        assert!(matches!(begin(2), Err(StoreError::NotAdmitted(NotAdmitted::ParallelTotal { most: 2 }))));
    }

    #[test]
    fn a_spent_budget_blocks_the_tree_until_it_is_raised() {
        let (_temp, store) = store();
        let (root, children) = parent(&store, Limits { max_budget_usd: Some(0.5), ..Limits::default() }, 1);
        store.end(store.start(children[0]), &reply("ok"));
        assert_eq!(held(&store, root.frame), NotAdmitted::Budget { max_usd: 0.5, spent_usd: 0.5 });
        let raised = NewLimits { max_budget_usd: Some(0.75), ..NewLimits::default() };
        store.change_chain(children[0], raised).unwrap();
        store.end(store.start(root.frame), &reply("done"));
        let changes = store
            .events(root.frame, 0)
            .unwrap()
            .into_iter()
            .filter(|event| matches!(event.entry, LogEntry::Limits { .. }))
            .count();
        assert_eq!(changes, 1);
    }

    #[test]
    fn a_usage_limit_blocks_those_of_the_same_account() {
        let (_temp, store) = store();
        let (root, children) = parent(&store, Limits::default(), 2);
        let mut other = new("another account");
        other.launch.config_dir = Some(PathBuf::from("/home/other/.claude"));
        other.started_from = Some(children[0].into());
        let caller = store.start(store.create_root(&other).unwrap());
        store.end(caller, &reply("SGN_PEND_STARTED"));
        let limited = store.start(children[0]);
        assert!(store.join(limited, caller.frame).unwrap());
        let resets_at = "2100-01-01T00:00:00Z".parse().unwrap();
        store.end(limited, &Ending::UsageLimit { resets_at, worked: true });
        assert_eq!(held(&store, children[1]), NotAdmitted::UsageLimit { resets_at });
        store.end(store.start(caller.frame), &reply("not held"));
        assert_eq!(store.try_again(children[0]).unwrap(), FrameState::Ready);
        store.start(children[1]);
        assert_eq!(store.frame(root.frame).unwrap().unwrap().state, FrameState::Waiting { wait: Wait::Requests });
    }

    #[test]
    fn of_several_reasons_the_one_that_lasts_longest_is_reported() {
        let (_temp, store) = store();
        let limits = Limits { max_parallel: 1, max_budget_usd: Some(9.0), ..Limits::default() };
        let (_, children) = parent(&store, limits, 3);
        let resets_at = "2100-01-01T00:00:00Z".parse().unwrap();
        store.end(store.start(children[0]), &Ending::UsageLimit { resets_at, worked: true });
        assert_eq!(held(&store, children[2]), NotAdmitted::UsageLimit { resets_at });
        // One that began before the limit was met is still running.
        let running = FrameState::Running { waited: None };
        let state = codec::json(&running, &[]).unwrap();
        store.execute("UPDATE frames SET state = ?2 WHERE id = ?1", (Id(children[1]), state));
        assert_eq!(held(&store, children[2]), NotAdmitted::UsageLimit { resets_at }, "all places are taken as well");
        let spent = NewLimits { max_budget_usd: Some(0.1), ..NewLimits::default() };
        store.change_chain(children[2], spent).unwrap();
        assert!(matches!(held(&store, children[2]), NotAdmitted::Budget { .. }));
    }

    #[test]
    fn the_frames_in_question_are_found_by_their_indices() {
        let (_temp, store) = in_file();
        let root = store.root();
        for (sql, index) in [(RUNNING, "running_frames"), (LIMITED, "usage_limits")] {
            let mut statement = store.sqlite().prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let ids = vec![root.to_string(); statement.parameter_count()];
            let plan: Vec<String> = statement
                .query_map(rusqlite::params_from_iter(ids), |row| row.get("detail"))
                .unwrap()
                .map(Result::unwrap)
                .collect();
            assert!(plan[0].contains(index), "{plan:?}");
        }
    }
}
