//! Refusals and failures of use cases.

use crate::app::asker::OnlyPeople;
use crate::claude::options::BadArgument;
use crate::core::agent::child_worktree::Held;
use crate::core::id::{BadId, FrameId, RequestId};
use crate::core::requests::answer::NoAnswer;
use crate::core::requests::request::RequestKind;
use crate::runtime::RuntimeError;
use crate::runtime::housekeeping::service::ServiceError;
use crate::store::{Question, StoreError};

#[derive(Debug, thiserror::Error)]
pub(crate) enum AppError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    OnlyPeople(#[from] OnlyPeople),
    #[error(transparent)]
    Id(#[from] BadId),
    #[error(transparent)]
    Answer(#[from] AnswerError),
    #[error(transparent)]
    Removal(#[from] RemovalError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

/// Why an input was not recorded as an answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AnswerError {
    #[error("{error}")]
    NotAnAnswer { question: RequestId, kind: Box<RequestKind>, text: String, replaces: bool, error: NoAnswer },
    #[error("the answer has {0} bytes, where 8 MiB are allowed")]
    TooLarge(usize),
    /// A mode was given although the answer does not allow a plan. `plan` is the question, if it is about a plan.
    #[error("--mode is for a plan that is allowed")]
    NoPlanAllowed { plan: Option<RequestId>, mode: String },
    /// The call would no longer do what the person has seen.
    #[error("{} has changed since it was shown", .0.short())]
    Changed(RequestId),
    #[error("{} has no open question", agent.short())]
    NoOpenQuestion { agent: FrameId, replaceable: Vec<Question> },
    #[error("{} has no answer that could be replaced", .0.short())]
    NoAnswer(FrameId),
    #[error("{} has {} open questions", agent.short(), open.len())]
    SeveralOpenQuestions { agent: FrameId, open: Vec<Question> },
    #[error("{} has {} answers that could be replaced", agent.short(), answered.len())]
    SeveralAnswers { agent: FrameId, answered: Vec<Question> },
    /// The asker's Claude session belongs to an agent.
    #[error("agents cannot answer questions")]
    InSessionOf(FrameId),
}

/// Why a chain was not removed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RemovalError {
    #[error("a process of {} is still alive", .0.short())]
    Busy(FrameId),
    #[error("another chain waits for an agent of {}, or continues one of its sessions", .0.short())]
    Needed(FrameId),
    #[error("worktrees of {} contain work", .0.short())]
    Held(FrameId, Vec<Held>),
}

/// Why an input was refused, with a hint. Nothing was done.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refusal {
    pub(crate) message: String,
    pub(crate) hints: Vec<String>,
    pub(crate) cause: Cause,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The input is wrong, or the asker is not allowed to use it.
    Input,
    /// The input names something that does not exist.
    Unknown,
    /// Something that the use case needs failed.
    Failure,
}

impl Refusal {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hints: Vec::new(), cause: Cause::Input }
    }

    /// Limits restrict agents, so agents cannot set them.
    pub(crate) fn limits_of_agents() -> Self {
        Self::new("agents cannot set limits (--max-…, --stall-after)").hint("leave them out")
    }

    pub(crate) fn unknown(message: impl Into<String>) -> Self {
        Self { cause: Cause::Unknown, ..Self::new(message) }
    }

    pub(crate) fn failure(message: impl Into<String>) -> Self {
        Self { cause: Cause::Failure, ..Self::new(message) }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl From<BadArgument> for Refusal {
    fn from(error: BadArgument) -> Self {
        Self::new(error.to_string()).hint(help(&error))
    }
}

fn help(error: &BadArgument) -> String {
    match error {
        BadArgument::Positional(word) if word == "--" => "give -- only once".to_owned(),
        BadArgument::Positional(_) => "to start a second agent, give its file before the --".to_owned(),
        BadArgument::Trailing { option, .. } => format!(
            "to start a second agent, give its file before the --; to give {option} another value, repeat it: \
             {option}=VALUE"
        ),
        BadArgument::Unjoined { option, word } => {
            format!("if it is, write {option}={word}; to start a second agent, give its file before the --")
        }
        BadArgument::NoValue(option) => format!("write {option}=VALUE"),
        BadArgument::TakesNoValue(option) => format!("write {option} alone"),
        BadArgument::NotANumber { option, .. } => format!("write {option}=NUMBER, with a number above 0"),
        BadArgument::UnknownShort(_) => "write the option by its long name, as in --option=value".to_owned(),
        BadArgument::Reserved(_) => "leave it out".to_owned(),
        BadArgument::HasOption(option) if option == "--worktree" => "agent-cli spawn --worktree FILE".to_owned(),
        BadArgument::HasOption(option) => format!("agent-cli spawn {option} VALUE FILE"),
    }
}
