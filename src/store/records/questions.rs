//! Questions for people, and their outcomes.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::core::id::{AttemptId, FrameId, RequestId};
use crate::core::requests::request::RequestKind;
use crate::core::steering::origin::Origin;
use crate::store::records::chains::EventRecord;

/// A question that an agent asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Its id, for `answer`.
    pub id: RequestId,
    /// The frame whose agent asked.
    pub frame: FrameId,
    /// The root of that frame's tree.
    pub root: FrameId,
    /// The frame's task in a few words.
    pub title: String,
    /// The question.
    pub question: String,
    /// What was asked for, including the choices that it offers.
    pub kind: RequestKind,
    /// Its place among the questions of the same call, if there are several.
    pub together: Option<Together>,
    /// When it was asked.
    pub asked: Timestamp,
    /// When it was answered.
    pub answered: Option<Timestamp>,
    /// The answer.
    pub answer: Option<String>,
    /// When it was recorded that the question had expired without an answer.
    pub expired: Option<Timestamp>,
    /// Who gave it.
    pub origin: Option<Origin>,
}

/// The position of a question among those that one call has asked: its agent continues when all are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Together {
    /// From 1.
    pub number: u32,
    pub of: u32,
}

/// Which questions are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Questions {
    All(Asked),
    /// The posted questions that are closed but whose files do not say so: of an agent and all below it, or of all. A
    /// running agent may be posting another question under the same name.
    Unfiled(Option<FrameId>),
}

/// The first of many questions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FirstQuestions {
    pub questions: Vec<Question>,
    /// How many more are in the same directories.
    pub more: u64,
    /// How many are in other directories.
    pub elsewhere: u64,
}

/// A question or approval, and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    pub id: RequestId,
    pub frame: FrameId,
    pub root: FrameId,
    /// The agent's task.
    pub title: String,
    /// Where the root of the chain works.
    pub cwd: PathBuf,
    pub asked: Timestamp,
    pub kind: RequestKind,
    /// The tool call that it suspended.
    pub call: Option<String>,
    /// The state of the request, by its name.
    pub status: String,
    /// Later log entries about it: `answered`, `answer_replaced`, `expired`, `withdrawn`.
    pub records: Vec<EventRecord>,
    pub given: Option<Given>,
}

/// Questions with their outcomes, the newest last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exchanges {
    pub exchanges: Vec<Exchange>,
    /// How many questions of other directories are newer than the first.
    pub passed_over: u64,
}

/// The attempt that was given the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    pub attempt: AttemptId,
    pub began: Timestamp,
    /// Where its output begins.
    pub output_from: u64,
}

/// Which questions are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Anywhere,
    /// Of a frame, or a frame below it.
    Below(FrameId),
    One(RequestId),
}

impl From<RequestId> for Asked {
    fn from(question: RequestId) -> Self {
        Self::One(question)
    }
}

impl From<Option<FrameId>> for Asked {
    fn from(below: Option<FrameId>) -> Self {
        below.map_or(Self::Anywhere, Self::Below)
    }
}
