//! The findings of `fsck`, in words.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use crate::core::id::{AttemptId, FrameId, RequestId, SessionId};

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FsckFinding {
    /// The agent that it concerns, if any.
    #[serde(rename = "agent")]
    pub frame: Option<FrameId>,
    #[serde(flatten)]
    pub kind: FindingKind,
}

/// The kinds of findings.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum FindingKind {
    /// SQLite found the database damaged.
    Database {
        /// Its message.
        said: String,
    },
    /// An index that this program creates is missing: queries that need it fail.
    MissingIndex {
        /// The index.
        name: String,
    },
    /// A table, or another part of the database, differs from what this program creates.
    OtherSchema {
        /// What.
        name: String,
    },
    /// A row refers to one that is missing.
    LostReference {
        /// The row's table.
        table: String,
        /// The table that it refers to.
        to: String,
    },
    /// A row contains something that this program does not write.
    Unreadable {
        /// Its table.
        table: &'static str,
        /// Its id.
        id: String,
        /// Why it cannot be read.
        why: String,
    },
    /// It is marked as running, but none of its attempts is.
    RunsWithoutAttempt,
    /// One of its attempts has no recorded end, but it is not marked as running.
    AttemptWithoutRunning {
        /// The attempt.
        attempt: AttemptId,
    },
    /// Its runner died. The next `resume` continues from what it left: not a problem.
    ToHarvest,
    /// `claude` could not record its last turn. The next attempt repeats it: not a problem of the records.
    Unrecorded,
    /// Its parent is missing.
    NoParent {
        /// The parent.
        parent: FrameId,
    },
    /// It is in another chain than its parent, or has a depth that does not follow from its parent's.
    Misplaced,
    /// Its parents form a circle.
    Circle,
    /// It is done, but its reply is missing.
    NoReply,
    /// It has a reply, but is not done.
    EarlyReply,
    /// The child that a request was made for is missing.
    NoChild {
        /// The request.
        request: RequestId,
        /// The child.
        child: FrameId,
    },
    /// Both the transcript of the checkpoint and its copy are missing: it cannot be resumed.
    NoCheckpoint {
        /// The checkpoint.
        session: SessionId,
    },
    /// The checkpoint has no complete copy, only the transcript in Claude Code's folder, which Claude Code cleans up.
    NoCopy {
        /// The checkpoint.
        session: SessionId,
    },
    /// The copy ends in the middle of a line.
    TornCopy {
        /// The checkpoint.
        session: SessionId,
    },
    /// The conversation that it continues from is missing its beginning: a fork would lack some of it.
    Broken {
        /// The checkpoint.
        session: SessionId,
    },
    /// The session in which its agent waits was continued outside agent-cli. The next `resume` makes that a separate session.
    WentOn {
        /// The checkpoint.
        session: SessionId,
    },
    /// Some of its running attempt's output is missing.
    ShortOutput {
        /// How long the output was when the attempt began.
        from: u64,
        /// How long it is.
        length: u64,
    },
    /// An unused file: a process died before it removed it.
    Orphan {
        /// The file.
        path: PathBuf,
    },
    /// A file or directory that other users can read, or that its owner cannot.
    Open {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
}

impl FsckFinding {
    /// Whether it is not a problem, but only announces what will happen.
    pub(crate) fn is_note(&self) -> bool {
        matches!(
            self.kind,
            FindingKind::ToHarvest | FindingKind::Unrecorded | FindingKind::WentOn { .. } | FindingKind::Orphan { .. }
        )
    }

    /// Whether the database alone shows it, at one moment. Files change while agents work.
    pub(crate) fn is_certain(&self) -> bool {
        matches!(
            self.kind,
            FindingKind::Database { .. }
                | FindingKind::MissingIndex { .. }
                | FindingKind::OtherSchema { .. }
                | FindingKind::LostReference { .. }
                | FindingKind::Unreadable { .. }
        )
    }

    /// What a person can do about it if this program cannot repair it.
    pub(crate) fn hint(&self) -> Option<String> {
        let short = self.frame.map(FrameId::short).unwrap_or_default();
        Some(match &self.kind {
            FindingKind::ToHarvest | FindingKind::WentOn { .. } => format!("agent-cli resume {short}"),
            FindingKind::Unrecorded => {
                "free some space on the disk of Claude Code's folder before the chain continues".to_owned()
            }
            FindingKind::NoCheckpoint { session } | FindingKind::Broken { session } => {
                format!("restore a backup of {session}.jsonl to Claude Code's folder, or start the chain again")
            }
            FindingKind::NoCopy { .. }
            | FindingKind::TornCopy { .. }
            | FindingKind::MissingIndex { .. }
            | FindingKind::Orphan { .. }
            | FindingKind::Open { .. } => "agent-cli fsck --repair".to_owned(),
            FindingKind::OtherSchema { .. } => {
                "continue its chains with the build that made it, or set AGENT_CLI_STATE_DIR to another directory"
                    .to_owned()
            }
            FindingKind::Database { .. }
            | FindingKind::LostReference { .. }
            | FindingKind::Unreadable { .. }
            | FindingKind::RunsWithoutAttempt
            | FindingKind::AttemptWithoutRunning { .. }
            | FindingKind::NoParent { .. }
            | FindingKind::Misplaced
            | FindingKind::Circle
            | FindingKind::NoReply
            | FindingKind::EarlyReply
            | FindingKind::NoChild { .. }
            | FindingKind::ShortOutput { .. } => return None,
        })
    }
}

impl fmt::Display for FsckFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(frame) = self.frame {
            write!(f, "{} ", frame.short())?;
        }
        match &self.kind {
            FindingKind::Database { said } => write!(f, "the database is damaged: {said}"),
            FindingKind::MissingIndex { name } => write!(f, "the database lacks the index {name}"),
            FindingKind::OtherSchema { name } => {
                write!(f, "{name} in the database is not what this version makes: another build has made it")
            }
            FindingKind::LostReference { table, to } => write!(f, "a row of {table} refers to a missing row of {to}"),
            FindingKind::Unreadable { table, id, why } => write!(f, "the row {id} of {table} cannot be read: {why}"),
            FindingKind::RunsWithoutAttempt => write!(f, "is marked as running, but none of its attempts is"),
            FindingKind::AttemptWithoutRunning { attempt } => {
                write!(f, "is not marked as running, but its attempt {} has not ended", attempt.short())
            }
            FindingKind::ToHarvest => {
                write!(f, "was abandoned by its runner: the next resume continues it, and nothing is lost")
            }
            FindingKind::Unrecorded => write!(
                f,
                "lost its last turn: claude could not record it, and its agent does it again when the chain continues"
            ),
            FindingKind::NoParent { parent } => write!(f, "has the parent {}, which does not exist", parent.short()),
            FindingKind::Misplaced => write!(f, "has a chain or depth that does not match its parent's"),
            FindingKind::Circle => write!(f, "is among its own ancestors"),
            FindingKind::NoReply => write!(f, "is done, but its reply is missing"),
            FindingKind::EarlyReply => write!(f, "has a reply, but is not done"),
            FindingKind::NoChild { request, child } => {
                write!(f, "has the request {} for {}, which does not exist", request.short(), child.short())
            }
            FindingKind::NoCheckpoint { session } => {
                write!(f, "cannot be resumed: session {session} has neither a transcript nor a copy")
            }
            FindingKind::NoCopy { session } => write!(f, "has no kept copy of session {}", session.short()),
            FindingKind::TornCopy { session } => write!(f, "has a torn copy of session {}", session.short()),
            FindingKind::Broken { session } => {
                let session = session.short();
                write!(
                    f,
                    "cannot be resumed: the conversation of session {session} does not reach back to its beginning"
                )
            }
            FindingKind::WentOn { session } => write!(
                f,
                "waits in session {}, which a person has continued: the next resume keeps that conversation as a \
                 separate session, and nothing is lost",
                session.short()
            ),
            FindingKind::ShortOutput { from, length } => {
                write!(
                    f,
                    "has a truncated output file: its attempt began at byte {from}, but the file has {length} bytes"
                )
            }
            FindingKind::Orphan { path } => write!(f, "nothing uses {} any more", path.display()),
            FindingKind::Open { path, mode } => write!(f, "{} has permissions {mode:03o}", path.display()),
        }
    }
}
