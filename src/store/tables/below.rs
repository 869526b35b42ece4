//! A frame and all frames below it, in SQL.

use crate::core::id::FrameId;

/// `below`: the ids of a frame and of all below it. `UNION` ends it even where a damaged tree has a cycle.
macro_rules! below {
    ($query:literal) => {
        concat!(
            "WITH RECURSIVE below (id) AS (VALUES (?1) UNION
               SELECT child.id FROM below CROSS JOIN frames AS child ON child.parent = below.id) ",
            $query
        )
    };
}
pub(crate) use below;

/// Which frames something is read of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    One(FrameId),
    /// A frame and all frames below it.
    Below(FrameId),
}

impl Extent {
    /// The frame, or the top of several.
    pub(crate) fn top(self) -> FrameId {
        match self {
            Self::One(frame) | Self::Below(frame) => frame,
        }
    }
}

impl From<FrameId> for Extent {
    fn from(frame: FrameId) -> Self {
        Self::One(frame)
    }
}
