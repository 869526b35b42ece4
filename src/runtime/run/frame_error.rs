//! Errors of a frame, grouped by the help that they need.

use std::io::ErrorKind;

use crate::claude::installation::program::ProgramError;
use crate::claude::options::limits_left;
use crate::core::agent::child_worktree::Worktree;
use crate::core::agent::claude_args::ClaudeArgs;
use crate::core::attempt::decision::Decision;
use crate::core::attempt::ending::{Ending, Objection};
use crate::core::attempt::meaning::{Meaning, NO_SUMMARY};
use crate::core::chain::frame::Frame;
use crate::core::chain::frame_state::{Ended, FailureKind};
use crate::core::id::FrameId;
use crate::runtime::RuntimeError;
use crate::runtime::worktrees::directory::Elsewhere;
use crate::runtime::worktrees::snapshot::branch_of;
use crate::runtime::worktrees::worktree::WorktreeError;
use crate::store::Store;

/// What went wrong with a frame.
#[derive(Debug)]
pub(crate) struct FrameError {
    pub frame: FrameId,
    /// What went wrong.
    pub kind: FrameErrorKind,
}

/// The kinds of errors, each of which needs different help.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameErrorKind {
    /// There is no usable `claude`.
    #[error(transparent)]
    Program(ProgramError),
    /// `claude` refused before it did any work.
    #[error("{0}")]
    Refused(String),
    /// The conversation to continue is missing, or only its end is left.
    #[error("{said}")]
    NoConversation {
        /// What `claude` reported, or what was found.
        said: String,
        /// The command that starts the chain again.
        anew: String,
    },
    /// There is no room where Claude Code keeps its sessions: nothing was started.
    #[error("there is no room for a session in {}", .0.display())]
    NoRoom(std::path::PathBuf),
    /// The folder in which Claude Code keeps its sessions cannot be used: nothing was started.
    #[error("failed to use Claude Code's folder {}: {why}", folder.display())]
    ClaudeFolder { folder: std::path::PathBuf, why: String },
    /// There was no room when its agent had ended its turn.
    #[error("claude could not record what the agent did: there is no room in {}", .0.display())]
    Unrecorded(std::path::PathBuf),
    /// The working directory does not exist.
    #[error("the working directory does not exist: {}", .0.display())]
    NoWorkingDirectory(std::path::PathBuf),
    /// The working directory leads to another place than when it was recorded.
    #[error("the working directory has been replaced: {0}")]
    Moved(Elsewhere),
    /// Another conversation's session has its session id.
    #[error("its session has the id of another one, which is not replaced: {}", .0.display())]
    ForeignSession(std::path::PathBuf),
    /// The worktree that was created for it does not exist.
    #[error("its worktree does not exist: {}", .worktree.path.display())]
    WorktreeGone {
        worktree: Worktree,
        /// Whether its branch still exists.
        has_branch: bool,
    },
    /// What is in the place of the worktree that was created for it does not belong to its repository.
    #[error("{} is no longer a worktree of {}", .worktree.path.display(), .worktree.repository.display())]
    WorktreeReplaced {
        worktree: Worktree,
        /// Whether its branch still exists.
        has_branch: bool,
    },
    /// Its worktree could not be created.
    #[error(transparent)]
    NoWorktree(WorktreeError),
    /// It was stopped, or it ran for too long.
    #[error("{0}")]
    Stopped(String),
    /// It has reached a limit among its arguments.
    #[error("{said}")]
    Limit {
        said: String,
        /// The chain, and all arguments for it with a limit twice as high; `None`: the limit is the agent's own, which a person
        /// cannot change.
        raised: Option<RaisedLimit>,
    },
    /// The attempt ended badly.
    #[error("{0}")]
    Ended(String),
}

impl FrameErrorKind {
    /// The name of the kind, for programs.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Program(_) => "claude_not_usable",
            Self::Refused(_) => "claude_refused",
            Self::NoConversation { .. } => "no_conversation",
            Self::NoRoom(_) | Self::Unrecorded(_) => "no_room",
            Self::ClaudeFolder { .. } => "claude_folder",
            Self::NoWorkingDirectory(_) => "no_directory",
            Self::Moved(_) => "directory_replaced",
            Self::ForeignSession(_) => "foreign_session",
            Self::WorktreeGone { .. } | Self::WorktreeReplaced { .. } | Self::NoWorktree(_) => "no_worktree",
            Self::Stopped(_) => "stopped",
            Self::Limit { .. } => "limit",
            Self::Ended(_) => "error",
        }
    }
}

/// A limit of `claude` that a person can raise.
#[derive(Debug)]
pub(crate) struct RaisedLimit {
    /// What to resume.
    pub agent: FrameId,
    /// Whether the agent was to start afresh.
    pub is_for_summary: bool,
    pub args: ClaudeArgs,
}

impl FrameError {
    /// Adds arguments that would raise the limit that was reached, if this error is one.
    pub(crate) fn with_limit(self, store: &Store) -> Result<Self, RuntimeError> {
        let FrameErrorKind::Ended(said) = &self.kind else { return Ok(self) };
        let Some(raised) = limits_left::raised(said) else { return Ok(self) };
        let Some(frame) = store.frame(self.frame)? else { return Ok(self) };
        let Some(first) = first_agent(store, frame.root)? else { return Ok(self) };
        let own = frame.launch.args.behind(&first.launch.args);
        let is_its_own = own.is_none_or(|own| own.has(&raised.name));
        let said = said.clone();
        let args = first.launch.args.with_only(raised);
        let (agent, is_for_summary) = if said.starts_with(NO_SUMMARY) { (frame.id, true) } else { (frame.root, false) };
        let raised = (!is_its_own).then_some(RaisedLimit { agent, is_for_summary, args });
        Ok(Self { kind: FrameErrorKind::Limit { said, raised }, ..self })
    }
}

/// The first agent of a chain: its options are the chain's. A group has none.
pub(crate) fn first_agent(store: &Store, top: FrameId) -> Result<Option<Frame>, RuntimeError> {
    let ids = store.tree(top)?.parents_first().into_iter().map(|node| node.id).collect::<Vec<_>>();
    for id in ids {
        if let Some(frame) = store.frame(id)?.filter(|frame| !frame.task.is_group()) {
            return Ok(Some(frame));
        }
    }
    Ok(None)
}

impl FrameErrorKind {
    /// What went wrong with an attempt, if anything. `anew`: the command that starts its chain again.
    pub(super) fn from_decision<E>(
        decision: &Decision,
        anew: impl FnOnce() -> Result<String, E>,
    ) -> Result<Option<Self>, E> {
        let Some(said) = decision.error.clone() else { return Ok(None) };
        let was_stopped = matches!(&decision.frame, Ended::Fail(failure) if failure.kind == FailureKind::Stopped);
        Ok(Some(match decision.meaning {
            _ if was_stopped => Self::Stopped(said),
            Meaning::Ended(Ending::Refused { objection: Objection::Session, .. }) => {
                Self::NoConversation { said, anew: anew()? }
            }
            Meaning::Ended(Ending::Refused { .. }) => Self::Refused(said),
            _ => Self::Ended(said),
        }))
    }

    /// Whether its frame nevertheless waits for what its agent asked for.
    pub(crate) fn leaves_a_wait(&self) -> bool {
        matches!(self, Self::Unrecorded(_))
    }

    /// Describes what is wrong with a frame whose attempt could not begin. An error that concerns more than the frame is
    /// returned. `worktree`: the worktree that was created for the frame.
    pub(super) fn at_start(
        worktree: Option<Worktree>,
        error: RuntimeError,
        anew: impl FnOnce() -> Result<String, RuntimeError>,
    ) -> Result<Self, RuntimeError> {
        Ok(match error {
            RuntimeError::Program(error) => Self::Program(error),
            RuntimeError::NoWorkingDirectory { cwd, .. } => match worktree {
                Some(worktree) if !worktree.path.exists() => {
                    Self::WorktreeGone { has_branch: branch_of(&worktree).is_some(), worktree }
                }
                _ => Self::NoWorkingDirectory(cwd),
            },
            RuntimeError::ReplacedWorktree { worktree, .. } => {
                Self::WorktreeReplaced { has_branch: branch_of(&worktree).is_some(), worktree: *worktree }
            }
            RuntimeError::Moved { elsewhere, .. } => Self::Moved(elsewhere),
            RuntimeError::ForeignSession { transcript, .. } => Self::ForeignSession(transcript),
            RuntimeError::NoRoom { folder, .. } => Self::NoRoom(folder),
            RuntimeError::ClaudeFolder { folder, source, .. } => match source.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::NoRoom(folder),
                _ => Self::ClaudeFolder { folder, why: source.to_string() },
            },
            RuntimeError::Worktree(error) => Self::NoWorktree(error),
            error @ RuntimeError::BrokenConversation { .. } => {
                Self::NoConversation { said: error.to_string(), anew: anew()? }
            }
            error => return Err(error),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::core::attempt::decision::decide;
    use crate::core::attempt::facts::Facts;

    fn error_of(ending: Ending) -> Option<FrameErrorKind> {
        FrameErrorKind::from_decision(&decide(&Facts::from_ending(ending)), || {
            Ok::<_, Infallible>("agent-cli spawn root.md".to_owned())
        })
        .unwrap()
    }

    #[test]
    fn a_refusal_is_distinguished_from_an_attempt_that_ended_badly() {
        let refused = |objection| error_of(Ending::Refused { why: "no".into(), objection });
        assert!(matches!(refused(Objection::Start), Some(FrameErrorKind::Refused(said)) if said == "no"));
        assert!(matches!(refused(Objection::Unknown), Some(FrameErrorKind::Refused(_))));
        assert!(
            matches!(refused(Objection::Session), Some(FrameErrorKind::NoConversation { anew, .. }) if anew.ends_with("root.md"))
        );
        assert!(
            matches!(error_of(Ending::Error("max turns".into())), Some(FrameErrorKind::Ended(said)) if said == "max turns")
        );
        assert!(error_of(Ending::Reply("Jan 1st".into())).is_none());
    }

    #[test]
    fn a_limit_that_was_met_is_doubled() {
        let raised = |said: &str| limits_left::raised(said).map(|pair| (pair.name, pair.value.unwrap()));
        let of = |name: &str, value: &str| Some((name.to_owned(), value.to_owned()));
        assert_eq!(raised("Reached maximum number of turns (1)"), of("--max-turns", "2"));
        assert_eq!(raised("Reached maximum budget ($0.01)"), of("--max-budget-usd", "0.02"));
        for other in ["Reached maximum number of turns", "Reached maximum number of turns (x)", "max turns"] {
            assert_eq!(raised(other), None, "{other}");
        }
    }

    #[test]
    fn what_keeps_one_frame_from_starting_is_distinguished_from_what_ends_the_run() {
        let (there, gone) = (tempfile::tempdir().unwrap(), PathBuf::from("/nowhere/worktree"));
        let worktree = |path: &Path| Worktree {
            remote: None,
            repository: "/srv/.git".into(),
            path: path.to_owned(),
            branch: "agent-cli/task".into(),
            base: "4f2c1a90".into(),
        };
        let at_start = |worktree, error| FrameErrorKind::at_start(worktree, error, || Ok("spawn root.md".to_owned()));
        let (frame, cwd) = (FrameId::random(), PathBuf::from("/nowhere"));
        let no_directory = |worktree| at_start(worktree, RuntimeError::NoWorkingDirectory { frame, cwd: cwd.clone() });
        assert!(matches!(no_directory(None), Ok(FrameErrorKind::NoWorkingDirectory(gone)) if gone == cwd));
        // Its subfolder is missing.
        let subfolder = no_directory(Some(worktree(there.path())));
        assert!(matches!(subfolder, Ok(FrameErrorKind::NoWorkingDirectory(gone)) if gone == cwd));
        assert!(
            matches!(no_directory(Some(worktree(&gone))), Ok(FrameErrorKind::WorktreeGone { worktree, has_branch: false }) if worktree.path == gone)
        );
        assert!(matches!(at_start(None, RuntimeError::NoCaller(frame)), Err(RuntimeError::NoCaller(_))));
    }
}
