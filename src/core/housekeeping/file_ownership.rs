//! Who could replace a file that agent-cli trusts. One rule for the config file, whose commands it runs, and for the state
//! directory, whose records say what to run.

use std::path::{Path, PathBuf};

use crate::core::text::shell::quoted;

/// What is known about a file or a directory on the way to a trusted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) kind: PathKind,
    /// The id of its owner; `None`: this user, root, or a user who does not exist here.
    pub(crate) by_another: Option<u32>,
    pub(crate) mode: u32,
    /// Whether only this user is in its group.
    pub(crate) is_of_private_group: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathKind {
    /// A directory above the trusted path.
    Above,
    /// The trusted path, or something in it.
    Trusted,
    /// A link on the way.
    Link,
}

impl PathKind {
    /// Whether users can add files to it, but not replace those of others, as in /tmp.
    pub(crate) const fn is_shared(self, mode: u32) -> bool {
        matches!(self, Self::Above) && mode & STICKY != 0
    }
}

/// Why a path is not trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposed {
    /// The place on the way where other users can act.
    pub(crate) place: PathBuf,
    pub(crate) how: Exposure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exposure {
    /// It belongs to another user.
    BelongsToAnother,
    /// Other users can write to it.
    Writable,
    /// It is meant for all users, as /tmp is.
    Shared,
}

/// Only owners can remove what is in such a directory.
const STICKY: u32 = 0o1000;

impl Owned {
    /// How other users could replace the trusted path.
    pub(crate) fn exposure(&self) -> Option<Exposure> {
        const OTHERS: u32 = 0o002;
        const GROUP: u32 = 0o020;
        if self.by_another.is_some() {
            return Some(Exposure::BelongsToAnother);
        }
        let others = if self.is_of_private_group { OTHERS } else { OTHERS | GROUP };
        let may_change = self.kind != PathKind::Link && !self.kind.is_shared(self.mode);
        let how = if self.mode & STICKY == 0 { Exposure::Writable } else { Exposure::Shared };
        (may_change && self.mode & others != 0).then_some(how)
    }
}

impl Exposure {
    /// The words after the name of the place, or after "in a directory that".
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Self::BelongsToAnother => "belongs to another user",
            Self::Writable => "can be written by others",
            Self::Shared => "is shared by all users",
        }
    }
}

impl Exposed {
    pub(crate) fn in_words(&self) -> String {
        let place = self.place.display();
        match self.how {
            Exposure::BelongsToAnother => format!("{place} belongs to another user"),
            Exposure::Writable => format!("others can write {place}"),
            Exposure::Shared => format!("{place} is shared by all users"),
        }
    }

    /// The command that fixes it.
    pub(crate) fn remedy(&self) -> String {
        let place = word(&self.place);
        match self.how {
            Exposure::BelongsToAnother => format!("sudo chown -h \"$(id -un)\" {place}"),
            // Others need to write there.
            Exposure::Shared => format!("use a directory of your own instead of {place}"),
            Exposure::Writable => format!("chmod go-w {place}"),
        }
    }
}

/// A path as a shell takes it.
fn word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if text.chars().all(is_plain) { text } else { quoted(&text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_else_can_replace_what_is_trusted() {
        use Exposure::{BelongsToAnother, Shared, Writable};
        use PathKind::{Above, Link, Trusted};
        for (kind, by_another, mode, is_of_private_group, expected) in [
            (Trusted, None, 0o700, false, None),
            (Trusted, None, 0o755, false, None),
            (Trusted, None, 0o775, false, Some(Writable)),
            (Trusted, None, 0o775, true, None),
            (Trusted, None, 0o757, true, Some(Writable)),
            (Trusted, None, 0o1777, false, Some(Shared)),
            (Above, None, 0o1777, false, None),
            (Above, None, 0o777, false, Some(Writable)),
            (Above, None, 0o775, true, None),
            (Above, Some(7), 0o755, false, Some(BelongsToAnother)),
            (Above, Some(7), 0o1777, false, Some(BelongsToAnother)),
            (Trusted, Some(7), 0o600, true, Some(BelongsToAnother)),
            (Link, None, 0o777, false, None),
            (Link, Some(7), 0o777, false, Some(BelongsToAnother)),
        ] {
            let owned = Owned { kind, by_another, mode, is_of_private_group };
            assert_eq!(owned.exposure(), expected, "{owned:?}");
        }
    }

    #[test]
    fn what_helps_is_one_command() {
        let remedy = |path: &str, how| Exposed { place: path.into(), how }.remedy();
        assert_eq!(remedy("/a/b", Exposure::Writable), "chmod go-w /a/b");
        assert_eq!(remedy("/a b", Exposure::Writable), "chmod go-w '/a b'");
        assert_eq!(remedy("/a", Exposure::BelongsToAnother), "sudo chown -h \"$(id -un)\" /a");
    }
}
