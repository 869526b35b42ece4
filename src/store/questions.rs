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
    let question = match from_json(row, "wish")? {
        Wish::Ask { question } => question,
        other => other.command(),
    };
    Ok(Question {
        id: id(row, "id")?,
        frame: id(row, "frame")?,
        root: id(row, "root")?,
        title: row.get("title")?,
        question,
        asked: time(row, "made")?,
        answered: maybe_time(row, "answered")?,
        answer: row.get("answer")?,
    })
}
