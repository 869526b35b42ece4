//! A request that an agent makes with a command of agent-cli, whether it runs as a program or its call is suspended.

use crate::core::agent::overrides::Overrides;
use crate::core::id::RequestId;
use crate::core::requests::question_form::Form;
use crate::core::requests::request::{External, RequestKind, SpawnForm};
use crate::runtime::RuntimeError;
use crate::runtime::requests::fork::ForkSource;
use crate::runtime::requests::question_files::QuestionFile;
use crate::runtime::requests::spawn_request::{self, SpawnRequest};
use crate::store::{Caller, Store, Target};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AgentRequest {
    /// Other agents, with their launch options as overrides of the caller's.
    Spawn(Box<SpawnRequest>, Overrides),
    /// Answers to these questions, at least one. If there are several, they have the same
    /// [`Batch`](crate::core::requests::question_form::Batch).
    Ask(Vec<Form>),
    /// An answer to the question in this file.
    AskInFile(QuestionFile, Box<Form>),
    /// Something outside the chain.
    Wait(External),
}

impl AgentRequest {
    /// Records it. `call` is the tool call that is suspended until the result is available.
    pub(crate) fn record(self, store: &Store, caller: Caller, call: Option<&str>) -> Result<Target, RuntimeError> {
        match self {
            Self::Spawn(request, overrides) => {
                spawn_request::spawn(store, caller, call, *request, overrides).map(Target::Frame)
            }
            Self::Ask(forms) => spawn_request::ask(store, caller, call, forms).map(Target::Request),
            Self::AskInFile(file, form) => {
                file.make(&form)?;
                spawn_request::ask(store, caller, call, vec![*form]).map(Target::Request)
            }
            Self::Wait(wait) => spawn_request::wait(store, caller, call, wait).map(Target::Request),
        }
    }

    /// Whether its call can linger. A fork of the caller needs the conversation that the caller leaves when its turn has
    /// ended, and a question needs a person who `is_there`.
    pub(crate) fn can_linger(&self, caller: Caller, is_there: impl FnOnce() -> bool) -> bool {
        match self {
            Self::Spawn(request, _) => {
                let is_of_caller = |source: &ForkSource| source.baseline.frame == Some(caller.frame);
                request.form == SpawnForm::Call && !request.source.as_ref().is_some_and(is_of_caller)
            }
            Self::Wait(_) => true,
            Self::Ask(_) => is_there(),
            Self::AskInFile(..) => false,
        }
    }

    /// Whether its call returns as soon as it is recorded.
    pub(crate) fn returns_at_once(&self) -> bool {
        matches!(self, Self::Spawn(request, _) if request.form == SpawnForm::Background)
    }

    /// The request, if the attempt's resumed call has already made it and now runs as a program: it must not be made again.
    pub(crate) fn made_before(&self, store: &Store, caller: Caller) -> Result<Option<RequestId>, RuntimeError> {
        spawn_request::made_before(store, caller, |kind| self.is(kind))
    }

    fn is(&self, recorded: &RequestKind) -> bool {
        match (self, recorded) {
            (Self::Spawn(request, _), RequestKind::Spawn { task, form, .. }) => {
                *task == request.title() && *form == request.form
            }
            // A duration results in a different time each time, and each batch has a new id.
            (Self::Ask(asked), RequestKind::Ask(recorded)) => asked.first().is_some_and(|asked| {
                let batch = asked.batch.as_ref().and(recorded.batch.clone());
                Form { expires_at: recorded.expires_at, batch, ..asked.clone() } == *recorded
            }),
            // A person may have written the answer since.
            (Self::AskInFile(file, _), RequestKind::Ask(recorded)) => file.is_of(recorded),
            (Self::Wait(wait), RequestKind::Wait(recorded)) => wait.is_same_as(recorded),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::core::chain::frame::Task;
    use crate::core::id::FrameId;
    use crate::core::requests::question_form::Batch;
    use crate::runtime::requests::spawn_request::NamedTask;

    fn asks(form: Form) -> AgentRequest {
        AgentRequest::Ask(vec![form])
    }

    #[test]
    fn a_question_is_the_same_if_only_the_time_differs() {
        let at = |second| Form { expires_at: Timestamp::from_second(second).ok(), ..Form::text("When?") };
        assert!(asks(at(1)).is(&RequestKind::Ask(at(2))));
        assert!(!asks(at(1)).is(&RequestKind::Ask(Form::text("Where?"))));
        assert!(!AgentRequest::Ask(Vec::new()).is(&RequestKind::Ask(at(1))));
        let batch = || Form { batch: Some(Batch { id: RequestId::random(), name: None }), ..Form::text("When?") };
        assert!(asks(batch()).is(&RequestKind::Ask(batch())));
        assert!(!asks(Form::text("When?")).is(&RequestKind::Ask(batch())), "it was asked with others");
    }

    #[test]
    fn another_kind_of_request_is_never_the_same() {
        let wait = || External::File("/srv/report".into());
        let task = NamedTask { task: Task::File("/srv/ins.md".into()), name: "ins.md".into() };
        let request = SpawnRequest {
            remote: None,
            tasks: vec![task],
            cwd: "/srv".into(),
            apart: false,
            source: None,
            form: SpawnForm::Call,
            detached: false,
            json: false,
        };
        let spawn = AgentRequest::Spawn(Box::new(request), Overrides::default());
        let recorded = |task: &str| RequestKind::Spawn {
            child: FrameId::random(),
            task: task.to_owned(),
            form: SpawnForm::Call,
            json: false,
        };
        assert!(spawn.is(&recorded("/srv/ins.md")) && !spawn.is(&recorded("/srv/other.md")));
        assert!(AgentRequest::Wait(wait()).is(&RequestKind::Wait(wait())));
        assert!(!AgentRequest::Wait(wait()).is(&RequestKind::Wait(External::File("/srv/other".into()))));
        let asked = RequestKind::Ask(Form::text("When?"));
        assert!(!spawn.is(&asked) && !AgentRequest::Wait(wait()).is(&asked));
        assert!(!asks(Form::text("When?")).is(&RequestKind::Wait(wait())));
    }
}
