//! Changes the limits of a chain, and how its agents are started.

use crate::core::agent::overrides::Repair;
use crate::core::agent::situation::Situation;
use crate::core::chain::frame::Frame;
use crate::core::chain::frame_state::FrameState;
use crate::core::events::log_entry::LogEntry;
use crate::core::id::FrameId;
use crate::core::steering::fresh_start::Afresh;
use crate::store::error::StoreError;
use crate::store::records::{ChainChange, Instruction};
use crate::store::sql::chains::limit_checks;
use crate::store::sql::database::codec::{self, Id, id};
use crate::store::sql::engine::{Connection, TxResult};
use crate::store::sql::steering::messages;
use crate::store::sql::tables::chains;
use crate::store::sql::tables::events;
use crate::store::sql::tables::frames::{self, launch_text};

pub(crate) fn change_chain(connection: &Connection, frame: FrameId, change: ChainChange) -> TxResult<usize> {
    let root = frames::existing(connection, frame)?.root;
    if change.limits.any() {
        limit_checks::change(connection, root, change.limits)?;
    }
    if let Some(name) = change.name {
        chains::give(connection, root, name.as_ref())?;
    }
    // First: the options of an agent that is done do not change.
    if let Some(Instruction { text, sender }) = change.instruction {
        messages::instruct(connection, frame, &text, &sender)?;
    }
    let changed = change.launch.map_or(Ok(0), |repair| change_launch(connection, root, &repair))?;
    if change.afresh {
        start_afresh(connection, frame)?;
    }
    Ok(changed)
}

/// Records that a frame starts afresh. It keeps its session until the summary is recorded.
fn start_afresh(connection: &Connection, frame: FrameId) -> TxResult<()> {
    let before = frames::existing(connection, frame)?;
    if before.checkpoint.is_none() {
        return Err(StoreError::NoConversation(frame).into());
    }
    if before.summary_lacks().is_some() {
        return Ok(());
    }
    let afresh = codec::json(&Afresh::wanted(), &[])?;
    connection.run("UPDATE frames SET afresh = ?2 WHERE id = ?1", (Id(frame), afresh))?;
    events::append(connection, codec::now(), frame, &LogEntry::AfreshWanted {})
}

fn change_launch(connection: &Connection, root: FrameId, repair: &Repair) -> TxResult<usize> {
    let ids = connection
        .read_all("SELECT id FROM frames WHERE root = ?1 ORDER BY depth, seq", [Id(root)], |row| id(row, "id"))?;
    let frames: Vec<Frame> = ids.into_iter().map(|id| frames::existing(connection, id)).collect::<Result<_, _>>()?;
    if let Some(running) = frames.iter().find(|frame| matches!(frame.state, FrameState::Running { .. })) {
        return Err(StoreError::Running(running.id).into());
    }
    // A group has no agent: its first member has the options that were given for all.
    let Some(top) = frames.iter().find(|frame| !frame.task.is_group()) else { return Ok(0) };
    let mut changed = 0;
    for frame in frames.iter().filter(|frame| frame.state != FrameState::Done) {
        let launch = frame.launch.clone().repaired(&top.launch, repair);
        // A mode that a person names replaces the mode to which the agent has changed.
        let names_mode = repair.permission_mode.is_some() && launch.permission_mode == repair.permission_mode;
        let mode = frame.situation.mode.as_ref().filter(|_| !names_mode);
        if launch == frame.launch && mode == frame.situation.mode.as_ref() {
            continue;
        }
        let situation = Situation { mode: mode.cloned(), ..frame.situation.clone() };
        connection.run(
            "UPDATE frames SET launch = ?2, situation = ?3 WHERE id = ?1",
            (Id(frame.id), launch_text(&launch)?, codec::json(&situation, &[])?),
        )?;
        let entry = LogEntry::Launch { from: Box::new(frame.launch.clone()), to: Box::new(launch) };
        events::append(connection, codec::now(), frame.id, &entry)?;
        changed += 1;
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::attempt::ending::Ending;
    use crate::core::chain::limits::NewLimits;
    use crate::core::steering::message::MessageSender;
    use crate::core::steering::origin::Origin;
    use crate::core::steering::stop_order::By;
    use crate::store::testing::{new, store};

    #[test]
    fn all_that_are_not_done_are_started_otherwise_and_none_that_runs() {
        let (_temp, store) = store();
        let root = store.start(store.root());
        let (_, child) = store.request_child(root, None, &new("child"), "child").unwrap();
        let repair = Repair { permission_mode: Some("plan".into()), ..Repair::default() };
        let limits = NewLimits { max_depth: Some(9), ..NewLimits::default() };
        let change = ChainChange { limits, launch: Some(repair.clone()), ..ChainChange::default() };
        let refused = store.change_chain(root.frame, change);
        assert!(matches!(refused, Err(StoreError::Running(running)) if running == root.frame), "{refused:?}");
        assert_ne!(store.chain_of(root.frame).unwrap().limits.max_depth, 9, "all of it or nothing");
        store.end(root, &Ending::Suspended);
        assert_eq!(store.change_chain(root.frame, repair.clone()).unwrap(), 2);
        for frame in [root.frame, child] {
            assert_eq!(store.frame(frame).unwrap().unwrap().launch.permission_mode.as_deref(), Some("plan"));
        }
        assert_eq!(store.change_chain(root.frame, repair.clone()).unwrap(), 0);
        assert!(
            store.events(root.frame, 0).unwrap().iter().any(|event| matches!(event.entry, LogEntry::Launch { .. }))
        );
    }

    #[test]
    fn an_instruction_that_is_refused_changes_nothing() {
        let (_temp, store) = store();
        let root = store.start(store.root());
        store.end(root, &Ending::Suspended);
        let limits = NewLimits { max_depth: Some(9), ..NewLimits::default() };
        let launch = Some(Repair { model: Some("haiku".into()), ..Repair::default() });
        let sender = MessageSender { by: By::Person, origin: Origin::default() };
        let instruction = Some(Instruction { text: "go on".into(), sender });
        let before = store.frame(root.frame).unwrap();
        let refused =
            store.change_chain(root.frame, ChainChange { limits, launch, instruction, afresh: true, name: None });
        assert!(matches!(refused, Err(StoreError::Illegal(_))), "{refused:?}");
        assert_eq!(store.frame(root.frame).unwrap(), before);
        assert_ne!(store.chain_of(root.frame).unwrap().limits.max_depth, 9);
    }

    #[test]
    fn a_person_who_names_a_mode_ends_the_one_that_an_agent_has_gone_over_to() {
        let (_temp, store) = store();
        let frame = store.root();
        let situation = r#"{"mode":"plan","rules":["Bash(touch:*)"]}"#;
        store.execute("UPDATE frames SET situation = ?1", [situation]);
        let situation = || store.frame(frame).unwrap().unwrap().situation;
        assert_eq!(store.change_chain(frame, Repair { model: Some("opus".into()), ..Repair::default() }).unwrap(), 1);
        assert_eq!(situation().mode.as_deref(), Some("plan"));
        let edits = Repair { permission_mode: Some("acceptEdits".into()), ..Repair::default() };
        assert_eq!(store.change_chain(frame, edits.clone()).unwrap(), 1);
        assert_eq!((situation().mode, situation().rules.len()), (None, 1));
        assert_eq!(store.change_chain(frame, edits.clone()).unwrap(), 0);
    }
}
