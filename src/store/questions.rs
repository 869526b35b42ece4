//! Questions for people, and the one answer that each of them gets.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row};
use serde_json::json;

use super::codec::{self, Id, from_json, id, maybe_time, time};
use super::error::Fault;
use super::{Result, Store, StoreError, events, requests};
use crate::core::id::{FrameId, RequestId};
use crate::core::request::Wish;

/// A question that an agent asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Its id, with which it is answered.
    pub id: RequestId,
    /// The frame whose agent asked.
    pub frame: FrameId,
    /// The root of that frame's tree.
    pub root: FrameId,
    /// What the frame's task is, in a few words.
    pub title: String,
    /// The question.
    pub question: String,
    /// What was asked for, with what it offers.
    pub wish: Wish,
    /// When it was asked.
    pub asked: Timestamp,
    /// When it was answered.
    pub answered: Option<Timestamp>,
    /// The answer.
    pub answer: Option<String>,
}

macro_rules! questions {
    ($condition:literal) => {
        concat!(
            "SELECT r.id, r.frame, f.root, f.title, r.wish, r.made, a.answered, a.answer FROM requests AS r
             JOIN frames AS f ON f.id = r.frame LEFT JOIN answers AS a ON a.question = r.id
             WHERE r.kind = 'ask' AND r.withdrawn IS NULL AND ",
            $condition,
            " ORDER BY r.seq"
        )
    };
}

impl Store {
    /// The questions that were not withdrawn, in the order in which they were asked.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn questions(&self, only_open: bool) -> Result<Vec<Question>> {
        let sql = if only_open { questions!("r.settled IS NULL") } else { questions!("true") };
        self.query(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            Ok(statement.query_map([], from_row)?.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// One question, if there is such a one and it was not withdrawn.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn question(&self, id: RequestId) -> Result<Option<Question>> {
        self.query(|connection| load(connection, id))
    }

    /// Answers a question. The first answer counts.
    ///
    /// # Errors
    ///
    /// [`StoreError::AlreadyAnswered`], [`StoreError::QuestionWithdrawn`], [`StoreError::NotAQuestion`],
    /// [`StoreError::UnknownRequest`], or a database that cannot be written.
    pub fn answer(&self, id: RequestId, text: &str) -> Result<Question> {
        self.write(|connection| {
            let question = load(connection, id)?.ok_or_else(|| why_not(connection, id))?;
            if let (Some(answered), Some(answer)) = (question.answered, question.answer) {
                return Err(StoreError::AlreadyAnswered { question: id, answered, answer }.into());
            }
            let now = codec::now();
            connection
                .prepare_cached("INSERT INTO answers (question, answered, answer) VALUES (?1, ?2, ?3)")?
                .execute((Id(id), now, text))?;
            requests::settle(connection, now, id)?;
            events::append(connection, now, question.frame, "answered", &json!({"request": id, "answer": text}))?;
            Ok(Question { answered: Some(now.0), answer: Some(text.to_owned()), ..question })
        })
    }
}

fn load(connection: &Connection, id: RequestId) -> std::result::Result<Option<Question>, Fault> {
    let mut statement = connection.prepare_cached(questions!("r.id = ?1"))?;
    Ok(statement.query_row([Id(id)], from_row).optional()?)
}

fn why_not(connection: &Connection, id: RequestId) -> Fault {
    let kind = connection
        .query_row("SELECT kind FROM requests WHERE id = ?1", [Id(id)], |row| row.get::<_, String>(0))
        .optional();
    match kind {
        Ok(None) => StoreError::UnknownRequest(id).into(),
        Ok(Some(kind)) if kind == "ask" => StoreError::QuestionWithdrawn(id).into(),
        Ok(Some(_)) => StoreError::NotAQuestion(id).into(),
        Err(error) => error.into(),
    }
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Question> {
    let wish: Wish = from_json(row, "wish")?;
    let question = match &wish {
        Wish::Ask { question, .. } => question.clone(),
        other => other.command(),
    };
    Ok(Question {
        id: id(row, "id")?,
        frame: id(row, "frame")?,
        root: id(row, "root")?,
        title: row.get("title")?,
        question,
        wish,
        asked: time(row, "made")?,
        answered: maybe_time(row, "answered")?,
        answer: row.get("answer")?,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use crate::core::id::SessionId;
    use crate::core::outcome::Outcome;
    use crate::store::testing::{ask, reply, store};

    #[test]
    fn a_question_gets_one_answer() {
        let (_temp, store) = store();
        let (frame, id) = store.asking("When?");
        let open = store.questions(true).unwrap();
        assert_eq!(open.len(), 1);
        assert_eq!((open[0].id, open[0].frame, open[0].root), (id, frame, frame));
        assert_eq!((open[0].question.as_str(), open[0].title.as_str()), ("When?", "a task"));
        let answered = store.answer(id, "Jan 1st\n").unwrap();
        assert_eq!(store.question(id).unwrap(), Some(answered));
        let error = store.answer(id, "Jan 2nd").unwrap_err();
        assert!(matches!(&error, StoreError::AlreadyAnswered { answer, .. } if answer == "Jan 1st\n"), "{error}");
        assert!(store.questions(true).unwrap().is_empty());
        assert_eq!(store.questions(false).unwrap().len(), 1);
    }

    #[test]
    fn of_many_answers_one_wins() {
        let (_temp, store) = store();
        let (_, id) = store.asking("When?");
        let barrier = Barrier::new(8);
        let won = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|n| {
                    let (barrier, dir) = (&barrier, store.dir().path());
                    scope.spawn(move || {
                        let store = Store::open(dir).unwrap();
                        barrier.wait();
                        match store.answer(id, &n.to_string()) {
                            Ok(_) => true,
                            Err(StoreError::AlreadyAnswered { .. }) => false,
                            Err(error) => panic!("{error}"),
                        }
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).filter(|won| *won).count()
        });
        assert_eq!(won, 1);
        assert_eq!(store.events(store.question(id).unwrap().unwrap().frame).unwrap().last().unwrap().kind, "answered");
    }

    #[test]
    fn only_questions_are_answered() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let (spawn, child) = store.request_child(caller, None, &crate::store::testing::new("child"), "child").unwrap();
        assert!(matches!(store.answer(spawn, "x"), Err(StoreError::NotAQuestion(id)) if id == spawn));
        let unknown = RequestId::random();
        assert!(matches!(store.answer(unknown, "x"), Err(StoreError::UnknownRequest(id)) if id == unknown));
        store.end(caller, &Outcome::Requested);
        let below = store.start(child);
        let question = store.request(below, None, &ask("When?")).unwrap();
        store.end(below, &Outcome::Refused("no".into()));
        assert!(matches!(store.answer(question, "x"), Err(StoreError::QuestionWithdrawn(id)) if id == question));
        assert!(store.questions(false).unwrap().is_empty());
    }

    #[test]
    fn a_forgotten_process_cannot_ask() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        store.end(caller, &reply("done"));
        let other = store.start(store.root());
        let strangers = [
            caller,
            crate::store::Caller { frame: other.frame, attempt: SessionId::random() },
            crate::store::Caller { frame: other.frame, attempt: caller.attempt },
        ];
        for caller in strangers {
            let error = store.request(caller, None, &ask("When?")).unwrap_err();
            assert!(matches!(error, StoreError::StaleCaller { .. }), "{error}");
        }
    }
}
