//! Identifies the asker of an operation, and lists the operations that agents cannot do.

use crate::claude::processes::marks::Runner;
use crate::core::id::{FrameId, SessionId};
use crate::core::steering::origin::Origin;
use crate::store::Caller;

/// The person or agent that requests an operation, as far as the system knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asker {
    /// The agent that asks. `None` for a person.
    pub(crate) agent: Option<Caller>,
    /// The ancestor process that belongs to the agent, if the asker's own process does not name the agent.
    pub(crate) found_above: Option<i32>,
    pub(crate) origin: Origin,
    /// The Claude sessions in whose tool calls the asker may be running.
    pub(crate) sessions: Vec<SessionId>,
    /// The ancestor process that runs agents, if any.
    pub(crate) runner: Option<Runner>,
}

/// The operations that only people can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PersonsTask {
    Answer,
    ResumeAll,
    Watch,
    Remove,
    Name,
    Check,
    Export,
    Import,
    Move,
    ManageHosts,
    ManageAccess,
    ChangeSettings,
    ChangeService,
    SetUp,
    OpenConversations,
    SeeCosts,
    SeeNotifications,
    Serve,
}

/// An agent requested an operation that only people can do.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("{}", task.refusal().0)]
pub(crate) struct OnlyPeople {
    pub(crate) task: PersonsTask,
    pub(crate) agent: FrameId,
    /// The ancestor process that belongs to the agent, if the asker's own process does not name the agent.
    pub(crate) found_above: Option<i32>,
}

impl PersonsTask {
    /// The refusal for an agent, and a hint.
    pub(crate) fn refusal(self) -> (&'static str, &'static str) {
        const ASK_A_PERSON: &str = "ask a person to do it";
        const NAME_ONE: &str = "name the agent that you wait for: agent-cli resume ID";
        match self {
            Self::Answer => {
                ("agents cannot answer questions", "end your turn: the answer arrives when the chain is resumed")
            }
            Self::ResumeAll => ("agents cannot resume all chains", NAME_ONE),
            Self::Watch => ("agents cannot watch chains", NAME_ONE),
            Self::Remove => ("agents cannot remove chains", ASK_A_PERSON),
            Self::Name => ("agents cannot name chains", ASK_A_PERSON),
            Self::Check => ("agents cannot check chains", ASK_A_PERSON),
            Self::Export => ("agents cannot export chains", ASK_A_PERSON),
            Self::Import => ("agents cannot import chains", ASK_A_PERSON),
            Self::Move => ("agents cannot move chains", ASK_A_PERSON),
            Self::ManageHosts => ("agents cannot see or change hosts", ASK_A_PERSON),
            Self::ManageAccess => ("agents cannot see or change rights", ASK_A_PERSON),
            Self::ChangeSettings => ("agents cannot change settings", ASK_A_PERSON),
            Self::ChangeService => ("agents cannot change the service", ASK_A_PERSON),
            Self::SetUp => ("agents cannot change what all agents are told", ASK_A_PERSON),
            Self::OpenConversations => ("agents cannot open conversations", ASK_A_PERSON),
            Self::SeeCosts => ("agents cannot see what others cost", "agent-cli show shows an agent's own costs"),
            Self::Serve => ("agents cannot serve the page", ASK_A_PERSON),
            Self::SeeNotifications => {
                ("agents cannot see or send notifications", "end your turn with what a person should know")
            }
        }
    }
}

impl Asker {
    /// Refuses people's operations to agents.
    pub(crate) fn may(&self, task: PersonsTask) -> Result<(), OnlyPeople> {
        match self.agent {
            None => Ok(()),
            Some(caller) => Err(OnlyPeople { task, agent: caller.frame, found_above: self.found_above }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::AttemptId;

    #[test]
    fn only_agents_are_refused() {
        let person = Asker::default();
        person.may(PersonsTask::Remove).unwrap();
        let agent = Some(Caller { frame: FrameId::random(), attempt: AttemptId::random() });
        let refused = Asker { agent, found_above: Some(7), ..person }.may(PersonsTask::Remove).unwrap_err();
        assert_eq!(refused.to_string(), "agents cannot remove chains");
        assert_eq!((refused.task, refused.found_above), (PersonsTask::Remove, Some(7)));
    }
}
