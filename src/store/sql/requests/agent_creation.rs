//! Creates agents: as a separate chain, or because an agent asked for them.

use crate::core::agent::launch::Launch;
use crate::core::chain::frame::{Detached, Frame, Task};
use crate::core::chain::frame_state::{FrameState, Wait};
use crate::core::chain::limits::Limits;
use crate::core::events::log_entry::LogEntry;
use crate::core::housekeeping::hosting::Labels;
use crate::core::id::{AttemptId, ChainName, FrameId};
use crate::core::requests::request::RequestKind;
use crate::store::records::{AskedFor, NewChain, NewFrame, NewGroup};
use crate::store::sql::database::codec::{self, At};
use crate::store::sql::engine::{Connection, TxResult};
use crate::store::sql::tables::frames::{self, FramePosition};
use crate::store::sql::tables::{chains, events, requests};

impl NewChain<'_> {
    /// How many agents it has.
    pub(super) fn agents(&self) -> u32 {
        match self {
            Self::Agent(_) | Self::Adopted(..) => 1,
            Self::Group(group) => u32::try_from(group.members.len()).unwrap_or(u32::MAX),
        }
    }

    /// Its limits if it is a separate chain.
    pub(super) fn limits(&self) -> Limits {
        match self {
            Self::Agent(agent) | Self::Adopted(agent, _) => agent.limits,
            Self::Group(group) => group.members[0].limits,
        }
    }

    /// The labels of its host, if that need not be this one.
    fn on(&self) -> Option<&Labels> {
        match self {
            Self::Agent(agent) | Self::Adopted(agent, _) => agent.on.as_ref(),
            Self::Group(group) => group.members[0].on.as_ref(),
        }
    }

    /// Its name.
    fn name(&self) -> Option<&ChainName> {
        match self {
            Self::Agent(agent) | Self::Adopted(agent, _) => agent.name.as_ref(),
            Self::Group(group) => group.members[0].name.as_ref(),
        }
    }

    /// The id of its top frame, a new one for a group.
    pub(super) fn top(&self) -> FrameId {
        match self {
            Self::Agent(agent) => agent.id,
            Self::Adopted(_, session) => FrameId(session.0),
            Self::Group(_) => FrameId::random(),
        }
    }

    /// Records its frames, which are ready, with `top` as the first.
    pub(super) fn insert(
        &self,
        connection: &Connection,
        now: At,
        top: FrameId,
        parent: Option<&Frame>,
    ) -> TxResult<()> {
        match self {
            Self::Agent(agent) => frames::insert(connection, now, agent, &FramePosition::new(top, parent)),
            Self::Group(group) => insert(connection, now, top, group, parent),
            Self::Adopted(agent, session) => {
                let (state, checkpoint) =
                    (FrameState::Waiting { wait: Wait::AgentDecides }, Some(AttemptId(session.0)));
                let place = FramePosition { state, checkpoint, ..FramePosition::new(top, parent) };
                frames::insert(connection, now, &NewFrame { id: top, ..(*agent).clone() }, &place)
            }
        }
    }
}

pub(crate) fn create<'a>(connection: &Connection, new: NewChain<'a>, asked: Option<AskedFor<'_>>) -> TxResult<FrameId> {
    let (now, top) = (codec::now(), new.top());
    match asked {
        Some(asked) => create_below(connection, now, top, new, asked)?,
        None => create_chain(connection, now, top, new)?,
    }
    Ok(top)
}

fn create_chain(connection: &Connection, now: At, top: FrameId, new: NewChain<'_>) -> TxResult<()> {
    let limits = new.limits();
    limits.admit(1, 0, new.agents())?;
    chains::insert(connection, top, limits)?;
    new.on().map_or(Ok(()), |labels| chains::offer(connection, top, labels))?;
    new.insert(connection, now, top, None)?;
    new.name().map_or(Ok(()), |name| chains::give(connection, top, Some(name)))
}

fn create_below(
    connection: &Connection,
    now: At,
    top: FrameId,
    new: NewChain<'_>,
    AskedFor { caller, call, title, form, json, detached }: AskedFor<'_>,
) -> TxResult<()> {
    requests::check(connection, caller)?;
    let parent = frames::existing(connection, caller.frame)?;
    admit(connection, &parent, new.agents())?;
    if let Some(detached) = detached {
        detach(connection, now, top, new, &parent, detached)?;
        let entry = LogEntry::Detached { attempt: caller.attempt, chain: top, title: title.to_owned() };
        return events::append(connection, now, caller.frame, &entry);
    }
    new.insert(connection, now, top, Some(&parent))?;
    let kind = RequestKind::Spawn { child: top, task: title.to_owned(), form, json };
    requests::insert(connection, now, caller, call, &kind).map(drop)
}

/// Records a chain that the agent of `by` has detached. It can be as deep as the agent's children could be.
fn detach(
    connection: &Connection,
    now: At,
    top: FrameId,
    new: NewChain<'_>,
    by: &Frame,
    detached: &Detached,
) -> TxResult<()> {
    let limits = chains::limits(connection, by.root)?;
    chains::insert(connection, top, Limits { max_depth: limits.max_depth.saturating_sub(by.depth), ..limits })?;
    chains::set_detached(connection, top, by.root, detached)?;
    new.insert(connection, now, top, None)
}

/// Checks that `parent` may have this many more children.
fn admit(connection: &Connection, parent: &Frame, more: u32) -> TxResult<()> {
    let agents = chains::agents(connection, parent.root)?;
    Ok(chains::limits(connection, parent.root)?.admit(parent.depth + 1, agents, more)?)
}

/// Records a group and its members. A group is not a level: its members are one level below the agent that asked for it.
fn insert(connection: &Connection, now: At, group: FrameId, new: &NewGroup, parent: Option<&Frame>) -> TxResult<()> {
    let depth = parent.map_or(0, |parent| parent.depth);
    let place = FramePosition {
        depth,
        state: FrameState::Waiting { wait: Wait::Requests },
        ..FramePosition::new(group, parent)
    };
    let first = new.members[0].clone();
    let launch = Launch { worktree: None, ..first.launch };
    let (task, cwd, started_from) = (Task::Group(new.tasks.clone()), new.cwd.clone(), first.started_from);
    let frame = NewFrame {
        id: group,
        task,
        cwd,
        launch,
        baseline: None,
        started_from,
        limits: first.limits,
        name: first.name,
        on: first.on,
        pushed: None,
    };
    frames::insert(connection, now, &frame, &place)?;
    for member in &new.members {
        let below =
            FramePosition { parent: Some(group), depth: place.depth + 1, state: FrameState::Ready, ..place.clone() };
        frames::insert(connection, now, member, &below)?;
    }
    Ok(())
}
