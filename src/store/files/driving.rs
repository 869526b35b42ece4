//! Marks of processes: that one drives a chain, so that commands which continue all chains skip it, that one shows questions to a
//! person, so that an answer may come soon, and that one continues every chain, so that people need not.
//!
//! A mark is a shared lock on a file. The system releases it when the process ends, for whatever reason. It grants no rights:
//! several commands may drive parts of one chain, and a lease decides who runs a frame.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::core::id::FrameId;
use crate::store::error::{Result, StoreError};
use crate::store::files::durable::{make_private, open_private};
use crate::store::files::state_dir::StateDir;

/// How often to try to set or check a mark, and the pause between tries.
const TRIES: u32 = 200;
const MOMENT: Duration = Duration::from_millis(5);

/// The mark of a process that drives a chain.
#[derive(Debug)]
pub(crate) struct Driving {
    _locked: File,
}

impl Driving {
    /// Marks the chain of `root` as driven until the result is dropped.
    pub(crate) fn mark(dir: &StateDir, root: FrameId) -> Result<Self> {
        dir.frame_dir(root).map_err(|error| StoreError::io(&dir.frame_path(root), error))?;
        Ok(Self { _locked: lock(&dir.driving(root))? })
    }

    /// Whether a process drives the chain of `root`. Creates nothing.
    pub(crate) fn is_marked(dir: &StateDir, root: FrameId) -> Result<bool> {
        is_locked(&dir.driving(root))
    }
}

/// The mark of a process that shows questions to a person.
#[derive(Debug)]
pub(crate) struct Attending {
    _locked: File,
}

impl Attending {
    /// Marks that a person is there until the result is dropped.
    pub(crate) fn mark(dir: &StateDir) -> Result<Self> {
        Ok(Self { _locked: lock(&dir.attending())? })
    }

    /// Whether a process shows questions to a person. Creates nothing.
    pub(crate) fn is_marked(dir: &StateDir) -> Result<bool> {
        is_locked(&dir.attending())
    }
}

/// The mark of a session that is told how a chain goes on.
#[derive(Debug)]
pub(crate) struct Followed {
    _locked: File,
}

impl Followed {
    /// Marks the chain of `root` as followed until the result is dropped.
    pub(crate) fn mark(dir: &StateDir, root: FrameId) -> Result<Self> {
        Ok(Self { _locked: lock(&dir.followed(root))? })
    }

    /// Whether a session follows the chain of `root`. Creates nothing.
    pub(crate) fn is_marked(dir: &StateDir, root: FrameId) -> Result<bool> {
        is_locked(&dir.followed(root))
    }
}

/// The mark of a process that serves the page in a browser.
#[derive(Debug)]
pub(crate) struct Serving {
    _locked: File,
}

impl Serving {
    /// Marks that the page is at `address` until the result is dropped. The address lets nobody in.
    pub(crate) fn mark(dir: &StateDir, address: &str) -> Result<Self> {
        let (folder, file) = (dir.page(), dir.page().join(ADDRESS));
        let broken = |error| StoreError::io(&file, error);
        if !folder.exists() {
            make_private(&folder).map_err(broken)?;
        }
        let locked = lock(&file)?;
        std::fs::write(&file, address).map_err(broken)?;
        Ok(Self { _locked: locked })
    }

    /// Where the page is; `None`: no process serves it. Creates nothing.
    pub(crate) fn address(dir: &StateDir) -> Result<Option<String>> {
        let file = dir.page().join(ADDRESS);
        let read = || std::fs::read_to_string(&file).map_err(|error| StoreError::io(&file, error));
        if is_locked(&file)? {
            read().map(|address| Some(address).filter(|address| !address.is_empty()))
        } else {
            Ok(None)
        }
    }
}

const ADDRESS: &str = "address";

/// The mark of a process that continues every chain as soon as it can continue.
#[derive(Debug)]
pub(crate) struct Watching {
    _locked: File,
}

impl Watching {
    /// Marks the chains as watched until the result is dropped.
    pub(crate) fn mark(dir: &StateDir) -> Result<Self> {
        Ok(Self { _locked: lock(&dir.watching())? })
    }

    /// Whether a process watches the chains. Creates nothing.
    pub(crate) fn is_marked(dir: &StateDir) -> Result<bool> {
        is_locked(&dir.watching())
    }
}

fn lock(path: &Path) -> Result<File> {
    let lock = || {
        let file = open_private(path)?;
        // Only processes that check the mark prevent the lock, for a moment, and they count it as a mark, too. The tries are limited
        // in case the system suspends one in that moment.
        for _ in 0..TRIES {
            match file.try_lock_shared() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => thread::sleep(MOMENT),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(file)
    };
    lock().map_err(|error: io::Error| StoreError::io(path, error))
}

fn is_locked(path: &Path) -> Result<bool> {
    let broken = |error| StoreError::io(path, error);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(broken(error)),
    };
    match file.try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(broken(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_was_suspended_while_it_looked_keeps_nobody_from_driving() {
        let temp = tempfile::tempdir().unwrap();
        let dir = StateDir::new(temp.path()).unwrap();
        let root = FrameId::random();
        drop(Driving::mark(&dir, root).unwrap());
        let looking = File::open(dir.driving(root)).unwrap();
        looking.try_lock().unwrap();
        let mark = Driving::mark(&dir, root).unwrap();
        assert!(Driving::is_marked(&dir, root).unwrap());
        drop(mark);
    }

    #[test]
    fn that_it_cannot_be_known_is_not_that_nobody_drives_it() {
        let temp = tempfile::tempdir().unwrap();
        let dir = StateDir::new(temp.path()).unwrap();
        let root = FrameId::random();
        std::fs::create_dir_all(dir.frames()).unwrap();
        std::fs::write(dir.frame_path(root), "not a directory").unwrap();
        assert!(Driving::is_marked(&dir, root).is_err());
    }

    #[test]
    fn a_chain_is_driven_as_long_as_one_of_several_processes_drives_it() {
        let temp = tempfile::tempdir().unwrap();
        let dir = StateDir::new(temp.path()).unwrap();
        let root = FrameId::random();
        assert!(!Driving::is_marked(&dir, root).unwrap());
        let first = Driving::mark(&dir, root).unwrap();
        let second = Driving::mark(&dir, root).unwrap();
        drop(first);
        assert!(Driving::is_marked(&dir, root).unwrap());
        drop(second);
        assert!(!Driving::is_marked(&dir, root).unwrap());
    }
}
