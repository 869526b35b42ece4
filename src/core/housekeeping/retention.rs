//! Which finished trees may be removed.

use jiff::Timestamp;

use crate::core::chain::frame_state::FrameState;

/// What a person wants to remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Trees in which nothing has changed since this time.
    pub before: Timestamp,
    /// Also those that failed or were stopped, although they could be resumed.
    pub failed: bool,
    /// Also unfinished ones, unless one of their agents is running.
    pub open: bool,
}

/// The facts that decide whether a tree is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Age {
    /// The state of its root.
    pub root: FrameState,
    /// How many of its frames are ready, running or waiting.
    pub open: u64,
    /// When one of its frames last changed its state.
    pub latest: Timestamp,
    /// Whether a frame of another tree waits for one of its frames, or continues from one of their sessions.
    pub needed: bool,
}

impl Retention {
    /// Keeps nothing: a person has named the tree to remove.
    pub const NOTHING: Self = Self { before: Timestamp::MAX, failed: true, open: true };

    /// Whether the tree may be removed.
    ///
    /// A root that is done may have frames below it that still wait: no agent waits for them, but a person may resume each of
    /// them, so the tree is not finished.
    pub(crate) fn removes(&self, tree: &Age) -> bool {
        let finished = match tree.root {
            FrameState::Done => true,
            FrameState::Failed { .. } | FrameState::Cancelled => self.failed,
            FrameState::Ready | FrameState::Running { .. } | FrameState::Waiting { .. } | FrameState::Paused { .. } => {
                self.open
            }
        };
        finished && (self.open || tree.open == 0) && tree.latest <= self.before && !tree.needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::chain::frame_state::{Failure, FailureKind, Wait};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn done() -> Age {
        Age { root: FrameState::Done, open: 0, latest: at(5), needed: false }
    }

    const OLD: Retention = Retention { before: Timestamp::UNIX_EPOCH, failed: false, open: false };

    #[test]
    fn what_was_done_long_ago_goes() {
        let removes = |second, tree: &Age| Retention { before: at(second), ..OLD }.removes(tree);
        assert!(removes(5, &done()));
        assert!(!removes(4, &done()), "it changed after that");
        assert!(!removes(5, &Age { open: 1, ..done() }), "a frame below it is not over");
        assert!(!removes(5, &Age { needed: true, ..done() }), "another tree needs it");
    }

    #[test]
    fn what_can_be_carried_on_with_goes_only_when_it_is_asked_for() {
        let failure = Failure { kind: FailureKind::Error, message: "x".to_owned() };
        for root in [FrameState::Failed { failure }, FrameState::Cancelled] {
            let tree = Age { root, ..done() };
            assert!(!Retention { before: at(9), ..OLD }.removes(&tree));
            assert!(Retention { before: at(9), failed: true, ..OLD }.removes(&tree));
        }
    }

    #[test]
    fn what_is_not_over_stays() {
        let waiting = FrameState::Waiting { wait: Wait::AgentDecides };
        for root in [FrameState::Ready, FrameState::Running { waited: None }, waiting] {
            let tree = Age { root, open: 1, ..done() };
            assert!(!Retention { before: at(9), failed: true, ..OLD }.removes(&tree));
            assert!(Retention::NOTHING.removes(&tree));
            assert!(!Retention::NOTHING.removes(&Age { needed: true, ..tree }));
        }
    }
}
