//! Reads whole trees for a poll, which must not read more than its own tree, nor anything large.

use std::collections::HashMap;

use jiff::Timestamp;

use crate::core::chain::frame_state::FrameState;
use crate::core::chain::tree::{Node, Tree};
use crate::core::id::FrameId;
use crate::core::requests::request::Request;
use crate::core::steering::stop_order::Stop;
use crate::store::records::TreeOf;
use crate::store::sql::chains::limit_checks;
use crate::store::sql::database::codec::{Id, from_json, id, maybe_id, time};
use crate::store::sql::engine::{Connection, TxResult};
use crate::store::sql::steering::stops;
use crate::store::sql::tables::requests;

// Reads the whole tree of a frame, even if only the part below the frame was asked for: preparing a statement that selects
// less takes longer than reading the rest.
const NODES: &str = "SELECT id, parent, title, state, since, checkpoint IS NOT NULL AS kept, is_group,
     outcome IS NOT NULL AS has_outcome, is_unrecorded, wants_summary FROM frames
     WHERE root = (SELECT root FROM frames WHERE id = ?1) ORDER BY seq";

/// Like [`NODES`], for a frame and its children.
const FAMILY: &str = "SELECT id, parent, title, state, since, checkpoint IS NOT NULL AS kept, is_group,
     outcome IS NOT NULL AS has_outcome, is_unrecorded, wants_summary FROM frames
     WHERE id IN (SELECT ?1 UNION ALL SELECT id FROM frames INDEXED BY frames_by_parent WHERE parent = ?1) ORDER BY seq";

/// All chains together have few running attempts.
const LINGERING: &str = "SELECT frame, lingers FROM attempts INDEXED BY one_running_attempt
     WHERE ended IS NULL AND lingers IS NOT NULL";

const REQUESTS: &str = "SELECT r.id, r.frame, r.attempt, r.call, r.detail, r.state, r.made, r.looked
     FROM frames AS f CROSS JOIN requests AS r ON r.frame = f.id
     WHERE f.root = (SELECT root FROM frames WHERE id = ?1) AND r.status IN ('open', 'resolved', 'expired', 'delivering')
     ORDER BY r.seq";

pub(crate) fn trees(connection: &Connection, of: &[TreeOf]) -> TxResult<Vec<Tree>> {
    stops::send_ahead(connection)?;
    for of in of {
        if let TreeOf::Whole(top) = *of {
            connection.send_ahead(REQUESTS, [Id(top)])?;
            connection.send_ahead(NODES, [Id(top)])?;
            limit_checks::send_ahead(connection, top)?;
        }
    }
    let open: HashMap<FrameId, Stop> = stops::all_open(connection)?.into_iter().collect();
    of.iter().map(|of| tree(connection, *of, &open)).collect()
}

fn tree(connection: &Connection, of: TreeOf, stops: &HashMap<FrameId, Stop>) -> TxResult<Tree> {
    match of {
        TreeOf::Whole(top) => {
            let nodes = nodes(connection, top, NODES, pending(connection, top)?, stops)?;
            let whole = limit_checks::of_tree(connection, top, &nodes)?;
            Ok(Tree::new(top, nodes).within(whole))
        }
        TreeOf::Family(top) => {
            let own = HashMap::from([(top, requests::pending(connection, top)?)]);
            Ok(Tree::new(top, nodes(connection, top, FAMILY, own, stops)?))
        }
    }
}

fn nodes(
    connection: &Connection,
    top: FrameId,
    sql: &str,
    mut requests: HashMap<FrameId, Vec<Request>>,
    open: &HashMap<FrameId, Stop>,
) -> TxResult<Vec<Node>> {
    let mut nodes = connection.read_all(sql, [Id(top)], |row| {
        let id = id(row, "id")?;
        Ok(Node {
            id,
            parent: maybe_id(row, "parent")?,
            title: row.get("title")?,
            state: from_json(row, "state")?,
            since: time(row, "since")?,
            kept: row.get("kept")?,
            is_group: row.get("is_group")?,
            has_outcome: row.get("has_outcome")?,
            lingers: None,
            is_unrecorded: row.get("is_unrecorded")?,
            wants_summary: row.get("wants_summary")?,
            stop: None,
            requests: requests.remove(&id).unwrap_or_default(),
        })
    })?;
    // A poll of a chain in which nothing runs does not prepare the statement.
    if nodes.iter().any(|node| matches!(node.state, FrameState::Running { .. })) {
        let lingering = connection.read_all(LINGERING, [], |row| Ok((id(row, "frame")?, time(row, "lingers")?)))?;
        let lingering: HashMap<FrameId, Timestamp> = lingering.into_iter().collect();
        nodes.iter_mut().for_each(|node| node.lingers = lingering.get(&node.id).copied());
    }
    for node in &mut nodes {
        node.stop = match (open.get(&node.id), &node.state) {
            (Some(stop), _) => Some(stop.clone()),
            (None, FrameState::Paused { .. }) => stops::last(connection, node.id)?,
            (None, _) => None,
        };
    }
    Ok(nodes)
}

fn pending(connection: &Connection, top: FrameId) -> TxResult<HashMap<FrameId, Vec<Request>>> {
    let mut pending: HashMap<FrameId, Vec<Request>> = HashMap::new();
    for request in connection.read_all(REQUESTS, [Id(top)], requests::from_row)? {
        pending.entry(request.frame).or_default().push(request);
    }
    Ok(pending)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::attempt::ending::Ending;
    use crate::core::chain::runnable::Attempted;
    use crate::store::sql::attempts::spent::SPENT;
    use crate::store::testing::{in_file, new, reply, store};

    /// Many rows, created by the database itself.
    fn fill(connection: &rusqlite::Connection, rows: u32) {
        connection
            .execute_batch(&format!(
                "BEGIN;
                 WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
                 INSERT INTO chains (root, limits) SELECT printf('%08x-0000-4000-8000-000000000000', i), '{{}}' FROM n;
                 INSERT INTO frames (id, root, depth, state, since, created, session, title, cwd, launch, task)
                 SELECT root, root, 1, '{{\"state\":\"ready\"}}', 0, 0, root, 't', '/', '{{}}', '{{}}' FROM chains
                 WHERE root NOT IN (SELECT id FROM frames);
                 COMMIT"
            ))
            .unwrap();
    }

    fn plan(connection: &rusqlite::Connection, sql: &str) -> Vec<String> {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let parameters = rusqlite::params_from_iter(vec!["x"; statement.parameter_count()]);
        statement.query_map(parameters, |row| row.get("detail")).unwrap().map(|step| step.unwrap()).collect()
    }

    #[test]
    fn a_poll_reads_its_own_tree_only() {
        let (_temp, store) = in_file();
        let (top, question) = store.asking("When?");
        fill(store.sqlite(), 10_000);
        for analyzed in [false, true] {
            for sql in [NODES, FAMILY, REQUESTS, SPENT] {
                let plan = plan(store.sqlite(), sql);
                let scans: Vec<_> = plan.iter().filter(|step| step.contains("SCAN")).collect();
                assert!(
                    scans.iter().all(
                        |step| ["SCAN below", "SCAN 2 CONSTANT ROWS", "SCAN CONSTANT ROW"].contains(&step.as_str())
                    ),
                    "{plan:#?}"
                );
            }
            if !analyzed {
                store.sqlite().execute_batch("ANALYZE").unwrap();
            }
        }
        let tree = store.tree(top).unwrap();
        assert_eq!(tree.leaves_up().len(), 1);
        assert_eq!(tree.get(top).unwrap().requests[0].id, question);
        assert_eq!(store.roots().len(), 10_001);
    }

    #[test]
    fn a_tree_is_listed_in_the_order_in_which_it_grew() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let children: Vec<_> = (0..20)
            .map(|n| store.request_child(caller, None, &new(&format!("child {n}\nmore")), "c").unwrap().1)
            .collect();
        store.end(caller, &Ending::Suspended);
        let tree = store.tree(caller.frame).unwrap();
        assert_eq!(tree.children(caller.frame), children);
        assert_eq!(tree.get(children[7]).unwrap().title, "child 7");
        assert!(tree.get(caller.frame).unwrap().kept);
        assert!(!tree.get(children[0]).unwrap().kept);
    }

    #[test]
    fn a_family_says_whether_a_frame_can_run() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let (_, child) = store.request_child(caller, None, &new("child"), "child").unwrap();
        store.end(caller, &Ending::Suspended);
        let below = store.start(child);
        store.request_child(below, None, &new("grandchild"), "grandchild").unwrap();
        let can_run = |frame| {
            let tree = store.tree(TreeOf::Family(frame)).unwrap();
            tree.runnable(&Attempted::default(), Timestamp::UNIX_EPOCH).contains(&frame)
        };
        assert_eq!(store.tree(TreeOf::Family(caller.frame)).unwrap().leaves_up().len(), 2);
        assert!(!can_run(caller.frame));
        store.end(below, &reply("done"));
        assert!(can_run(caller.frame));
    }

    #[test]
    fn a_large_task_is_a_short_title() {
        let (_temp, store) = store();
        let id = store.create_root(&new(&"x".repeat(1_000_000))).unwrap();
        assert!(store.tree(id).unwrap().get(id).unwrap().title.len() < 200);
    }

    #[test]
    fn a_damaged_tree_ends() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let (_, child) = store.request_child(caller, None, &new("child"), "child").unwrap();
        store.execute("UPDATE frames SET parent = ?1 WHERE parent IS NULL", [Id(child)]);
        assert_eq!(store.tree(caller.frame).unwrap().leaves_up().len(), 2);
        assert_eq!(store.spent(child).unwrap().attempts, 1);
    }
}
