//! Frames as rows: creating them, reading them, and the one place that changes their state.

use std::path::Path;

use jiff::Timestamp;
use rusqlite::params;

use crate::core::agent::launch::Launch;
use crate::core::chain::frame::{Frame, Task};
use crate::core::chain::frame_state::{FrameEvent, FrameState};
use crate::core::events::log_entry::LogEntry;
use crate::core::id::{AttemptId, FrameId, SessionId};
use crate::core::text::escape::shortened;
use crate::store::error::StoreError;
use crate::store::records::NewFrame;
use crate::store::sql::database::codec::{self, At, Id, from_json, id, maybe_id, maybe_json, path, path_text, time};
use crate::store::sql::engine::{Connection, Row, TxResult};
use crate::store::sql::tables::{chains, events};

/// The position of a new frame in its tree, and its first state.
#[derive(Clone)]
pub(crate) struct FramePosition {
    pub(crate) parent: Option<FrameId>,
    pub(crate) root: FrameId,
    pub(crate) depth: u32,
    pub(crate) state: FrameState,
    pub(crate) checkpoint: Option<AttemptId>,
}

impl FramePosition {
    /// The position of a frame that is ready: below `parent`, or at the top of a separate chain.
    pub(crate) fn new(frame: FrameId, parent: Option<&Frame>) -> Self {
        Self {
            parent: parent.map(|parent| parent.id),
            root: parent.map_or(frame, |parent| parent.root),
            depth: parent.map_or(0, |parent| parent.depth) + 1,
            state: FrameState::Ready,
            checkpoint: None,
        }
    }
}

pub(crate) fn frame(connection: &Connection, id: FrameId) -> TxResult<Option<Frame>> {
    load(connection, id)
}

/// Records a frame.
pub(crate) fn insert(connection: &Connection, now: At, new: &NewFrame, place: &FramePosition) -> TxResult<()> {
    let task_paths: &[&Path] = match &new.task {
        Task::File(path) => &[path],
        Task::Prompt(_) | Task::Group(_) => &[],
    };
    let title = shortened(&new.task.title());
    let session = place.checkpoint.map_or_else(|| new.id.into(), |_| SessionId::random());
    connection.run(
        "INSERT INTO frames (id, parent, root, depth, state, since, created, checkpoint, title, cwd, launch, task,
             baseline, started_from, session, pushed)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        params![
            Id(new.id),
            place.parent.map(Id),
            Id(place.root),
            place.depth,
            codec::json(&place.state, &[])?,
            now,
            place.checkpoint.map(Id),
            &title,
            path_text(&new.cwd)?,
            launch_text(&new.launch)?,
            codec::json(&new.task, task_paths)?,
            new.baseline.map(|baseline| codec::json(&baseline, &[])).transpose()?,
            new.started_from.map(Id),
            Id(session),
            new.pushed.as_ref().map(|pushed| codec::json(pushed, &[])).transpose()?,
        ],
    )?;
    let (parent, to, checkpoint) = (place.parent, place.state.clone(), place.checkpoint);
    events::append(connection, now, new.id, &LogEntry::Created { parent, title, to, checkpoint })
}

/// One frame.
pub(crate) fn load(connection: &Connection, frame: FrameId) -> TxResult<Option<Frame>> {
    connection.read_first("SELECT * FROM frames WHERE id = ?1", [Id(frame)], from_row)
}

/// One frame that must exist.
pub(crate) fn existing(connection: &Connection, frame: FrameId) -> TxResult<Frame> {
    Ok(load(connection, frame)?.ok_or(StoreError::UnknownFrame(frame))?)
}

/// A frame's reply.
pub(crate) fn reply(connection: &Connection, frame: FrameId) -> TxResult<Option<String>> {
    connection.read_first("SELECT reply FROM replies WHERE frame = ?1", [Id(frame)], |row| row.get(0))
}

/// Records a frame's reply, or the text that its parent gets instead.
pub(crate) fn set_reply(connection: &Connection, frame: FrameId, reply: &str) -> TxResult<()> {
    connection.run(
        "INSERT INTO replies (frame, reply) VALUES (?1, ?2)
             ON CONFLICT (frame) DO UPDATE SET reply = excluded.reply",
        (Id(frame), reply),
    )
}

/// Moves a frame to the state after `event`. Nothing else changes a state.
///
/// `since` is for a frame that returns to its former state: it counts as having been in it all the time.
pub(crate) fn advance(
    connection: &Connection,
    frame: &Frame,
    event: FrameEvent,
    since: Timestamp,
) -> TxResult<FrameState> {
    let state = frame.state.clone().after(event)?;
    connection.run(
        "UPDATE frames SET state = ?2, since = ?3 WHERE id = ?1",
        (Id(frame.id), codec::json(&state, &[])?, At(since)),
    )?;
    let goes_on = |state: &FrameState| state.is_pending() || matches!(state, FrameState::Running { .. });
    if goes_on(&state) && !goes_on(&frame.state) {
        chains::give_up_if_taken(connection, codec::now(), frame.root)?;
    }
    Ok(state)
}

/// Launch options as the database keeps them.
pub(crate) fn launch_text(launch: &Launch) -> TxResult<String> {
    let mut paths: Vec<&Path> = vec![&launch.claude];
    paths.extend(launch.config_dir.as_deref());
    paths.extend(launch.worktree.iter().flat_map(|worktree| [worktree.repository.as_path(), &worktree.path]));
    codec::json(launch, &paths)
}

pub(crate) fn from_row(row: &Row<'_>) -> rusqlite::Result<Frame> {
    Ok(Frame {
        id: id(row, "id")?,
        parent: maybe_id(row, "parent")?,
        root: id(row, "root")?,
        depth: row.get("depth")?,
        task: from_json(row, "task")?,
        cwd: path(row, "cwd")?,
        launch: from_json(row, "launch")?,
        state: from_json(row, "state")?,
        since: time(row, "since")?,
        session: id(row, "session")?,
        checkpoint: maybe_id(row, "checkpoint")?,
        suspended: row.get("suspended")?,
        situation: maybe_json(row, "situation")?.unwrap_or_default(),
        baseline: maybe_json(row, "baseline")?,
        trouble: maybe_json(row, "trouble")?,
        afresh: maybe_json(row, "afresh")?,
        pushed: maybe_json(row, "pushed")?,
        outcome: maybe_json(row, "outcome")?,
        created: time(row, "created")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::agent::child_worktree::Worktree;
    use crate::core::agent::child_worktree::pushed_worktree::Pushed;
    use crate::core::agent::claude_args::ClaudeArgs;
    use crate::core::agent::launch::OnPermission;
    use crate::core::agent::reply_schema::ReplySchema;
    use crate::core::agent::usage::Usage;
    use crate::core::chain::frame::Baseline;
    use crate::core::chain::limits::Limits;
    use crate::store::records::NewChain;
    use crate::store::testing::{new, store};
    use std::path::PathBuf;

    #[test]
    fn a_frame_is_read_back_as_it_was_made() {
        let (_temp, store) = store();
        let wanted = NewFrame {
            id: FrameId::random(),
            task: Task::File(PathBuf::from("/srv/ins 1.md")),
            cwd: PathBuf::from("/srv/ü"),
            launch: Launch {
                claude: PathBuf::from("/bin/claude"),
                model: Some("opus".into()),
                permission_mode: Some("plan".into()),
                args: ClaudeArgs::from_recorded(&["--effort=low"]),
                no_hooks: false,
                no_stale_check: false,
                native_questions: true,
                background_grace: Some(90),
                questions_expire: Some(3_600),
                questions_per_hour: Some(7),
                questions_dir: Some("/srv/questions".into()),
                timeout: Some(600),
                schema: ReplySchema::from_text(r#"{"type": "object", "required": ["b", "a"]}"#).ok(),
                on_permission: OnPermission::Ask,
                native_agents: Some(2),
                path: Some("/bin".into()),
                config_dir: Some(PathBuf::from("/home/me/.claude")),
                environment: [("TZ".to_owned(), "UTC".to_owned())].into(),
                worktree: Some(Worktree {
                    remote: None,
                    repository: PathBuf::from("/srv/r/.git"),
                    path: PathBuf::from("/srv/ü"),
                    branch: "agent-cli/ins-1".into(),
                    base: "c0ffee".into(),
                }),
            },
            limits: Limits {
                max_depth: 3,
                max_agents: 4,
                max_parallel: 2,
                max_budget_usd: Some(1.5),
                ..Limits::default()
            },
            baseline: Some(Baseline {
                session: SessionId::random(),
                frame: Some(FrameId::random()),
                checkpoint: Some(AttemptId::random()),
                cost_usd: 0.25,
                usage: Some(Usage { input_tokens: 7, ..Usage::default() }),
            }),
            started_from: None,
            name: None,
            on: None,
            pushed: Some(Pushed::default().failed("no network")),
        };
        let id = store.create_root(&wanted).unwrap();
        let frame = store.frame(id).unwrap().unwrap();
        let (task, baseline) = (frame.task, frame.baseline);
        let read = NewFrame {
            id,
            task,
            cwd: frame.cwd,
            launch: frame.launch,
            limits: store.chain_of(frame.id).unwrap().limits,
            baseline,
            started_from: None,
            name: None,
            on: None,
            pushed: frame.pushed,
        };
        assert_eq!(read, wanted);
        assert_eq!((frame.id, frame.parent, frame.root, frame.depth), (id, None, id, 1));
        assert_eq!((frame.state, frame.checkpoint, frame.trouble), (FrameState::Ready, None, None));
        assert_eq!(frame.since, frame.created);
        assert_eq!(store.frame(FrameId::random()).unwrap(), None);
        assert_eq!(store.replies(id).unwrap().reply, None);
    }

    #[test]
    fn an_adopted_session_is_a_frame_that_knows_what_it_waits_for() {
        let (_temp, store) = store();
        let session = SessionId::random();
        let id = store.create_root(NewChain::Adopted(&new("theirs"), session)).unwrap();
        assert_eq!(SessionId::from(id), session);
        let frame = store.frame(id).unwrap().unwrap();
        assert_eq!((frame.checkpoint, frame.state.name()), (Some(AttemptId::from(id)), "waiting"));
        assert_eq!((frame.session == session, frame.is_adopted()), (false, true));
        assert_eq!(frame.continues().map(|kept| kept.session), Some(session));
        assert!(store.create_root(NewChain::Adopted(&new("theirs"), session)).is_err());
    }

    #[test]
    fn what_no_version_of_the_program_writes_is_damage() {
        let (_temp, store) = store();
        let id = store.root();
        store.execute("UPDATE frames SET state = '{\"state\": \"asleep\"}'", []);
        assert!(matches!(store.frame(id), Err(StoreError::Damaged { .. })));
    }
}
