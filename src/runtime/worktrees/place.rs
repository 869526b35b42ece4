//! Where an agent works: a path is text, and what it leads to may change between a check and an attempt.

use std::fs;
use std::path::{Path, PathBuf};

/// A recorded directory that leads elsewhere now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} leads to {} now, because {} is a link", recorded.display(), real.display(), link.display())]
pub(crate) struct Elsewhere {
    pub recorded: PathBuf,
    pub real: PathBuf,
    pub link: PathBuf,
}

/// Checks that a recorded directory, which had no links on its way when it was recorded, has none now. One that does not exist leads
/// nowhere.
///
/// # Errors
///
/// [`Elsewhere`] names the link.
pub(crate) fn unmoved(recorded: &Path) -> Result<(), Elsewhere> {
    let Ok(real) = fs::canonicalize(recorded) else { return Ok(()) };
    if real == recorded {
        return Ok(());
    }
    let mut above: Vec<&Path> = recorded.ancestors().collect();
    above.reverse();
    let link = above.into_iter().find(|path| path.is_symlink()).unwrap_or(recorded).to_owned();
    Err(Elsewhere { recorded: recorded.to_owned(), real, link })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_on_the_way_is_named() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("project/w/d")).unwrap();
        fs::create_dir_all(top.join("outside/d")).unwrap();
        let dir = top.join("project/w/d");
        assert_eq!(unmoved(&dir), Ok(()));
        fs::rename(top.join("project/w"), top.join("project/w2")).unwrap();
        assert_eq!(unmoved(&dir), Ok(()), "it is gone");
        symlink("../outside", top.join("project/w")).unwrap();
        let moved = unmoved(&dir).unwrap_err();
        assert_eq!((moved.link, moved.real), (top.join("project/w"), top.join("outside/d")));
    }
}
