//! The views of questions, approvals and plans for a person.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::core::id::{FrameId, RequestId};
use crate::core::requests::approval;
use crate::core::requests::approval::call_place::CallPlace;
use crate::core::requests::proposed_plan::ProposedPlan;
use crate::core::requests::question_form::Form;
use crate::core::requests::request::RequestKind;
use crate::core::steering::origin::Origin;
use crate::store::{Question, Together};

/// A question, as `questions` lists it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct QuestionView {
    pub(crate) id: RequestId,
    #[serde(flatten)]
    pub(crate) asked_for: AskedForView,
    /// The agent that asked.
    agent: FrameId,
    pub(crate) chain: FrameId,
    /// The agent's task.
    pub(crate) task: String,
    /// Its position among the questions of the same call, if there are several.
    pub(crate) asked_together: Option<Together>,
    pub(crate) asked: Timestamp,
    answered: Option<Timestamp>,
    pub(crate) answer: Option<String>,
    /// When it was recorded as expired.
    pub(crate) expired: Option<Timestamp>,
    answered_by: Option<Origin>,
}

/// What a person is asked for.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) enum AskedForView {
    /// An answer.
    Question(Form),
    /// A permission for a call.
    Permission {
        /// A summary.
        question: String,
        tool: String,
        input: Value,
        /// Why a user's hook asks for it, if one does.
        reason: Option<String>,
        /// Where it acts, as far as known.
        place: Option<CallPlace>,
    },
    /// An approval of a plan.
    Plan {
        /// A summary.
        question: String,
        #[serde(flatten)]
        plan: ProposedPlan,
    },
}

impl AskedForView {
    /// Builds the view of `kind`. Other kinds of requests are shown as questions in their own words.
    pub(crate) fn new(kind: RequestKind) -> Self {
        match kind {
            RequestKind::Permission { tool, input, reason, place } => {
                Self::Permission { question: approval::summary(&tool, &input), tool, input, reason, place }
            }
            RequestKind::Plan(plan) => Self::Plan { question: plan.summary().to_owned(), plan },
            RequestKind::Ask(form) => Self::Question(form),
            other @ (RequestKind::Spawn { .. } | RequestKind::Wait(_)) => Self::Question(Form::text(&other.command())),
        }
    }
}

impl From<Question> for QuestionView {
    fn from(question: Question) -> Self {
        Self {
            id: question.id,
            asked_for: AskedForView::new(question.kind),
            agent: question.frame,
            chain: question.root,
            task: question.title,
            asked_together: question.together,
            asked: question.asked,
            answered: question.answered,
            answer: question.answer,
            expired: question.expired,
            answered_by: question.origin,
        }
    }
}
