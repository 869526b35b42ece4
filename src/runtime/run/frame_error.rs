//! What can go wrong with a frame, by the help that it needs.

use crate::claude::installation::program::ProgramError;
use crate::core::agent::worktree::Worktree;
use crate::core::attempt::decision::Decision;
use crate::core::attempt::ending::Objection;
use crate::core::attempt::meaning::Meaning;
use crate::core::chain::state::{Ended, FailureKind};
use crate::core::id::FrameId;
use crate::runtime::RuntimeError;
use crate::runtime::worktrees::worktree::WorktreeError;

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
        /// What `claude` said, or what was found.
        said: String,
        /// The command that starts the chain again.
        anew: String,
    },
    /// The working directory does not exist.
    #[error("the working directory is gone: {}", .0.display())]
    NoWorkingDirectory(std::path::PathBuf),
    /// The worktree that was created for it does not exist.
    #[error("its worktree is gone: {}", .0.path.display())]
    WorktreeGone(Worktree),
    /// Its worktree could not be created.
    #[error(transparent)]
    NoWorktree(WorktreeError),
    /// Somebody stopped it, or it ran for too long.
    #[error("{0}")]
    Stopped(String),
    /// The attempt ended badly.
    #[error("{0}")]
    Ended(String),
}

impl FrameErrorKind {
    /// What went wrong with an attempt, if anything did. `anew`: the command that starts its chain again.
    pub(super) fn of<E>(decision: &Decision, anew: impl FnOnce() -> Result<String, E>) -> Result<Option<Self>, E> {
        let Some(said) = decision.error.clone() else { return Ok(None) };
        let was_stopped = matches!(&decision.frame, Ended::Fail(failure) if failure.kind == FailureKind::Stopped);
        Ok(Some(match decision.meaning {
            _ if was_stopped => Self::Stopped(said),
            Meaning::Refused { objection: Objection::Session, .. } => Self::NoConversation { said, anew: anew()? },
            Meaning::Refused { .. } => Self::Refused(said),
            _ => Self::Ended(said),
        }))
    }

    /// What is wrong with a frame whose attempt could not begin. Any error that concerns more than the frame comes back.
    /// `worktree`: the one that was created for it.
    pub(super) fn at_start(
        worktree: Option<Worktree>,
        error: RuntimeError,
        anew: impl FnOnce() -> Result<String, RuntimeError>,
    ) -> Result<Self, RuntimeError> {
        Ok(match error {
            RuntimeError::Program(error) => Self::Program(error),
            RuntimeError::NoWorkingDirectory { cwd, .. } => match worktree {
                Some(worktree) if !worktree.path.exists() => Self::WorktreeGone(worktree),
                _ => Self::NoWorkingDirectory(cwd),
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
    use crate::core::attempt::ending::Ending;
    use crate::core::attempt::facts::Facts;

    fn of(ending: Ending) -> Option<FrameErrorKind> {
        FrameErrorKind::of(&decide(&Facts::of(ending)), || Ok::<_, Infallible>("agent-cli spawn root.md".to_owned()))
            .unwrap()
    }

    #[test]
    fn a_refusal_is_distinguished_from_an_attempt_that_ended_badly() {
        let refused = |objection| of(Ending::Refused { why: "no".into(), objection });
        assert!(matches!(refused(Objection::Start), Some(FrameErrorKind::Refused(said)) if said == "no"));
        assert!(matches!(refused(Objection::Unknown), Some(FrameErrorKind::Refused(_))));
        assert!(
            matches!(refused(Objection::Session), Some(FrameErrorKind::NoConversation { anew, .. }) if anew.ends_with("root.md"))
        );
        assert!(
            matches!(of(Ending::Error("max turns".into())), Some(FrameErrorKind::Ended(said)) if said == "max turns")
        );
        assert!(of(Ending::Reply("Jan 1st".into())).is_none());
    }

    #[test]
    fn what_keeps_one_frame_from_starting_is_distinguished_from_what_ends_the_run() {
        let (there, gone) = (tempfile::tempdir().unwrap(), PathBuf::from("/nowhere/worktree"));
        let worktree = |path: &Path| Worktree {
            repository: "/srv/.git".into(),
            path: path.to_owned(),
            branch: "agent-cli/task".into(),
            base: "4f2c1a90".into(),
        };
        let at_start = |worktree, error| FrameErrorKind::at_start(worktree, error, || Ok("spawn root.md".to_owned()));
        let (frame, cwd) = (FrameId::random(), PathBuf::from("/nowhere"));
        let no_directory = |worktree| at_start(worktree, RuntimeError::NoWorkingDirectory { frame, cwd: cwd.clone() });
        assert!(matches!(no_directory(None), Ok(FrameErrorKind::NoWorkingDirectory(gone)) if gone == cwd));
        // Its subfolder is gone.
        let subfolder = no_directory(Some(worktree(there.path())));
        assert!(matches!(subfolder, Ok(FrameErrorKind::NoWorkingDirectory(gone)) if gone == cwd));
        assert!(matches!(no_directory(Some(worktree(&gone))), Ok(FrameErrorKind::WorktreeGone(it)) if it.path == gone));
        assert!(matches!(at_start(None, RuntimeError::NoCaller(frame)), Err(RuntimeError::NoCaller(_))));
    }
}
