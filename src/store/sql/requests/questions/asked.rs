//! Reads questions. Many of them can be open, so no more are read than a person sees.

use std::ops::ControlFlow;
use std::path::PathBuf;

use uuid::Uuid;

use crate::core::id::{FrameId, RequestId};
use crate::core::requests::request::RequestKind;
use crate::core::requests::request_state::RequestState;
use crate::store::records::{Asked, FirstQuestions, Question, Questions, Together};
use crate::store::sql::database::codec::{Id, from_json, id, maybe_json, maybe_time, path, time};
use crate::store::sql::engine::{Connection, Row, TxResult};
use crate::store::sql::tables::below::below;

impl<T: Into<Asked>> From<T> for Questions {
    fn from(asked: T) -> Self {
        Self::All(asked.into())
    }
}

// Most calls ask one question, and then others are not looked for.
macro_rules! questions {
    ($($condition:tt)+) => {
        concat!(
            "SELECT r.id, r.frame, f.root, f.title, r.detail, r.state, r.made, a.answered, a.answer, a.origin,
             CASE WHEN r.batch IS NOT NULL OR r.is_native THEN
                 (SELECT '{\"of\":' || count(*) || ',\"number\":' || count(*) FILTER (WHERE other.seq <= r.seq) || '}'
                  FROM requests AS other WHERE other.attempt = r.attempt AND other.status <> 'withdrawn'
                  AND (other.batch = r.batch OR other.call = r.call AND other.is_native AND r.is_native))
             END AS together
             FROM requests AS r
             JOIN frames AS f ON f.id = r.frame LEFT JOIN answers AS a ON a.question = r.id
             WHERE r.kind = 'ask' AND r.status <> 'withdrawn' AND ",
            $($condition)+,
            " ORDER BY r.seq"
        )
    };
}

const ONE: &str = questions!("r.id = ?1");
const ALL_BELOW: &str = questions!("r.frame IN (", below!("SELECT id FROM below"), ")");
const OPEN_BELOW: &str = questions!("r.status = 'open' AND r.frame IN (", below!("SELECT id FROM below"), ")");

// Uses a partial index and repeats its condition word for word.
macro_rules! ids_of_unfiled {
    () => {
        "SELECT id FROM requests INDEXED BY unfiled_questions
         WHERE filed = 0 AND status IN ('resolved', 'expired', 'delivering', 'delivered') AND is_posted"
    };
}

macro_rules! unfiled {
    ($($more:tt)+) => {
        questions!("f.status <> 'running' AND r.id IN (", ids_of_unfiled!(), ")", $($more)+)
    };
}

const UNFILED: &str = unfiled!("");
const UNFILED_BELOW: &str = unfiled!(" AND +r.frame IN (", below!("SELECT id FROM below"), ")");

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

pub(crate) fn questions(connection: &Connection, which: Questions, only_open: bool) -> TxResult<Vec<Question>> {
    match which {
        Questions::All(asked) => all(connection, asked, only_open),
        Questions::Unfiled(top) => unfiled(connection, top),
    }
}

fn all(connection: &Connection, asked: Asked, only_open: bool) -> TxResult<Vec<Question>> {
    let (sql, id) = match (asked, only_open) {
        (Asked::Anywhere, true) => (questions!("r.status = 'open'"), None),
        (Asked::Anywhere, false) => (questions!("true"), None),
        (Asked::Below(top), true) => (OPEN_BELOW, Some(top.0)),
        (Asked::Below(top), false) => (ALL_BELOW, Some(top.0)),
        (Asked::One(question), true) => (questions!("r.id = ?1 AND r.status = 'open'"), Some(question.0)),
        (Asked::One(question), false) => (ONE, Some(question.0)),
    };
    found(connection, sql, id)
}

/// Every poll asks for these questions, and usually finds nothing. A statement that only checks this takes a fraction of
/// the time to prepare.
fn unfiled(connection: &Connection, top: Option<FrameId>) -> TxResult<Vec<Question>> {
    if !connection.finds(ids_of_unfiled!(), [])? {
        return Ok(Vec::new());
    }
    match top {
        None => found(connection, UNFILED, None),
        Some(top) => found(connection, UNFILED_BELOW, Some(top.0)),
    }
}

fn found(connection: &Connection, sql: &str, id: Option<Uuid>) -> TxResult<Vec<Question>> {
    connection.read_all(sql, id.map(Id).into_iter().collect::<Vec<_>>(), from_row)
}

pub(crate) fn first_questions(
    connection: &Connection,
    most: usize,
    within: Option<&[PathBuf]>,
    only_open: bool,
) -> TxResult<FirstQuestions> {
    let mut first = FirstQuestions::default();
    let mut found = Vec::new();
    connection.each(if only_open { OPEN_IN_ORDER } else { ALL_IN_ORDER }, [], |row| {
        let cwd = path(row, "cwd")?;
        if within.is_some_and(|within| !within.contains(&cwd)) {
            first.elsewhere += 1;
        } else if found.len() < most {
            found.push(id(row, "id")?);
        } else {
            first.more += 1;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    for id in &found {
        connection.send_ahead(ONE, [Id(*id)])?;
    }
    for id in found {
        first.questions.extend(load(connection, id)?);
    }
    Ok(first)
}

pub(crate) fn load(connection: &Connection, id: RequestId) -> TxResult<Option<Question>> {
    connection.read_first(ONE, [Id(id)], from_row)
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Question> {
    let kind: RequestKind = from_json(row, "detail")?;
    let question = match &kind {
        RequestKind::Ask(form) => form.question.clone(),
        other => other.command(),
    };
    let together: Option<Together> = maybe_json(row, "together")?;
    let is_expired = from_json::<RequestState>(row, "state")?.is_expired();
    let over = maybe_time(row, "answered")?;
    Ok(Question {
        id: id(row, "id")?,
        frame: id(row, "frame")?,
        root: id(row, "root")?,
        title: row.get("title")?,
        question,
        kind,
        together: together.filter(|together| together.of > 1),
        asked: time(row, "made")?,
        answered: over.filter(|_| !is_expired),
        answer: if is_expired { None } else { row.get("answer")? },
        expired: over.filter(|_| is_expired),
        origin: maybe_json(row, "origin")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::requests::question_form::{Batch, Form};
    use crate::store::testing::{in_file, store};

    #[test]
    fn questions_of_one_call_are_numbered() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let batch = || Batch { id: RequestId(Uuid::from_u128(7)), name: None };
        let batched = || RequestKind::Ask(Form { batch: Some(batch()), ..Form::text("When?") });
        let native = || RequestKind::Ask(Form { native: true, ..Form::text("Where?") });
        store.request(caller, Some("toolu_1"), &[batched(), batched(), batched()]).unwrap();
        store.request(caller, Some("toolu_2"), &[native(), native()]).unwrap();
        store.request(caller, Some("toolu_3"), &[native()]).unwrap();
        store.request(caller, Some("toolu_4"), &[RequestKind::Ask(Form::text("Why?"))]).unwrap();
        let places = |only_open| -> Vec<_> {
            let asked = store.questions(None, only_open).unwrap();
            asked.iter().map(|question| question.together.map(|together| (together.number, together.of))).collect()
        };
        let all = [Some((1, 3)), Some((2, 3)), Some((3, 3)), Some((1, 2)), Some((2, 2)), None, None];
        assert_eq!(places(true), all);
        let first = store.questions(None, true).unwrap()[0].id;
        store.answer(first, "now").unwrap();
        assert_eq!(places(true), all[1..], "they keep their numbers");
    }

    #[test]
    fn the_first_questions_of_a_project_are_read_and_no_others() {
        let (_temp, store) = in_file();
        let asked = ["a?", "b?", "c?"].map(|text| store.asking(text).1);
        let first = |most, within: Option<&[PathBuf]>, only_open| {
            let found = store.first_questions(most, within, only_open).unwrap();
            let ids: Vec<_> = found.questions.iter().map(|question| question.id).collect();
            (ids, found.more, found.elsewhere)
        };
        assert_eq!(first(2, None, true), (asked[..2].to_vec(), 1, 0));
        assert_eq!(first(3, Some(&["/srv".into()]), true), (asked.to_vec(), 0, 0));
        assert_eq!(first(3, Some(&["/".into()]), true), (vec![], 0, 3));
        store.answer(asked[0], "x").unwrap();
        assert_eq!(first(3, None, true), (asked[1..].to_vec(), 0, 0));
        assert_eq!(first(9, None, false), (asked.to_vec(), 0, 0));
        for sql in [OPEN_IN_ORDER, ALL_IN_ORDER] {
            let mut statement = store.sqlite().prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let plan = statement.query_map([], |row| row.get::<_, String>("detail")).unwrap();
            let plan: Vec<_> = plan.map(|step| step.unwrap()).collect();
            assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:#?}");
        }
    }
}
