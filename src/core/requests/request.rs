//! Requests: what an agent asks `agent-cli` for, and the result.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::core::id::{AttemptId, FrameId, RequestId};
use crate::core::requests::approval;
use crate::core::requests::approval::call_place::CallPlace;
use crate::core::requests::proposed_plan::ProposedPlan;
use crate::core::requests::question_form::Form;
use crate::core::requests::question_form::answer_file::AnswerFileContent;
use crate::core::requests::request_state::{RequestEvent, RequestState};
use crate::core::text::escape::shortened;
pub(crate) use crate::core::waits::conditions::External;
use crate::core::waits::scheduled::Scheduled;
use crate::core::waits::wait_progress::WaitProgress;

/// A request that an agent made and whose result has not been delivered to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub id: RequestId,
    /// The frame whose agent made it.
    pub frame: FrameId,
    /// The attempt in which it was made.
    pub attempt: AttemptId,
    /// The tool call that it suspends, if any.
    pub call: Option<String>,
    pub kind: RequestKind,
    pub state: RequestState,
    /// When it was made.
    pub made: Timestamp,
    /// The progress of its conditions, if it waits for something outside the chain.
    pub progress: WaitProgress,
}

/// What an agent asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum RequestKind {
    /// Another agent's reply.
    Spawn {
        /// The agent that was created for it.
        child: FrameId,
        /// Its task, as a list shows it.
        task: String,
        /// What becomes of the reply.
        #[serde(default, skip_serializing_if = "SpawnForm::is_call")]
        form: SpawnForm,
        /// Whether its result is an object for programs.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        json: bool,
    },
    /// A person's answer.
    Ask(Form),
    /// A person's permission for a call.
    Permission {
        /// The tool that is called.
        tool: String,
        /// Its input.
        input: Value,
        /// Why a user's hook asks for it, if one does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Where it acts, as far as known when a person was asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<CallPlace>,
    },
    /// A person's approval of a plan.
    Plan(ProposedPlan),
    /// Something outside the chain.
    Wait(External),
}

/// How an agent calls another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum SpawnForm {
    /// The caller waits for the reply.
    #[default]
    Call,
    /// The reply is also the caller's.
    Handoff,
    /// The caller continues, and joins the other agent later.
    Background,
}

/// A request that has ended, with the result for the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The request that has ended.
    pub request: RequestId,
    /// The tool call that it suspends, if any.
    pub call: Option<String>,
    /// What the agent asked for.
    pub kind: RequestKind,
    /// Exact to the byte.
    pub result: RequestResult,
}

impl SpawnForm {
    fn is_call(&self) -> bool {
        *self == Self::Call
    }
}

impl Request {
    /// Whether it has everything it asked for. `is_child_over` says whether a child has ended or no longer exists: a missing
    /// child will never reply, and its parent is told so.
    pub(crate) fn is_over<E>(&self, is_child_over: impl FnOnce(FrameId) -> Result<bool, E>) -> Result<bool, E> {
        match &self.kind {
            RequestKind::Spawn { child, .. } => is_child_over(*child),
            RequestKind::Ask(_) | RequestKind::Permission { .. } | RequestKind::Plan(_) | RequestKind::Wait(_) => {
                Ok(self.state.is_resolved())
            }
        }
    }

    /// What the next check of the chain would record at `now`, as far as its progress and its file have been observed.
    pub(crate) fn event_to_record(&self, now: Timestamp) -> Option<RequestEvent> {
        let is_answered =
            |form: &Form| form.answer_file.as_ref().is_some_and(|file| file.content == AnswerFileContent::Answered);
        match &self.kind {
            _ if self.state != RequestState::Open => None,
            RequestKind::Wait(wait) => self.progress.is_over(wait).then_some(RequestEvent::Resolve),
            RequestKind::Ask(form) if is_answered(form) => Some(RequestEvent::Resolve),
            RequestKind::Ask(form) => form.is_over(now).then_some(RequestEvent::Expire),
            RequestKind::Spawn { .. } | RequestKind::Permission { .. } | RequestKind::Plan(_) => None,
        }
    }
}

/// Whether an agent with these undelivered requests has asked for nothing but the agents in its background, and jobs to come.
pub(crate) fn are_in_background(requests: &[Request]) -> bool {
    let is_job_to_come = |request: &Request| request.kind.is_job() && !request.state.is_resolved();
    requests.iter().all(|request| request.kind.is_background() || is_job_to_come(request))
}

/// Whether an agent has asked only for jobs whose time has not come. It has ended its turn and waits for the first.
pub(crate) fn are_jobs_to_come(requests: &[Request]) -> bool {
    !requests.is_empty() && requests.iter().all(|request| request.kind.is_job() && !request.state.is_resolved())
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestResult {
    /// The reply, the answer, or a sentence that the wait has ended.
    Text(String),
    /// The default of an expired question, with a sentence that says so.
    Default(String),
    /// The child failed, and why.
    Failed(String),
    PartlyFailed(String),
    /// It expired without an answer, and has no default.
    Unanswered {
        /// A sentence that says so.
        said: String,
        /// How long the question waited.
        seconds: u64,
    },
}

impl Delivery {
    /// The shortened id by which the agent knows this request: a child's own, otherwise the request's.
    pub(crate) fn known_as(&self) -> String {
        match &self.kind {
            RequestKind::Spawn { child, .. } => child.short(),
            RequestKind::Ask(_) | RequestKind::Permission { .. } | RequestKind::Plan(_) | RequestKind::Wait(_) => {
                self.request.short()
            }
        }
    }

    /// The text in place of a result that the agent must fetch itself, because the user's hooks run after commands but not on
    /// text in a prompt. Errors stay in the prompt: no such hook runs after a command that fails.
    pub(crate) fn for_fetching(self) -> Self {
        let id = match &self.kind {
            RequestKind::Spawn { child, json: false, .. } => child.to_string(),
            RequestKind::Ask(_) | RequestKind::Spawn { .. } => self.request.to_string(),
            RequestKind::Permission { .. } | RequestKind::Plan(_) | RequestKind::Wait(_) => return self,
        };
        let text = format!("The result is ready: run `agent-cli resume {id}` to print it.");
        match self.result {
            RequestResult::Failed(_) | RequestResult::PartlyFailed(_) | RequestResult::Unanswered { .. } => self,
            RequestResult::Text(_) => Self { result: RequestResult::Text(text), ..self },
            RequestResult::Default(_) => Self { result: RequestResult::Default(text), ..self },
        }
    }
}

impl RequestResult {
    /// The result of a batch: a JSON array on one line, with the questions in the order in which they were asked.
    pub(crate) fn of_batch(parts: &[BatchPart]) -> Self {
        let part = |part: &BatchPart| {
            let mut object = json!({"question": part.form.question, "answer": part.answer, "expired": part.expired});
            if let Some(name) = part.form.batch.as_ref().and_then(|batch| batch.name.as_ref()) {
                object["name"] = json!(name);
            }
            object
        };
        Self::Text(Value::Array(parts.iter().map(part).collect()).to_string())
    }

    pub(crate) fn is_failure(&self) -> bool {
        !matches!(self, Self::Text(_) | Self::Default(_))
    }

    /// The text that its agent receives.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text)
            | Self::Default(text)
            | Self::Failed(text)
            | Self::PartlyFailed(text)
            | Self::Unanswered { said: text, .. } => text,
        }
    }

    /// Whether the agent saw the result when its call returned this, rather than a denial or another command's output.
    pub(crate) fn is_in(&self, returned: &Returned) -> bool {
        match self {
            Self::Text(text) | Self::Default(text) => !returned.is_error && returned.text.contains(text),
            Self::Failed(why) | Self::PartlyFailed(why) | Self::Unanswered { said: why, .. } => {
                returned.is_error && returned.text.contains(why.trim())
            }
        }
    }
}

impl RequestKind {
    /// The question, if it was asked with Claude Code's own tool.
    pub(crate) fn native_question(&self) -> Option<&str> {
        match self {
            Self::Ask(form) => form.native.then_some(&form.question),
            _ => None,
        }
    }

    /// The prompt that its agent scheduled, if this is such a request.
    pub(crate) fn scheduled(&self) -> Option<&Scheduled> {
        match self {
            Self::Wait(External::Scheduled(scheduled)) => Some(scheduled),
            _ => None,
        }
    }

    /// Whether it is for an agent that works in the background of the one that asks.
    pub(crate) fn is_background(&self) -> bool {
        matches!(self, Self::Spawn { form: SpawnForm::Background, .. })
    }

    /// Whether its agent continues without the result.
    pub(crate) fn is_job(&self) -> bool {
        self.scheduled().is_some_and(Scheduled::is_job)
    }

    /// The command that makes this request, shortened if it is long, so that people and agents recognise it.
    pub(crate) fn command(&self) -> String {
        match self {
            Self::Spawn { task, form, .. } => {
                let option = match form {
                    SpawnForm::Call => "",
                    SpawnForm::Handoff => "--handoff ",
                    SpawnForm::Background => "--background ",
                };
                format!("agent-cli spawn {option}{}", shortened(task))
            }
            Self::Ask(Form { posted: Some(posted), .. }) => format!("QUESTION_POSTED:{}", shortened(&posted.id)),
            Self::Ask(Form { batch: Some(_), .. }) => "agent-cli ask --questions".to_owned(),
            Self::Ask(form) => {
                let command = if form.native { "AskUserQuestion" } else { "agent-cli ask" };
                format!("{command} \"{}\"", shortened(&form.question))
            }
            Self::Permission { tool, input, .. } => shortened(&approval::summary(tool, input)),
            Self::Plan(plan) => format!("ExitPlanMode: {}", shortened(plan.summary())),
            Self::Wait(External::Scheduled(scheduled)) => shortened(&scheduled.call()),
            Self::Wait(wait) => wait.call(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Returned {
    /// Claude's id of the call.
    pub call: String,
    /// The text that the agent sees.
    pub text: String,
    pub is_error: bool,
}

/// One of several questions that are asked together and are closed.
pub(crate) struct BatchPart {
    pub(crate) form: Form,
    /// The answer, or the default of an expired question.
    pub(crate) answer: Option<String>,
    pub(crate) expired: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::RequestId;
    use crate::core::requests::question_form::Batch;

    #[test]
    fn a_child_is_known_by_its_own_id() {
        let child: FrameId = "4f2c1a90-0000-4000-8000-000000000000".parse().unwrap();
        let kind = RequestKind::Spawn { child, task: "/ins2.md".into(), form: SpawnForm::Call, json: false };
        let delivery =
            Delivery { request: RequestId::random(), call: None, kind, result: RequestResult::Text(String::new()) };
        assert_eq!(delivery.known_as(), "4f2c1a90");
    }

    #[test]
    fn a_result_to_fetch_is_named_and_not_included() {
        let delivery = |kind: RequestKind, result| Delivery { request: RequestId::random(), call: None, kind, result };
        let ask = || RequestKind::Ask(Form::text("Which?"));
        let asked = delivery(ask(), RequestResult::Text("hunter2".into()));
        let text = format!("The result is ready: run `agent-cli resume {}` to print it.", asked.request);
        assert_eq!(asked.for_fetching().result, RequestResult::Text(text));
        let over = RequestKind::Wait(External::Command("true".into()));
        for kept in [
            delivery(ask(), RequestResult::Failed("no disk".into())),
            delivery(over, RequestResult::Text("the command succeeded".into())),
        ] {
            assert_eq!(kept.clone().for_fetching(), kept);
        }
    }

    #[test]
    fn a_result_is_seen_in_what_the_call_returned_and_nowhere_else() {
        let returned = |text: &str, is_error| Returned { call: "t1".into(), text: text.into(), is_error };
        let text = RequestResult::Text("Jan 1st".into());
        assert!(text.is_in(&returned("Jan 1st", false)));
        assert!(text.is_in(&returned("their hook says hello\nJan 1st", false)));
        assert!(!text.is_in(&returned("denied: Jan 1st is no answer", true)));
        assert!(!text.is_in(&returned("theirs", false)));
        let failed = RequestResult::Failed("the disk is full\n".into());
        assert!(failed.is_in(&returned("Exit code 1\nthe disk is full", true)));
        assert!(!failed.is_in(&returned("not today", true)));
        assert!(!failed.is_in(&returned("the disk is full", false)));
    }

    #[test]
    fn a_command_is_one_short_line() {
        let kind = RequestKind::Ask(Form::text(&format!("a\n{}", "b".repeat(1_000_000))));
        let command = kind.command();
        assert!(command.starts_with("agent-cli ask \"a⏎bbb"), "{command}");
        assert!(command.ends_with("b…\""), "{command}");
        assert!(command.chars().count() < 150, "{command}");
    }

    #[test]
    fn a_batch_has_one_result_with_every_answer_to_the_byte() {
        let batch = |name: Option<&str>| Some(Batch { id: RequestId::random(), name: name.map(str::to_owned) });
        let (named, unnamed) = (
            Form { batch: batch(Some("day")), ..Form::text("When?") },
            Form { batch: batch(None), ..Form::text("Why?") },
        );
        let result = RequestResult::of_batch(&[
            BatchPart { form: named, answer: Some("Jan\n \"1st\"\u{2028}".into()), expired: false },
            BatchPart { form: unnamed, answer: None, expired: true },
        ]);
        let read: Value = serde_json::from_str(result.text()).unwrap();
        let expected = json!([
            {"name": "day", "question": "When?", "answer": "Jan\n \"1st\"\u{2028}", "expired": false},
            {"question": "Why?", "answer": null, "expired": true},
        ]);
        assert_eq!(read, expected);
        assert!(!result.text().contains('\n'));
    }
}
