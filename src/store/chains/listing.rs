//! Which chains and questions there are, found without reading all of them.

use std::path::{Path, PathBuf};

use crate::core::id::FrameId;
use crate::store::database::codec::{count, id, path, path_text, signed};
use crate::store::database::store::Store;
use crate::store::error::Result;
use crate::store::requests::questions::{self, Question};

/// The chains whose roots work in one directory and are in the same state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Alike {
    pub(crate) cwd: PathBuf,
    /// The name of the root's state.
    pub(crate) status: String,
    pub(crate) count: u64,
}

// All of them are answered by an index alone, although the plans do not say so: a generated column is read from the index, too.
// Each repeats the condition of its partial index.
const ALIKE: &str = "SELECT cwd, status, count(*) AS chains FROM frames INDEXED BY roots WHERE parent IS NULL
     GROUP BY cwd, status";
const NEWEST: &str = "SELECT seq, id FROM frames INDEXED BY roots
     WHERE parent IS NULL AND cwd = ?1 AND status = ?2 ORDER BY seq DESC LIMIT ?3";
const WITH: &str = "SELECT root FROM frames INDEXED BY unusual_frames
     WHERE status IN ('running', 'paused', 'cancelled') AND status = ?1 GROUP BY root ORDER BY max(seq) DESC";

/// The first of many questions.
#[derive(Debug, Default)]
pub(crate) struct FirstQuestions {
    pub(crate) questions: Vec<Question>,
    /// How many of other chains were passed over.
    pub(crate) elsewhere: u64,
    /// Whether there are more.
    pub(crate) has_more: bool,
}

macro_rules! in_order {
    ($from:literal, $condition:literal) => {
        concat!(
            "SELECT r.id, root.cwd FROM requests AS r ",
            $from,
            " CROSS JOIN frames AS f ON f.id = r.frame CROSS JOIN frames AS root ON root.id = f.root
             WHERE r.kind = 'ask' AND ",
            $condition,
            " ORDER BY r.seq"
        )
    };
}

const OPEN_IN_ORDER: &str = in_order!("INDEXED BY open_questions_in_order", "r.status = 'open'");
const ALL_IN_ORDER: &str = in_order!("NOT INDEXED", "r.status <> 'withdrawn'");

impl Store {
    /// How many chains there are of each kind.
    pub(crate) fn chains_alike(&self) -> Result<Vec<Alike>> {
        self.query(|connection| {
            let mut statement = connection.prepare_cached(ALIKE)?;
            let found = statement.query_map([], |row| {
                Ok(Alike { cwd: path(row, "cwd")?, status: row.get("status")?, count: count(row, "chains")? })
            })?;
            Ok(found.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// The newest of these chains, at most so many.
    pub(crate) fn newest_of(&self, kinds: &[&Alike], most: u64) -> Result<Vec<FrameId>> {
        self.query(|connection| {
            let mut statement = connection.prepare_cached(NEWEST)?;
            let mut found: Vec<(i64, FrameId)> = Vec::new();
            for kind in kinds {
                let of_kind = statement.query_map((path_text(&kind.cwd)?, &kind.status, signed(most)), |row| {
                    Ok((row.get("seq")?, id(row, "id")?))
                })?;
                for row in of_kind {
                    found.push(row?);
                }
            }
            found.sort_unstable_by_key(|(seq, _)| std::cmp::Reverse(*seq));
            found.truncate(usize::try_from(most).unwrap_or(usize::MAX));
            Ok(found.into_iter().map(|(_, id)| id).collect())
        })
    }

    /// The chains with an agent in this state: `running`, `paused`, or `cancelled` by a person who has not continued it. The
    /// newest first.
    pub(crate) fn chains_with(&self, status: &str) -> Result<Vec<FrameId>> {
        self.query(|connection| {
            let mut statement = connection.prepare_cached(WITH)?;
            Ok(statement.query_map([status], |row| id(row, "root"))?.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// At most `most` questions of the chains whose roots work where `is_meant` says, in the order in which they were asked. No
    /// more are read than that takes.
    pub(crate) fn first_questions(
        &self,
        only_open: bool,
        most: usize,
        is_meant: &mut dyn FnMut(&Path) -> bool,
    ) -> Result<FirstQuestions> {
        self.query(|connection| {
            let mut found = FirstQuestions::default();
            let mut statement = connection.prepare_cached(if only_open { OPEN_IN_ORDER } else { ALL_IN_ORDER })?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                if !is_meant(&path(row, "cwd")?) {
                    found.elsewhere += 1;
                } else if found.questions.len() == most {
                    found.has_more = true;
                    return Ok(found);
                } else {
                    found.questions.extend(questions::load(connection, id(row, "id")?)?);
                }
            }
            Ok(found)
        })
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;
    use crate::core::attempt::ending::Ending;
    use crate::store::testing::{reply, store};

    fn plan(connection: &Connection, sql: &str) -> Vec<String> {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let parameters = rusqlite::params_from_iter(vec!["x"; statement.parameter_count()]);
        statement.query_map(parameters, |row| row.get("detail")).unwrap().map(|step| step.unwrap()).collect()
    }

    #[test]
    fn no_chain_is_read_to_be_counted() {
        let (_temp, store) = store();
        for sql in [ALIKE, NEWEST, WITH] {
            let plan = plan(&store.connection, sql);
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
        let alike = store.chains_alike().unwrap();
        let counted: Vec<_> = alike.iter().map(|kind| (kind.status.as_str(), kind.count)).collect();
        assert_eq!(counted, [("done", 1), ("ready", 2)]);
        let kinds: Vec<_> = alike.iter().collect();
        assert_eq!(store.newest_of(&kinds, 2).unwrap(), [third, second]);
        assert_eq!(store.newest_of(&kinds[1..], 9).unwrap(), [third, first]);
        assert_eq!(store.newest_of(&kinds, u64::MAX).unwrap().len(), 3);
    }

    #[test]
    fn what_a_person_has_interrupted_is_theirs_to_continue() {
        let (_temp, store) = store();
        assert_eq!(store.chains_with("cancelled").unwrap(), []);
        let roots = [(); 2].map(|()| {
            let caller = store.start(store.root());
            store.end(caller, &Ending::Stopped { worked: true });
            caller.frame
        });
        assert_eq!(store.chains_with("cancelled").unwrap(), [roots[1], roots[0]]);
        assert_eq!(store.candidates(jiff::Timestamp::now()).unwrap(), []);
        let running = store.start(store.root());
        assert_eq!(store.chains_with("running").unwrap(), [running.frame]);
    }

    #[test]
    fn the_first_questions_of_a_project_are_read_and_no_others() {
        let (_temp, store) = store();
        let asked = ["a?", "b?", "c?"].map(|text| store.asking(text).1);
        let first = |most, is_meant: &mut dyn FnMut(&Path) -> bool| {
            let found = store.first_questions(true, most, is_meant).unwrap();
            let ids: Vec<_> = found.questions.iter().map(|question| question.id).collect();
            (ids, found.elsewhere, found.has_more)
        };
        assert_eq!(first(2, &mut |_| true), (asked[..2].to_vec(), 0, true));
        assert_eq!(first(3, &mut |_| true), (asked.to_vec(), 0, false));
        assert_eq!(first(3, &mut |_| false), (vec![], 3, false));
        store.answer(asked[0], "x").unwrap();
        assert_eq!(first(3, &mut |_| true).0, asked[1..]);
        assert_eq!(store.first_questions(false, 9, &mut |_| true).unwrap().questions.len(), 3);
        for sql in [OPEN_IN_ORDER, ALL_IN_ORDER] {
            let mut statement = store.connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let plan = statement.query_map([], |row| row.get::<_, String>("detail")).unwrap();
            let plan: Vec<_> = plan.map(|step| step.unwrap()).collect();
            assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:#?}");
        }
    }
}
