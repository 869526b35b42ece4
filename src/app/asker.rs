//! Identifies the asker of an operation, and lists the operations that agents cannot do.

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
    /// The ancestor process that runs agents, unless the asker belongs to a command of `[on]`.
    pub(crate) runner: Option<i32>,
}

/// The operations that only people can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PersonsTask {
    Answer,
    /// To change how a chain continues, or give it a new instruction.
    ChangeChain,
    /// To send messages to agents of other chains.
    Tell,
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

/// An agent, or a process that one may have left behind, requested an operation that only people can do.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("{}", task.refusal().0)]
pub(crate) struct OnlyPeople {
    pub(crate) task: PersonsTask,
    pub(crate) started_by: StartedBy,
}

/// Who may have started the asker's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartedBy {
    Agent {
        agent: FrameId,
        /// The ancestor process that belongs to the agent, if the asker's own process does not name the agent.
        found_above: Option<i32>,
    },
    /// An agent of this process, which runs agents.
    AgentOf(i32),
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
            Self::ChangeChain => ("agents cannot change how chains continue", ASK_A_PERSON),
            Self::Tell => ("agents can send messages only to agents that they have started", ASK_A_PERSON),
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

impl PersonsTask {
    /// Whether it changes what people have decided or keep. The others are also allowed to what agents may have left behind: a
    /// dashboard, which runs agents itself, opens conversations.
    const fn is_a_decision(self) -> bool {
        match self {
            Self::Answer
            | Self::ChangeChain
            | Self::Tell
            | Self::Remove
            | Self::Name
            | Self::Export
            | Self::Import
            | Self::Move
            | Self::ManageHosts
            | Self::ManageAccess
            | Self::ChangeSettings
            | Self::ChangeService
            | Self::SetUp
            | Self::Serve => true,
            Self::ResumeAll
            | Self::Watch
            | Self::Check
            | Self::OpenConversations
            | Self::SeeCosts
            | Self::SeeNotifications => false,
        }
    }
}

impl Asker {
    /// Refuses people's operations to agents.
    pub(crate) fn may(&self, task: PersonsTask) -> Result<(), OnlyPeople> {
        let started_by = match (self.agent, self.runner) {
            (Some(caller), _) => StartedBy::Agent { agent: caller.frame, found_above: self.found_above },
            (None, Some(runner)) if task.is_a_decision() => StartedBy::AgentOf(runner),
            (None, _) => return Ok(()),
        };
        Err(OnlyPeople { task, started_by })
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
        let refused = Asker { agent, found_above: Some(7), ..person.clone() }.may(PersonsTask::Remove).unwrap_err();
        assert_eq!(refused.to_string(), "agents cannot remove chains");
        assert!(matches!(refused.started_by, StartedBy::Agent { found_above: Some(7), .. }), "{refused:?}");
        let left_behind = Asker { runner: Some(8), ..person };
        let refused = left_behind.may(PersonsTask::ChangeSettings).unwrap_err();
        assert_eq!((refused.task, refused.started_by), (PersonsTask::ChangeSettings, StartedBy::AgentOf(8)));
        left_behind.may(PersonsTask::OpenConversations).unwrap();
    }
}
