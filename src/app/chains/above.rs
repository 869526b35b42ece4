//! The chain above an agent that has ended.

use crate::app::chains::unattended;
use crate::app::error::AppError;
use crate::app::view::outcome::Continuer;
use crate::core::id::FrameId;
use crate::runtime::run::status;
use crate::store::{Driving, Store};

/// What becomes of a chain when an agent in it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChainAbove {
    /// It can continue: by a `resume` of this id, or without a person.
    CanContinue(FrameId, Option<Continuer>),
    /// It waits for something else.
    Waits(FrameId),
}

impl ChainAbove {
    /// The command that continues the chain, if it can continue.
    pub(crate) fn command(self) -> Option<String> {
        match self {
            Self::CanContinue(root, _) => Some(format!("agent-cli resume {root}")),
            Self::Waits(_) => None,
        }
    }
}

/// `None`: there is nothing above the agent, it has ended, or another process runs it.
pub(crate) fn of(store: &Store, agent: FrameId) -> Result<Option<ChainAbove>, AppError> {
    let root = store.chain_of(agent)?.root;
    let is_over = root == agent || store.frame(root)?.is_none_or(|frame| frame.state.is_over());
    Ok(match is_over || Driving::is_marked(store.dir(), root)? {
        true => None,
        false if status::can_continue(store, root)? => {
            Some(ChainAbove::CanContinue(root, unattended::continuer(store)?))
        }
        false => Some(ChainAbove::Waits(root)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::attempt::ending::Ending;
    use crate::store::testing::{ask, new, reply, store};

    #[test]
    fn a_chain_continues_when_its_last_agent_has_ended_and_not_before() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let child = store.request_child(caller, None, &new("child"), "child").unwrap().1;
        let question = store.request(caller, None, &[ask("When?")]).unwrap()[0];
        store.end(caller, &Ending::Suspended);
        store.end(store.start(child), &reply("fine"));
        let above = |agent| of(&store, agent).unwrap();
        assert_eq!((above(child), above(caller.frame)), (Some(ChainAbove::Waits(caller.frame)), None));
        store.answer(question, "now").unwrap();
        assert!(matches!(above(child), Some(ChainAbove::CanContinue(root, _)) if root == caller.frame));
        store.end(store.start(caller.frame), &reply("over"));
        assert_eq!(above(child), None);
    }
}
