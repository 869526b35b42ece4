//! Lists chains without reading all of them.

use std::collections::HashSet;
use std::ops::ControlFlow;

use crate::core::chain::frame_state::AgentStatus;
use crate::core::id::FrameId;
use crate::store::records::{ChainFilter, ChainKind, ChainList, Chains, SearchIn, Summary};
use crate::store::sql::database::codec::{At, Id, count, from_json, id, path, path_text, signed, time};
use crate::store::sql::engine::row::meaningless;
use crate::store::sql::engine::{Connection, Row, TxResult};

// All of them are answered by an index alone, although the query plans do not say so: a generated column is read from the
// index, too. Each repeats the condition of its partial index.
const KINDS: &str = "SELECT cwd, status, count(*) AS chains FROM frames INDEXED BY roots WHERE parent IS NULL
     GROUP BY cwd, status";
const NEWEST: &str = "SELECT seq, id FROM frames INDEXED BY roots
     WHERE parent IS NULL AND cwd = ?1 AND status = ?2 ORDER BY seq DESC LIMIT ?3";
const WITH: &str = "SELECT root FROM frames INDEXED BY unusual_frames
     WHERE status IN ('running', 'paused', 'cancelled') AND status = ?1 GROUP BY root ORDER BY max(seq) DESC";

const CONTINUED: &str = "SELECT DISTINCT root FROM frames INDEXED BY continued_frames
     WHERE outcome IS NOT NULL AND status NOT IN ('done', 'failed') ORDER BY root";

const ASKING: &str = "SELECT f.root FROM requests AS r INDEXED BY open_questions_in_order
     CROSS JOIN frames AS f ON f.id = r.frame WHERE r.kind = 'ask' AND r.status = 'open'
     GROUP BY f.root ORDER BY max(r.seq) DESC LIMIT ?1";

/// A missing text matches everything. SQLite only ignores the case of ASCII letters.
const MATCHING: &str = "SELECT f.seq, f.id, f.title FROM frames AS f INDEXED BY roots
     WHERE f.parent IS NULL AND f.cwd = ?1 AND f.status = ?2
       AND (CAST(?3 AS BIGINT) IS NULL OR f.created >= ?3) AND (CAST(?4 AS TEXT) IS NULL OR f.title LIKE ?4 ESCAPE '!')
       AND (CAST(?5 AS TEXT) IS NULL OR f.title LIKE ?5 ESCAPE '!'
            OR EXISTS (SELECT 1 FROM chains AS c WHERE c.root = f.id AND c.name LIKE ?5 ESCAPE '!')
            OR EXISTS (SELECT 1 FROM frames AS m WHERE m.root = f.id AND m.title LIKE ?5 ESCAPE '!')
            OR f.id LIKE ?6 ESCAPE '!')
     ORDER BY f.seq DESC";
const TEXTS: &str =
    "SELECT title FROM frames WHERE root = ?1 UNION ALL SELECT name FROM chains WHERE root = ?1 AND name IS NOT NULL";
const ENDED: &str = "SELECT id FROM frames INDEXED BY ended_roots
     WHERE parent IS NULL AND status IN ('done', 'failed') AND since >= ?1 ORDER BY since DESC LIMIT ?2";
const COUNT_ENDED: &str = "SELECT count(*) AS chains FROM frames INDEXED BY ended_roots
     WHERE parent IS NULL AND status IN ('done', 'failed') AND since >= ?1";

// In the order of the table: with the index of parents, all roots would be read and sorted first.
const NEWEST_FIRST: &str = "SELECT id, cwd FROM frames NOT INDEXED WHERE parent IS NULL ORDER BY seq DESC";

const NAMED: &str = "SELECT f.id FROM chains AS c CROSS JOIN frames AS f ON f.id = c.root
     WHERE c.name = ?1 ORDER BY f.status IN ('ready', 'running', 'waiting') DESC, f.seq DESC LIMIT 1";

const ROOT: &str = "SELECT f.id, c.name, f.title, f.cwd, f.state, f.since, f.created, c.limits,
       (SELECT count(*) FROM frames AS asker CROSS JOIN requests AS r ON r.frame = asker.id
        WHERE asker.root = f.id AND r.kind = 'ask' AND r.status = 'open') AS questions,
       (SELECT count(*) FROM frames AS member WHERE member.root = f.id AND NOT member.is_group) AS frames,
       EXISTS (SELECT 1 FROM frames AS again INDEXED BY continued_frames WHERE again.root = f.id
         AND again.outcome IS NOT NULL AND again.status NOT IN ('done', 'failed')) AS has_continued
     FROM chains AS c CROSS JOIN frames AS f ON f.id = c.root WHERE c.root = ?1";

const CHILDREN: &str = "WITH RECURSIVE below (child, id) AS (SELECT id, id FROM frames WHERE parent = ?1 UNION
       SELECT below.child, f.id FROM below CROSS JOIN frames AS f ON f.parent = below.id)
     SELECT f.id, NULL AS name, f.title, f.cwd, f.state, f.since, f.created, c.limits,
       (SELECT count(*) FROM below CROSS JOIN frames AS member ON member.id = below.id
        WHERE below.child = f.id AND NOT member.is_group) AS frames,
       (SELECT count(*) FROM below CROSS JOIN requests AS r ON r.frame = below.id
        WHERE below.child = f.id AND r.kind = 'ask' AND r.status = 'open') AS questions,
       FALSE AS has_continued
     FROM frames AS f JOIN chains AS c ON c.root = f.root WHERE f.parent = ?1 ORDER BY f.seq DESC";

const NEW_DETACHED: &str =
    "SELECT other.root FROM chains AS own CROSS JOIN chains AS other ON other.family = own.family
     WHERE own.root = ?1 AND other.root <> ?1 AND other.detached IS NOT NULL
       AND EXISTS (SELECT 1 FROM frames AS f WHERE f.root = other.root AND f.status = 'ready')
       AND NOT EXISTS (SELECT 1 FROM frames AS f CROSS JOIN attempts AS a INDEXED BY attempts_by_frame ON a.frame = f.id
         WHERE f.root = other.root)";

pub(crate) fn chains(connection: &Connection, of: Chains<'_>) -> TxResult<ChainList> {
    match of {
        Chains::Newest { most, kinds } => newest(connection, most, kinds),
        Chains::LastIn(directories) => {
            let mut found = None;
            connection.each(NEWEST_FIRST, [], |row| {
                if directories.contains(&path(row, "cwd")?) {
                    found = Some(id(row, "id")?);
                    return Ok(ControlFlow::Break(()));
                }
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(ChainList { chains: summaries(connection, found)?, more: 0 })
        }
        Chains::Named(name) => {
            let found = connection.read_first(NAMED, [name.as_str()], |row| id(row, "id"))?;
            Ok(ChainList { chains: summaries(connection, found)?, more: 0 })
        }
        Chains::With { status, most } => {
            let found: Vec<FrameId> = connection.read_all(WITH, [status.name()], |row| id(row, "root"))?;
            let (few, others) = found.split_at(found.len().min(most));
            Ok(ChainList { chains: summaries(connection, few.iter().copied())?, more: others.len() as u64 })
        }
        Chains::Continued => {
            let found: Vec<FrameId> = connection.read_all(CONTINUED, [], |row| id(row, "root"))?;
            Ok(ChainList { chains: summaries(connection, found)?, more: 0 })
        }
        Chains::NewDetached(root) => {
            let found: Vec<FrameId> = connection.read_all(NEW_DETACHED, [Id(root)], |row| id(row, "root"))?;
            Ok(ChainList { chains: summaries(connection, found)?, more: 0 })
        }
        Chains::Of(roots) => Ok(ChainList { chains: summaries(connection, roots.iter().copied())?, more: 0 }),
        Chains::Asking { most } => {
            let found: Vec<FrameId> = connection.read_all(ASKING, [signed(most as u64)], |row| id(row, "root"))?;
            Ok(ChainList { chains: summaries(connection, found)?, more: 0 })
        }
        Chains::EndedSince { since, most } => {
            let found: Vec<FrameId> =
                connection.read_all(ENDED, (At(since), signed(most as u64)), |row| id(row, "id"))?;
            let all = connection.read_first(COUNT_ENDED, [At(since)], |row| count(row, "chains"))?.unwrap_or(0);
            Ok(ChainList { more: all.saturating_sub(found.len() as u64), chains: summaries(connection, found)? })
        }
        Chains::StartedBy(frame) => {
            let chains = connection.read_all(CHILDREN, [Id(frame)], summary)?;
            Ok(ChainList { chains, more: 0 })
        }
    }
}

pub(crate) fn chain_kinds(connection: &Connection) -> TxResult<Vec<ChainKind>> {
    connection.read_all(KINDS, [], |row| {
        Ok(ChainKind { cwd: path(row, "cwd")?, status: status(row)?, count: count(row, "chains")? })
    })
}

/// An index yields the number of chains of each kind, and the newest ones. Only those few are read.
fn newest(connection: &Connection, most: usize, wanted: Option<&[ChainKind]>) -> TxResult<ChainList> {
    let kinds = present(connection, wanted)?;
    let chains = summaries(connection, newest_ids(connection, most, &kinds)?)?;
    let count: u64 = kinds.iter().map(|kind| kind.count).sum();
    Ok(ChainList { more: count.saturating_sub(chains.len() as u64), chains })
}

fn newest_ids(connection: &Connection, most: usize, kinds: &[ChainKind]) -> TxResult<Vec<FrameId>> {
    let mut found: Vec<(i64, FrameId)> = Vec::new();
    for kind in kinds {
        let of_kind = (path_text(&kind.cwd)?, kind.status.name(), signed(most as u64));
        found.extend(connection.read_all(NEWEST, of_kind, |row| Ok((row.get("seq")?, id(row, "id")?)))?);
    }
    Ok(in_order(found).take(most).collect())
}

fn in_order(mut found: Vec<(i64, FrameId)>) -> impl Iterator<Item = FrameId> {
    found.sort_unstable_by_key(|(seq, _)| std::cmp::Reverse(*seq));
    found.into_iter().map(|(_, id)| id)
}

/// The kinds of these that chains are of now.
fn present(connection: &Connection, wanted: Option<&[ChainKind]>) -> TxResult<Vec<ChainKind>> {
    let mut kinds = chain_kinds(connection)?;
    if let Some(wanted) = wanted {
        let wanted: HashSet<_> = wanted.iter().map(|kind| (&kind.cwd, kind.status)).collect();
        kinds.retain(|kind| wanted.contains(&(&kind.cwd, kind.status)));
    }
    Ok(kinds)
}

/// The chains of these kinds that match, the newest first.
pub(crate) fn matching(connection: &Connection, kinds: &[ChainKind], filter: &ChainFilter) -> TxResult<Vec<FrameId>> {
    let mut found = match (ChainFilter { asks: false, ..filter.clone() }) == ChainFilter::default() {
        true => newest_ids(connection, usize::MAX, &present(connection, Some(kinds))?)?,
        false => with_words(connection, kinds, filter)?,
    };
    if filter.asks {
        let asking: HashSet<FrameId> =
            connection.read_all(ASKING, [i64::MAX], |row| id(row, "root"))?.into_iter().collect();
        found.retain(|root| asking.contains(root));
    }
    Ok(found)
}

fn with_words(connection: &Connection, kinds: &[ChainKind], filter: &ChainFilter) -> TxResult<Vec<FrameId>> {
    let ChainFilter { text, task, since, search_in, .. } = filter;
    let mut found: Vec<(i64, FrameId)> = Vec::new();
    for kind in present(connection, Some(kinds))? {
        let is_place =
            |text: &String| *search_in == SearchIn::WordsAndPlace && contains(&kind.cwd.to_string_lossy(), text);
        let text = text.as_ref().filter(|text| !is_place(text));
        let in_id = text.filter(|_| *search_in == SearchIn::WordsAndPlace);
        let patterns = (task.as_deref().map(pattern), text.map(|text| pattern(text)), in_id.map(|text| pattern(text)));
        let values = (path_text(&kind.cwd)?, kind.status.name(), since.map(At), patterns.0, patterns.1, patterns.2);
        let mut matching =
            connection.read_all(MATCHING, values, |row| Ok((row.get("seq")?, id(row, "id")?, title(row)?)))?;
        if let Some(task) = task.as_ref().filter(|task| !task.is_ascii()) {
            matching.retain(|(.., title)| contains(title, task));
        }
        for (seq, root, _) in matching {
            let is_found = match text.filter(|text| !text.is_ascii()) {
                Some(text) => connection.read_all(TEXTS, [Id(root)], title)?.iter().any(|has| contains(has, text)),
                None => true,
            };
            found.extend(is_found.then_some((seq, root)));
        }
    }
    Ok(in_order(found).collect())
}

/// Whether this text is in the other one, whatever the case of its letters.
fn contains(has: &str, text: &str) -> bool {
    has.to_lowercase().contains(&text.to_lowercase())
}

/// A pattern of `LIKE` for values that contain this text. Databases disagree about the case of letters that are not ASCII, so
/// the pattern accepts any character in their place.
fn pattern(text: &str) -> String {
    let of_each = |c: char| match c {
        '!' | '%' | '_' => format!("!{c}"),
        c if c.is_ascii() => c.to_string(),
        _ => "_".to_owned(),
    };
    format!("%{}%", text.chars().map(of_each).collect::<String>())
}

fn title(row: &Row<'_>) -> rusqlite::Result<String> {
    row.get("title")
}

fn summaries(connection: &Connection, roots: impl IntoIterator<Item = FrameId>) -> TxResult<Vec<Summary>> {
    let (mut found, roots) = (Vec::new(), roots.into_iter().collect::<Vec<_>>());
    for root in &roots {
        connection.send_ahead(ROOT, [Id(*root)])?;
    }
    for root in roots {
        found.extend(connection.read_first(ROOT, [Id(root)], summary)?);
    }
    Ok(found)
}

fn status(row: &Row<'_>) -> rusqlite::Result<AgentStatus> {
    let name: String = row.get("status")?;
    AgentStatus::named(&name).ok_or_else(|| meaningless(&name))
}

fn summary(row: &Row<'_>) -> rusqlite::Result<Summary> {
    Ok(Summary {
        id: id(row, "id")?,
        name: row.get("name")?,
        title: row.get("title")?,
        cwd: path(row, "cwd")?,
        state: from_json(row, "state")?,
        since: time(row, "since")?,
        created: time(row, "created")?,
        frames: count(row, "frames")?,
        open_questions: count(row, "questions")?,
        has_continued: row.get("has_continued")?,
        limits: from_json(row, "limits")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::attempt::ending::Ending;
    use crate::store::testing::{ask, in_file, new, reply, store};
    use crate::store::{ChainChange, NewFrame};
    use jiff::Timestamp;
    use std::path::PathBuf;

    fn ids(found: &ChainList) -> Vec<FrameId> {
        found.chains.iter().map(|chain| chain.id).collect()
    }

    fn plan(connection: &rusqlite::Connection, sql: &str) -> Vec<String> {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let parameters = rusqlite::params_from_iter(vec!["x"; statement.parameter_count()]);
        statement.query_map(parameters, |row| row.get("detail")).unwrap().map(|step| step.unwrap()).collect()
    }

    #[test]
    fn no_chain_is_read_to_be_counted() {
        let (_temp, store) = in_file();
        for sql in [KINDS, NEWEST, WITH, ENDED, COUNT_ENDED] {
            let plan = plan(store.sqlite(), sql);
            assert!(plan[0].contains(" USING ") && plan[0].contains("INDEX "), "{plan:#?}");
            let is_sorted = plan.iter().any(|step| step.contains("TEMP B-TREE"));
            assert_eq!(is_sorted, sql == WITH, "few chains are unusual: {plan:#?}");
        }
    }

    #[test]
    fn chains_are_counted_by_directory_and_state_and_the_newest_found() {
        let (_temp, store) = store();
        let (first, second, third) = (store.root(), store.root(), store.root());
        store.end(store.start(second), &reply("done"));
        let kinds = store.chain_kinds().unwrap();
        let counted: Vec<_> = kinds.iter().map(|kind| (kind.status.name(), kind.count)).collect();
        assert_eq!(counted, [("done", 1), ("ready", 2)]);
        let newest = |most, kinds: Option<&[ChainKind]>| {
            let found = store.chains(Chains::Newest { most, kinds }).unwrap();
            (ids(&found), found.more)
        };
        assert_eq!(newest(2, None), (vec![third, second], 1));
        assert_eq!(newest(9, Some(&kinds[1..])), (vec![third, first], 0));
        assert_eq!(newest(usize::MAX, None).0.len(), 3);
        assert_eq!(newest(9, Some(&[])), (vec![], 0));
        // The states have changed since the kinds were read.
        store.start(third);
        assert_eq!(newest(9, Some(&kinds[1..])).0, [first]);
        let kinds = ChainKind::with_other_states(&kinds[1..], |status| status != AgentStatus::Done);
        assert_eq!(newest(9, Some(&kinds)), (vec![third, first], 0));
    }

    #[test]
    fn a_chain_is_found_by_its_words_and_the_words_of_its_agents() {
        let (_temp, store) = store();
        let made = |title: &str| store.create_root(&NewFrame { task: new(title).task, ..new(title) }).unwrap();
        let (first, second) = (made("100% of a_b"), made("Deploy the docs"));
        let caller = store.start(first);
        store.request_child(caller, None, &new("write Docs"), "child").unwrap();
        let kinds = store.chain_kinds().unwrap();
        let found = |text: Option<&str>, task: Option<&str>, since| {
            let [text, task] = [text, task].map(|text| text.map(str::to_owned));
            store.matching_chains(&kinds, &ChainFilter { text, task, since, ..Default::default() }).unwrap()
        };
        assert_eq!(found(Some("docs"), None, None), [second, first]);
        assert_eq!(found(None, Some("docs"), None), [second]);
        assert_eq!(found(Some("0% of A_"), None, None), [first]);
        assert_eq!(found(Some("a%b"), None, None), []);
        let other = made("Über Ärger");
        for text in ["über", "ÄRGER"] {
            assert_eq!((found(Some(text), None, None), found(None, Some(text), None)), (vec![other], vec![other]));
            assert_eq!(found(Some(&text.replace(['r', 'R'], "x")), None, None), []);
        }
        assert_eq!((found(Some("äber"), None, None), found(None, Some("äber"), None)), (vec![], vec![]));
        assert_eq!(found(Some(&first.to_string()), None, None), []);
        let places = |text: &str| {
            let filter =
                ChainFilter { text: Some(text.into()), search_in: SearchIn::WordsAndPlace, ..Default::default() };
            store.matching_chains(&kinds, &filter).unwrap()
        };
        assert_eq!(places(&first.to_string()[..13].to_uppercase()), [first]);
        assert_eq!(places(&kinds[0].cwd.display().to_string().to_uppercase()), [other, second, first]);
        let name = Some(Some("Ümlaut".parse().unwrap()));
        store.change_chain(first, ChainChange { name, ..Default::default() }).unwrap();
        assert_eq!(found(Some("üM"), None, None), [first]);
        assert_eq!(found(None, None, Some(Timestamp::MIN)).len(), 3);
        assert_eq!(found(None, None, Some(Timestamp::now() + jiff::SignedDuration::from_hours(1))), []);
        let asks = |most| ids(&store.chains(Chains::Asking { most }).unwrap());
        assert_eq!(asks(9), []);
        store.request(caller, None, &[ask("a?")]).unwrap();
        assert_eq!((asks(9), asks(0)), (vec![first], vec![]));
        assert_eq!(ids(&store.chains(Chains::Of(&[second])).unwrap()), [second]);
    }

    #[test]
    fn the_newest_chain_is_that_of_the_directory() {
        let (_temp, store) = in_file();
        let at = |cwd: &str| store.create_root(&NewFrame { cwd: cwd.into(), ..new("task") }).unwrap();
        let (_, newer, last) = (at("/a"), at("/a"), at("/b"));
        let last_in = |directories: &[&str]| {
            let directories: Vec<_> = directories.iter().map(PathBuf::from).collect();
            ids(&store.chains(Chains::LastIn(&directories)).unwrap())
        };
        assert_eq!((last_in(&["/a"]), last_in(&["/c", "/b", "/a"])), (vec![newer], vec![last]));
        assert_eq!((last_in(&["/c"]), last_in(&[])), (vec![], vec![]));
        let plan = plan(store.sqlite(), NEWEST_FIRST);
        assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:#?}");
    }

    #[test]
    fn a_list_shows_the_newest_root_first() {
        let (_temp, store) = store();
        let (first, _) = store.asking("When?");
        let caller = store.start(store.root());
        let (_, child) = store.request_child(caller, None, &new("child"), "child").unwrap();
        store.end(caller, &Ending::Suspended);
        let below = store.start(child);
        store.request(below, None, &[ask("a?")]).unwrap();
        store.request(below, None, &[ask("b?")]).unwrap();
        let roots = store.roots();
        let shown: Vec<_> = roots.iter().map(|root| (root.id, root.frames, root.open_questions)).collect();
        assert_eq!(shown, [(caller.frame, 2, 2), (first, 1, 1)]);
        assert_eq!((roots[0].title.as_str(), roots[0].state.name()), ("a task", "waiting"));
    }

    #[test]
    fn what_a_person_has_interrupted_is_theirs_to_continue() {
        let (_temp, store) = store();
        let with = |status, most| {
            let found = store.chains(Chains::With { status, most }).unwrap();
            (ids(&found), found.more)
        };
        assert_eq!(with(AgentStatus::Cancelled, 9), (vec![], 0));
        let roots = [(); 2].map(|()| {
            let caller = store.start(store.root());
            store.end(caller, &Ending::Stopped { worked: true });
            caller.frame
        });
        assert_eq!(with(AgentStatus::Cancelled, 9), (vec![roots[1], roots[0]], 0));
        assert_eq!(with(AgentStatus::Cancelled, 1), (vec![roots[1]], 1));
        assert_eq!(store.candidates(Timestamp::now()).unwrap(), []);
        let running = store.start(store.root());
        assert_eq!(with(AgentStatus::Running, 9), (vec![running.frame], 0));
    }
}
