//! Marks that show other processes that a process
//!
//! * runs a chain ([`Driving`]): commands that continue all chains skip it
//! * shows questions to a person ([`Attending`]): an answer may come soon
//! * follows a chain for a session ([`Followed`])
//! * asks its own person once the chain that it runs has paused ([`AsksLater`])
//! * serves the page ([`Serving`])
//! * continues every chain ([`Watching`]): people need not
//! * runs the commands that an agent waits for ([`Trying`]): no other process does
//!
//! Only the last is a right. Several processes may run parts of one chain; a lease decides which of them runs a frame.

use std::fs;

use crate::core::id::FrameId;
use crate::store::error::{Result, StoreError};
use crate::store::files::durable::make_private;
use crate::store::files::file_lock::{Mark, Right};
use crate::store::files::state_dir::StateDir;

/// The mark of a process that runs a chain.
#[derive(Debug)]
pub(crate) struct Driving {
    _mark: Mark,
}

impl Driving {
    /// Marks the chain of `root` as run by a process until the result is dropped.
    pub(crate) fn mark(dir: &StateDir, root: FrameId) -> Result<Self> {
        dir.frame_dir(root).map_err(|error| StoreError::io(&dir.frame_path(root), error))?;
        Ok(Self { _mark: Mark::set(&dir.driving(root))? })
    }

    /// Whether a process runs the chain of `root`. Creates nothing.
    pub(crate) fn is_marked(dir: &StateDir, root: FrameId) -> Result<bool> {
        Mark::is_set(&dir.driving(root))
    }
}

/// The mark of a process that shows questions to a person.
#[derive(Debug)]
pub(crate) struct Attending {
    _mark: Mark,
}

impl Attending {
    /// Marks that a person is present until the result is dropped.
    pub(crate) fn mark(dir: &StateDir) -> Result<Self> {
        Ok(Self { _mark: Mark::set(&dir.attending())? })
    }

    /// Whether a person sees the questions of the chain of `root`: a process shows the questions of all chains, and none
    /// would show those of this chain only later, or a session follows this chain. Creates nothing.
    pub(crate) fn is_marked(dir: &StateDir, root: FrameId) -> Result<bool> {
        let is_shown = Mark::is_set(&dir.attending())? && !Mark::is_set(&dir.asks_later(root))?;
        Ok(is_shown || Followed::is_marked(dir, root)?)
    }
}

/// The mark of a session that is told about the progress of a chain.
#[derive(Debug)]
pub(crate) struct Followed {
    _mark: Mark,
}

impl Followed {
    /// Marks the chain of `root` as followed until the result is dropped.
    pub(crate) fn mark(dir: &StateDir, root: FrameId) -> Result<Self> {
        dir.frame_dir(root).map_err(|error| StoreError::io(&dir.frame_path(root), error))?;
        Ok(Self { _mark: Mark::set(&dir.followed(root))? })
    }

    /// Whether a session follows the chain of `root`. Creates nothing.
    pub(crate) fn is_marked(dir: &StateDir, root: FrameId) -> Result<bool> {
        Mark::is_set(&dir.followed(root))
    }
}

/// The mark of a process that asks the person at its terminal, but not before the chain that it runs has paused.
#[derive(Debug)]
pub(crate) struct AsksLater {
    _mark: Mark,
}

impl AsksLater {
    /// Marks the chain of `root` as one whose person is asked later, until the result is dropped.
    pub(crate) fn mark(dir: &StateDir, root: FrameId) -> Result<Self> {
        dir.frame_dir(root).map_err(|error| StoreError::io(&dir.frame_path(root), error))?;
        Ok(Self { _mark: Mark::set(&dir.asks_later(root))? })
    }
}

/// The mark of a process that serves the page in a browser.
#[derive(Debug)]
pub(crate) struct Serving {
    _mark: Mark,
}

impl Serving {
    /// Marks that the page is served at `address` until the result is dropped. The address alone lets no browser in.
    pub(crate) fn mark(dir: &StateDir, address: &str) -> Result<Self> {
        let (folder, file) = (dir.page(), dir.page().join(ADDRESS));
        let broken = |error| StoreError::io(&file, error);
        if !folder.exists() {
            make_private(&folder).map_err(broken)?;
        }
        let mark = Mark::set(&file)?;
        fs::write(&file, address).map_err(broken)?;
        Ok(Self { _mark: mark })
    }

    /// The address of the page; `None`: no process serves it. Creates nothing.
    pub(crate) fn address(dir: &StateDir) -> Result<Option<String>> {
        let file = dir.page().join(ADDRESS);
        let read = || fs::read_to_string(&file).map_err(|error| StoreError::io(&file, error));
        if Mark::is_set(&file)? {
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
    _mark: Mark,
}

impl Watching {
    /// Marks the chains as watched until the result is dropped.
    pub(crate) fn mark(dir: &StateDir) -> Result<Self> {
        Ok(Self { _mark: Mark::set(&dir.watching())? })
    }

    /// Whether a process watches the chains. Creates nothing.
    pub(crate) fn is_marked(dir: &StateDir) -> Result<bool> {
        Mark::is_set(&dir.watching())
    }
}

/// The right to run the commands that an agent waits for, so that two processes never run one at the same time.
#[derive(Debug)]
pub(crate) struct Trying {
    was_interrupted: bool,
    right: Right,
}

impl Trying {
    /// Takes the right, unless another process has it. Never waits.
    pub(crate) fn try_take(dir: &StateDir, frame: FrameId) -> Result<Option<Self>> {
        dir.frame_dir(frame).map_err(|error| StoreError::io(&dir.frame_path(frame), error))?;
        let Some(right) = Right::try_take(&dir.commands(frame))? else { return Ok(None) };
        let was_interrupted = right.is_noted();
        right.note(true);
        Ok(Some(Self { was_interrupted, right }))
    }

    /// Whether the last process that had the right was killed. Its commands may still be running.
    pub(crate) fn was_interrupted(&self) -> bool {
        self.was_interrupted
    }

    /// Whether a process has the right. Creates nothing.
    pub(crate) fn is_taken(dir: &StateDir, frame: FrameId) -> Result<bool> {
        Right::is_taken(&dir.commands(frame))
    }
}

impl Drop for Trying {
    fn drop(&mut self) {
        self.right.note(false);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

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
        fs::create_dir_all(dir.frames()).unwrap();
        fs::write(dir.frame_path(root), "not a directory").unwrap();
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

    #[test]
    fn a_session_shows_the_questions_of_the_chains_that_it_follows() {
        let temp = tempfile::tempdir().unwrap();
        let dir = StateDir::new(temp.path()).unwrap();
        let [followed, other] = [FrameId::random(), FrameId::random()];
        let are_shown = || [followed, other].map(|root| Attending::is_marked(&dir, root).unwrap());
        assert_eq!(are_shown(), [false, false]);
        let _session = Followed::mark(&dir, followed).unwrap();
        assert_eq!(are_shown(), [true, false]);
        let _inbox = Attending::mark(&dir).unwrap();
        assert_eq!(are_shown(), [true, true]);
        let later = [followed, other].map(|root| AsksLater::mark(&dir, root).unwrap());
        assert_eq!(are_shown(), [true, false], "its person must not wait for another terminal");
        drop(later);
        assert_eq!(are_shown(), [true, true]);
    }

    #[test]
    fn one_process_runs_the_commands_of_an_agent() {
        let temp = tempfile::tempdir().unwrap();
        let dir = StateDir::new(temp.path()).unwrap();
        let frame = FrameId::random();
        assert!(!Trying::is_taken(&dir, frame).unwrap());
        let trying = Trying::try_take(&dir, frame).unwrap();
        assert!(trying.is_some() && Trying::try_take(&dir, frame).unwrap().is_none());
        assert!(Trying::is_taken(&dir, frame).unwrap());
        drop(trying);
        assert!(!Trying::is_taken(&dir, frame).unwrap());
        assert!(Trying::try_take(&dir, frame).unwrap().is_some());
    }
}
