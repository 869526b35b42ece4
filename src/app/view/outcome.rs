//! The views of the results of commands.

pub(crate) mod access;
pub(crate) mod host;

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;

use crate::core::agent::child_worktree::Held;
use crate::core::chain::frame_state::AgentStatus;
use crate::core::housekeeping::fsck_finding::FsckFinding;
use crate::core::housekeeping::inventory::Inventory;
use crate::core::id::{FrameId, MessageId, NotificationId, RequestId};
use crate::core::notifications::occasion::Occasion;
use crate::runtime::housekeeping::gc::Collected;
use crate::runtime::housekeeping::removal::RemovedChain;
use crate::store::ListedNotification;

/// What `answer` has recorded.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct AnsweredView {
    pub(crate) question: RequestId,
    pub(crate) chain: FrameId,
    /// The command that continues the chain.
    pub(crate) next: String,
    /// Whether the chain can continue now. Otherwise it waits for something else.
    pub(crate) can_continue: bool,
    /// Whether a process is running the chain, which then continues without that command.
    pub(crate) running_elsewhere: bool,
    /// What continues the chain without that command: a running `agent-cli watch`, or the service.
    pub(crate) continued_by: Option<Continuer>,
}

/// What continues chains without a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum Continuer {
    /// A running `agent-cli watch`.
    Watch,
    /// The service, which the system starts every minute.
    Service,
}

impl Continuer {
    /// Describes the continuer for people, in the case of a chain that can continue.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Watch => "a running agent-cli watch continues the chain",
            Self::Service => "the service continues the chain within a minute",
        }
    }
}

/// What `stop` or `pause` did.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct StoppedView {
    pub(crate) id: FrameId,
    /// Its current status.
    pub(crate) status: AgentStatus,
    pub(crate) outcome: StopOutcome,
    pub(crate) reason: Option<String>,
    /// The affected agents, the deepest first.
    pub(crate) agents: Vec<StoppedAgentView>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) enum StopOutcome {
    Stopped,
    Paused,
    /// It is still running, and will stop.
    Asked,
    /// It had replied before it could be stopped.
    Replied,
    /// It had ended before, or was paused already.
    Nothing,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct StoppedAgentView {
    pub(crate) id: FrameId,
    pub(crate) status: AgentStatus,
}

/// What `tell` has recorded.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ToldView {
    /// The message.
    pub(crate) id: MessageId,
    pub(crate) agent: FrameId,
    pub(crate) arrives: Arrival,
}

/// The name that `name` has given a chain.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct NamedView {
    pub(crate) chain: FrameId,
    /// Null: the chain has no name.
    pub(crate) name: Option<String>,
}

/// When an agent reads a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) enum Arrival {
    /// With the result of its next tool call.
    NextCall,
    /// When it continues.
    NextWakeUp,
}

/// What `init` or `uninit` did, or with `--dry-run` would do.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SetupView<'a> {
    /// The path of CLAUDE.md.
    pub(crate) file: &'a Path,
    pub(crate) change: Change,
    /// The file that already defines the words of the convention, so that nothing was added.
    pub(crate) defined_in: Option<&'a Path>,
    /// The task to try that was created, or removed.
    pub(crate) task: Option<&'a Path>,
    pub(crate) dry_run: bool,
}

/// What is done with CLAUDE.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) enum Change {
    /// The convention is added.
    Added,
    /// The convention is replaced by that of this version.
    Updated,
    /// The convention is removed.
    Removed,
    /// The file is removed: `init` created it, and it contains nothing else.
    Deleted,
    /// There is nothing to do.
    Unchanged,
}

/// What `rm` has removed.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RmView<'a> {
    pub(crate) removed: &'a RemovedChain,
}

/// What `gc` has removed, or with `--dry-run` would remove.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct GcView<'a> {
    /// The chains, the oldest first.
    chains: &'a [RemovedChain],
    /// Chains that are kept because one of their processes is alive.
    running: &'a [FrameId],
    /// Worktrees of agents that were removed.
    worktrees: &'a [PathBuf],
    /// Ignored files and folders that were removed with them.
    ignored: &'a [PathBuf],
    /// Worktrees that are kept, and their chains with them.
    held: &'a [Held],
    /// Unused files and directories.
    orphans: &'a [PathBuf],
    /// How many files interrupted attempts left behind, of the kinds that every attempt writes and removes.
    routine: usize,
    /// The size of the files of chains and orphans, in bytes.
    bytes: u64,
    /// By how many bytes the database has shrunk.
    database_bytes: u64,
    dry_run: bool,
}

impl<'a> GcView<'a> {
    pub(crate) fn new(collected: &'a Collected, dry_run: bool) -> Self {
        let Collected { trees, busy, worktrees, ignored, held, orphans, routine, bytes, database_bytes } = collected;
        let (routine, bytes, database_bytes) = (*routine, *bytes, *database_bytes);
        Self {
            chains: trees,
            running: busy,
            worktrees,
            ignored,
            held,
            orphans,
            routine,
            bytes,
            database_bytes,
            dry_run,
        }
    }
}

/// What `fsck` has found.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct FsckView {
    pub(crate) findings: Vec<FindingView>,
    pub(crate) repaired: Vec<String>,
}

impl FsckView {
    /// Whether nothing is wrong.
    pub(crate) fn is_clean(&self) -> bool {
        self.findings.iter().all(|finding| finding.note)
    }
}

/// A finding of `fsck`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct FindingView {
    #[serde(flatten)]
    finding: FsckFinding,
    pub(crate) text: String,
    /// Not a problem.
    pub(crate) note: bool,
    pub(crate) hint: Option<String>,
}

impl From<FsckFinding> for FindingView {
    fn from(finding: FsckFinding) -> Self {
        Self { text: finding.to_string(), note: finding.is_note(), hint: finding.hint(), finding }
    }
}

/// What `import` has done.
#[derive(Debug, Serialize)]
#[serde(untagged)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) enum ImportView<'a> {
    Imported {
        id: FrameId,
        /// The command that continues the chain.
        next: String,
    },
    /// Nothing: the chain is not trusted yet. This is what it would run.
    NotTrusted {
        #[serde(flatten)]
        inventory: &'a Inventory,
        /// The file's digest. With it, `--trust` imports this file and no other.
        digest: &'a str,
    },
}

/// What `move` has done.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct MoveView<'a> {
    /// How many chains were moved: 0 if they are there already.
    pub(crate) chains: u64,
    /// The server, without a password.
    pub(crate) store: &'a str,
}

/// A notification.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct NotificationView {
    id: NotificationId,
    pub(crate) event: String,
    pub(crate) chain: FrameId,
    agent: FrameId,
    question: Option<RequestId>,
    pub(crate) at: Timestamp,
    pub(crate) status: NotificationStatus,
    /// How many attempts to send it have failed.
    pub(crate) failures: u64,
    pub(crate) why: Option<String>,
    ended: Option<Timestamp>,
    /// Only while it is pending.
    pub(crate) next_try: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) enum NotificationStatus {
    Pending,
    Sent,
    /// It could not be sent, and is not retried.
    Failed,
    /// It was outdated before it could be sent.
    Outdated,
}

impl NotificationStatus {
    /// Parses the name in the records.
    fn new(name: &str) -> Self {
        match name {
            "sent" => Self::Sent,
            "failed" => Self::Failed,
            "outdated" => Self::Outdated,
            _ => Self::Pending,
        }
    }
}

impl From<ListedNotification> for NotificationView {
    fn from(listed: ListedNotification) -> Self {
        let status = NotificationStatus::new(&listed.status);
        let next_try = (status == NotificationStatus::Pending).then_some(listed.due);
        Self {
            id: listed.id,
            event: listed.event,
            chain: listed.root,
            agent: listed.frame,
            question: listed.request,
            at: listed.made,
            status,
            failures: listed.failures,
            why: listed.why,
            ended: listed.ended,
            next_try,
        }
    }
}

/// The result of `notifications --test`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct NotificationTestView {
    pub(crate) event: Occasion,
    pub(crate) sent: bool,
    pub(crate) why: Option<String>,
}

/// An error, as every command prints it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ErrorView {
    pub(crate) r#type: ErrorType,
    pub(crate) error: ErrorDetailView,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) enum ErrorType {
    Error,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ErrorDetailView {
    /// The meaning of the exit status, in a word.
    pub(crate) kind: &'static str,
    /// For people: it may change from version to version.
    pub(crate) message: String,
    /// Commands that help, in sentences for people.
    pub(crate) hints: Vec<String>,
    pub(crate) exit_status: u8,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::FrameId;

    #[test]
    fn a_notification_is_tried_again_only_while_it_is_pending() {
        for (name, is_tried_again) in [("pending", true), ("sent", false), ("failed", false), ("outdated", false)] {
            let listed = ListedNotification {
                id: NotificationId::random(),
                event: "done".into(),
                root: FrameId::random(),
                frame: FrameId::random(),
                request: None,
                made: Timestamp::UNIX_EPOCH,
                status: name.into(),
                failures: 0,
                why: None,
                ended: None,
                due: Timestamp::UNIX_EPOCH,
            };
            let view = serde_json::to_value(NotificationView::from(listed)).unwrap();
            assert_eq!((view["status"].as_str(), view["next_try"].is_string()), (Some(name), is_tried_again));
        }
    }
}
