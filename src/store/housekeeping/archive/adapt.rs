//! Adapts the rows of an archive to this machine, and lists what they would run.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::core::agent::launch::Launch;
use crate::core::housekeeping::archive::ArchiveRow;
use crate::core::housekeeping::inventory::{AllowedCall, AwaitedCommand, Inventory, Start};
use crate::core::housekeeping::relocation::Relocation;
use crate::core::id::{AttemptId, FrameId, SessionId};
use crate::core::requests::proposed_plan::{Permit, PlanDecision, permit};
use crate::core::requests::request::RequestKind;
use crate::core::requests::request_state::RequestState;
use crate::store::error::{Result, StoreError};
use crate::store::files::state_dir::StateDir;
use crate::store::housekeeping::archive::unpack::Unpacked;

/// This environment, which replaces a chain's former one: an archive never names a program to run.
#[derive(Clone, Debug)]
pub(crate) struct Here {
    /// The `claude` of this machine.
    pub claude: PathBuf,
    /// `PATH` of this shell.
    pub path: Option<String>,
    /// The other variables of this shell that chains record. Another machine's could lead to an API that receives this
    /// user's key.
    pub environment: BTreeMap<String, String>,
}

/// A session that an agent of an archive would continue.
pub(crate) struct Brought {
    pub frame: FrameId,
    pub launch: Launch,
    pub cwd: PathBuf,
    pub session: SessionId,
    /// Its copy in the archive, if any.
    pub copy: Option<PathBuf>,
    /// The output of its agent.
    pub printed: PathBuf,
}

/// An archive that can be imported.
pub struct Adapted {
    pub(crate) unpacked: Unpacked,
    inventory: Inventory,
}

impl Unpacked {
    /// Adapts the chain to this environment.
    ///
    /// # Errors
    ///
    /// [`StoreError::Archive`] if its rows cannot be adapted.
    ///
    /// [`StoreError::Archive`]: crate::store::StoreError::Archive
    pub(crate) fn adapt(mut self, here: &Here) -> Result<Adapted> {
        for row in &mut self.rows {
            adapt(row, here, &self.relocation)?;
        }
        let inventory = inventory(self.root, &self.rows)?;
        Ok(Adapted { unpacked: self, inventory })
    }
}

impl Adapted {
    /// What the chain would run.
    #[must_use]
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// The sessions that its agents would continue.
    ///
    /// # Errors
    ///
    /// [`StoreError::Archive`]: a row lacks a value.
    pub(crate) fn sessions(&self, dir: &StateDir) -> Result<Vec<Brought>> {
        let mut sessions = Vec::new();
        for row in self.unpacked.rows.iter().filter(|row| row.table == "frames") {
            let text = |column: &str| row.values.get(column).and_then(Value::as_str);
            let needed = |column: &str| {
                text(column).ok_or_else(|| StoreError::damaged_archive("it has a row that lacks a value"))
            };
            let no_id = |_| StoreError::damaged_archive("it has a row without an id");
            let frame: FrameId = needed("id")?.parse().map_err(no_id)?;
            let session: SessionId = needed("session")?.parse().map_err(no_id)?;
            let copy: Option<AttemptId> = text("checkpoint").map(str::parse).transpose().map_err(no_id)?;
            let folder = self.unpacked.stage.folder(frame);
            let in_stage = |path: PathBuf| folder.join(path.file_name().unwrap_or_default());
            let is_adopted = copy == Some(AttemptId::from(frame));
            for session in [session].into_iter().chain(is_adopted.then_some(frame.into())) {
                sessions.push(Brought {
                    frame,
                    launch: parsed(needed("launch")?)?,
                    cwd: needed("cwd")?.into(),
                    session,
                    copy: copy.map(|copy| in_stage(dir.checkpoint(frame, copy))),
                    printed: in_stage(dir.output(frame)),
                });
            }
        }
        Ok(sessions)
    }
}

/// Replaces the values of a row by the values of this machine. A person is shown the same values that are written.
fn adapt(row: &mut ArchiveRow, here: &Here, relocation: &Relocation) -> Result<()> {
    // It was not started by a session of this machine.
    if row.table == "frames" {
        row.values.entry("started_from").and_modify(|session| *session = Value::Null);
    }
    for (column, value) in &mut row.values {
        let Value::String(text) = value else { continue };
        *text = match (row.table.as_str(), column.as_str()) {
            ("frames", "cwd") => relocation.path(Path::new(text)).to_string_lossy().into_owned(),
            ("frames", "task") => written(&relocation.task(parsed(text)?))?,
            ("frames", "launch") => {
                let Here { claude, path, environment } = here.clone();
                let launch: Launch = relocation.launch(parsed(text)?);
                // If that directory does not exist, sessions are in the directory of this user.
                let config_dir = launch.config_dir.filter(|dir| dir.is_dir());
                // No user of this machine has chosen a folder for its questions.
                written(&Launch { claude, path, environment, config_dir, questions_dir: None, ..launch })?
            }
            ("frames", "situation") => written(&relocation.situation(parsed(text)?))?,
            ("requests", "detail") => written(&relocation.request_kind(parsed(text)?))?,
            _ => continue,
        };
    }
    Ok(())
}

/// What the rows would run. It may only omit values that cannot run or allow anything.
fn inventory(root: FrameId, rows: &[ArchiveRow]) -> Result<Inventory> {
    let mut inventory = Inventory::new(root);
    let text = |row: &ArchiveRow, column: &str| row.values.get(column).and_then(Value::as_str).map(str::to_owned);
    let needed = |row: &ArchiveRow, column: &str| {
        text(row, column).ok_or_else(|| StoreError::damaged_archive("it has a row that lacks a value"))
    };
    let answers: HashMap<_, _> = rows
        .iter()
        .filter(|row| row.table == "answers")
        .filter_map(|row| Some((text(row, "question")?, text(row, "answer")?)))
        .collect();
    for row in rows {
        match row.table.as_str() {
            "frames" => {
                let id: FrameId = needed(row, "id")?
                    .parse()
                    .map_err(|_| StoreError::damaged_archive("it has a row without an id"))?;
                let (task, launch) = (parsed(&needed(row, "task")?)?, parsed(&needed(row, "launch")?)?);
                let baseline = text(row, "baseline").map(|text| parsed(&text)).transpose()?;
                let situation = text(row, "situation").map(|text| parsed(&text)).transpose()?.unwrap_or_default();
                let start = Start { cwd: needed(row, "cwd")?.into(), launch, situation };
                inventory.add(id, task, start, baseline);
            }
            "chains" if needed(row, "root")? != root.to_string() => {
                return Err(StoreError::damaged_archive("it has the limits of another chain"));
            }
            "chains" => inventory.limits = parsed(&needed(row, "limits")?)?,
            "requests" => {
                let state: RequestState = parsed(&needed(row, "state")?)?;
                if state == RequestState::Withdrawn {
                    continue;
                }
                let agent = needed(row, "frame")?
                    .parse()
                    .map_err(|_| StoreError::damaged_archive("it has a row without an id"))?;
                let answer = answers.get(&needed(row, "id")?).and_then(|answer| permit(answer));
                match parsed(&needed(row, "detail")?)? {
                    // The agent may still be in the mode that was chosen with the plan.
                    RequestKind::Plan(plan) => {
                        let decided = answers.get(&needed(row, "id")?).and_then(|answer| plan.decided(answer));
                        if let Some(PlanDecision::Approved { mode }) = decided {
                            let (tool, input) = ("ExitPlanMode".to_owned(), json!({"continues in the mode": mode}));
                            inventory.allowed_calls.push(AllowedCall { agent, tool, input });
                        }
                    }
                    _ if matches!(state, RequestState::Delivered { .. }) => {}
                    RequestKind::Wait(wait) if !state.is_resolved() => {
                        let commands = wait.commands().map(|of| of.command.to_owned());
                        inventory.commands.extend(commands.map(|command| AwaitedCommand { agent, command }));
                    }
                    RequestKind::Permission { tool, input, .. } if answer == Some(Permit::Allow) => {
                        inventory.allowed_calls.push(AllowedCall { agent, tool, input });
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    Ok(inventory)
}

fn parsed<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| StoreError::damaged_archive(&error.to_string()))
}

fn written<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| StoreError::damaged_archive(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::agent::situation::Situation;
    use crate::core::chain::limits::Limits;
    use crate::core::id::RequestId;

    fn row(table: &str, values: Value) -> ArchiveRow {
        let Value::Object(values) = values else { panic!("{values}") };
        ArchiveRow { table: table.to_owned(), values }
    }

    #[test]
    fn an_agent_has_around_it_what_it_had_at_its_new_place() {
        let situation = |shell: &str| Situation { shell: Some(shell.into()), ..Situation::default() };
        let here = Here { claude: "/bin/claude".into(), path: None, environment: BTreeMap::new() };
        let relocation = Relocation::new(vec!["/old=/new".parse().unwrap()]);
        let mut frame =
            row("frames", json!({"cwd": "/old/p", "situation": written(&situation("/old/p/sub")).unwrap()}));
        adapt(&mut frame, &here, &relocation).unwrap();
        assert_eq!(frame.values["cwd"], "/new/p");
        assert_eq!(frame.values["situation"], written(&situation("/new/p/sub")).unwrap());
    }

    #[test]
    fn of_the_calls_that_a_person_was_asked_about_those_are_named_that_were_allowed_and_not_made() {
        let root = FrameId::random();
        let asked = |command: &str, state: &RequestState, answer: Option<&str>| {
            let id = RequestId::random().to_string();
            let kind =
                RequestKind::Permission { tool: "Bash".into(), input: json!(command), reason: None, place: None };
            let (detail, state) = (written(&kind).unwrap(), written(state).unwrap());
            let request = json!({"id": id, "frame": root.to_string(), "state": state, "detail": detail});
            let answer = answer.map(|answer| row("answers", json!({"question": id, "answer": answer})));
            [row("requests", request)].into_iter().chain(answer)
        };
        let resolved = RequestState::Resolved { used_by: None };
        let rows: Vec<ArchiveRow> = asked("allowed", &resolved, Some("allow"))
            .chain(asked("denied", &resolved, Some("deny: not this")))
            .chain(asked("open", &RequestState::Open, None))
            .chain(asked("withdrawn", &RequestState::Withdrawn, Some("allow")))
            .collect();
        let calls: Vec<Value> =
            inventory(root, &rows).unwrap().allowed_calls.into_iter().map(|call| call.input).collect();
        assert_eq!(calls, ["allowed"]);
    }

    #[test]
    fn the_limits_are_those_of_the_chain() {
        let root = FrameId::random();
        let limits = |of: FrameId| {
            row("chains", json!({"root": of.to_string(), "limits": written(&Limits::default()).unwrap()}))
        };
        assert!(inventory(root, &[limits(root)]).is_ok());
        assert!(inventory(root, &[limits(FrameId::random())]).is_err());
    }
}
