//! Limits that hold for a whole tree, whatever starts what.

use serde::{Deserialize, Serialize};

/// How far a tree may grow. Fixed when its root is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Frames from the root down to the deepest, both counted.
    pub max_depth: u32,
    /// Frames in the tree.
    pub max_frames: u32,
}

/// Why a tree may not grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitReached {
    /// One more level would be too deep.
    #[error("the chain is {0} agents deep already, which is its limit")]
    Depth(u32),
    /// One more frame would be too many.
    #[error("the tree would have more than {0} agents, which is its limit")]
    Frames(u32),
}

impl Limits {
    /// Whether a tree of `frames` frames may have `more` of them at `depth`. Groups are not counted.
    ///
    /// # Errors
    ///
    /// The limit that forbids it.
    pub fn admit(self, depth: u32, frames: u32, more: u32) -> Result<(), LimitReached> {
        if depth > self.max_depth {
            return Err(LimitReached::Depth(self.max_depth));
        }
        if frames.saturating_add(more) > self.max_frames {
            return Err(LimitReached::Frames(self.max_frames));
        }
        Ok(())
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_depth: 64, max_frames: 256 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_grows_up_to_its_limits() {
        let limits = Limits { max_depth: 3, max_frames: 5 };
        assert_eq!(limits.admit(3, 4, 1), Ok(()));
        assert_eq!(limits.admit(4, 4, 1), Err(LimitReached::Depth(3)));
        assert_eq!(limits.admit(3, 5, 1), Err(LimitReached::Frames(5)));
        assert_eq!(limits.admit(3, 2, 4), Err(LimitReached::Frames(5)));
    }
}
