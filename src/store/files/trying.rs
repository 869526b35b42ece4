//! The right to run the commands that an agent waits for, so that two processes never run one at the same time.
//!
//! It is a lock on a file of the frame. The system releases it when the process ends, for whatever reason.

use std::fs::{File, TryLockError};
use std::io;
use std::path::PathBuf;
use std::thread;

use crate::core::id::FrameId;
use crate::store::error::{Result, StoreError};
use crate::store::files::durable::open_private;
use crate::store::files::state_dir::StateDir;

/// How often to try again if the lock was only held by checks.
const TRIES: u32 = 1_000;

/// The right to run the commands of a frame.
#[derive(Debug)]
pub(crate) struct Trying {
    _locked: File,
}

impl Trying {
    /// Takes the right, unless another process has it. Never waits.
    pub(crate) fn try_take(dir: &StateDir, frame: FrameId) -> Result<Option<Self>> {
        let path = path(dir, frame);
        let lock = || {
            dir.frame_dir(frame)?;
            let file = open_private(&path)?;
            for _ in 0..TRIES {
                if locked(file.try_lock())? {
                    return Ok(Some(Self { _locked: file }));
                }
                // A check has a shared lock for a moment.
                if !locked(file.try_lock_shared())? {
                    return Ok(None);
                }
                file.unlock()?;
                thread::yield_now();
            }
            Ok(None)
        };
        lock().map_err(|error: io::Error| StoreError::io(&path, error))
    }

    /// Whether a process has the right. Creates nothing.
    pub(crate) fn is_taken(dir: &StateDir, frame: FrameId) -> Result<bool> {
        let path = path(dir, frame);
        let broken = |error| StoreError::io(&path, error);
        match File::open(&path) {
            Ok(file) => Ok(!locked(file.try_lock_shared()).map_err(broken)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(broken(error)),
        }
    }
}

fn path(dir: &StateDir, frame: FrameId) -> PathBuf {
    dir.frame_path(frame).join("commands.lock")
}

fn locked(outcome: std::result::Result<(), TryLockError>) -> io::Result<bool> {
    match outcome {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_it_until_it_gives_it_back() {
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
