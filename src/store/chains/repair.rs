//! Changing how the agents of a chain are started.

use serde_json::json;

use crate::core::agent::repair::Repair;
use crate::core::agent::situation::Situation;
use crate::core::chain::frame::Frame;
use crate::core::chain::state::FrameState;
use crate::core::id::FrameId;
use crate::failpoint::Step;
use crate::store::database::codec::{self, Id, id};
use crate::store::database::store::Store;
use crate::store::error::{Result, StoreError};
use crate::store::tables::events;
use crate::store::tables::frames::{self, launch_text};

impl Store {
    /// Changes the launch options of all agents of the tree of `root` that are not done and have what its first agent has.
    /// Returns how many there were.
    ///
    /// # Errors
    ///
    /// The frame does not exist, one of the tree runs, or the database cannot be written.
    pub fn repair(&self, root: FrameId, repair: &Repair) -> Result<usize> {
        self.write(Step::ChangeLaunch, |connection| {
            let ids = connection
                .prepare_cached("SELECT id FROM frames WHERE root = ?1 ORDER BY depth, seq")?
                .query_map([Id(root)], |row| id(row, "id"))?
                .collect::<rusqlite::Result<Vec<FrameId>>>()?;
            let frames: Vec<Frame> =
                ids.into_iter().map(|id| frames::existing(connection, id)).collect::<std::result::Result<_, _>>()?;
            if let Some(running) = frames.iter().find(|frame| matches!(frame.state, FrameState::Running { .. })) {
                return Err(StoreError::Running(running.id).into());
            }
            // A group has no agent of its own: its first member has what was given for all.
            let Some(top) = frames.iter().find(|frame| !frame.task.is_group()) else { return Ok(0) };
            let mut changed = 0;
            for frame in frames.iter().filter(|frame| frame.state != FrameState::Done) {
                let launch = frame.launch.clone().repaired(&top.launch, repair);
                // A person who names a mode means that one, and not the one that the agent has gone over to.
                let names_mode = repair.permission_mode.is_some() && launch.permission_mode == repair.permission_mode;
                let mode = frame.situation.mode.as_ref().filter(|_| !names_mode);
                if launch == frame.launch && mode == frame.situation.mode.as_ref() {
                    continue;
                }
                let situation = Situation { mode: mode.cloned(), ..frame.situation.clone() };
                connection.prepare_cached("UPDATE frames SET launch = ?2, situation = ?3 WHERE id = ?1")?.execute((
                    Id(frame.id),
                    launch_text(&launch)?,
                    codec::json(&situation, &[])?,
                ))?;
                let detail = json!({"from": frame.launch, "to": launch});
                events::append(connection, codec::now(), frame.id, "launch", &detail)?;
                changed += 1;
            }
            Ok(changed)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::attempt::ending::Ending;
    use crate::store::testing::{new, store};

    #[test]
    fn all_that_are_not_done_are_started_otherwise_and_none_that_runs() {
        let (_temp, store) = store();
        let root = store.start(store.root());
        let (_, child) = store.request_child(root, None, &new("child"), "child").unwrap();
        let repair = Repair { permission_mode: Some("plan".into()), ..Repair::default() };
        let refused = store.repair(root.frame, &repair);
        assert!(matches!(refused, Err(StoreError::Running(running)) if running == root.frame), "{refused:?}");
        store.end(root, &Ending::Suspended);
        assert_eq!(store.repair(root.frame, &repair).unwrap(), 2);
        for frame in [root.frame, child] {
            assert_eq!(store.frame(frame).unwrap().unwrap().launch.permission_mode.as_deref(), Some("plan"));
        }
        assert_eq!(store.repair(root.frame, &repair).unwrap(), 0);
        assert!(store.events(root.frame, 0).unwrap().iter().any(|event| event.kind == "launch"));
    }

    #[test]
    fn a_person_who_names_a_mode_ends_the_one_that_an_agent_has_gone_over_to() {
        let (_temp, store) = store();
        let frame = store.root();
        let situation = r#"{"mode":"plan","rules":["Bash(touch:*)"]}"#;
        store.connection.execute("UPDATE frames SET situation = ?1", [situation]).unwrap();
        let situation = || store.frame(frame).unwrap().unwrap().situation;
        assert_eq!(store.repair(frame, &Repair { model: Some("opus".into()), ..Repair::default() }).unwrap(), 1);
        assert_eq!(situation().mode.as_deref(), Some("plan"));
        let edits = Repair { permission_mode: Some("acceptEdits".into()), ..Repair::default() };
        assert_eq!(store.repair(frame, &edits).unwrap(), 1);
        assert_eq!((situation().mode, situation().rules.len()), (None, 1));
        assert_eq!(store.repair(frame, &edits).unwrap(), 0);
    }
}
