//! Locks on files. The system releases a lock when the last process that has the file open ends, for whatever reason.
//!
//! There are two kinds. Any number of processes can share a mark, which grants nothing. A right is exclusive. To check for
//! one kind, a process briefly takes a lock of the other kind, so that checks and locks can be told apart.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::store::error::{Result, StoreError};
use crate::store::files::durable::open_private;

/// A shared lock, until it is dropped.
#[derive(Debug)]
pub(super) struct Mark {
    _locked: Locked,
}

/// An exclusive lock, until it is dropped.
#[derive(Debug)]
pub(super) struct Right {
    locked: Locked,
}

/// How often to try to set a mark, and the pause between tries.
const MARK_TRIES: u32 = 200;
const MARK_PAUSE: Duration = Duration::from_millis(5);

/// How often to check whether a mark is set.
const CHECK_TRIES: u32 = 3;

/// How often to try to take a right if only checks held the lock, and how many of these tries are made without a pause. The others
/// follow at intervals of a millisecond, because the system may suspend a checking process at that moment.
const RIGHT_TRIES: u32 = 1_000;
const RIGHT_TRIES_AT_ONCE: u32 = 100;

impl Mark {
    pub(super) fn set(path: &Path) -> Result<Self> {
        let lock = || {
            let file = open_private(path)?;
            // Only a process that is checking for the mark can prevent this lock, and other checks count its lock as a
            // mark, too. The tries are limited in case the system suspends such a process at that moment.
            for _ in 0..MARK_TRIES {
                if is_granted(file.try_lock_shared())? {
                    break;
                }
                thread::sleep(MARK_PAUSE);
            }
            Ok(Self { _locked: Locked(file) })
        };
        lock().map_err(|error| StoreError::io(path, error))
    }

    /// Whether a process has set the mark. Creates nothing.
    pub(super) fn is_set(path: &Path) -> Result<bool> {
        // Another check also prevents the lock, for a moment.
        for _ in 0..CHECK_TRIES {
            if is_free(path, File::try_lock)? {
                return Ok(false);
            }
            thread::yield_now();
        }
        Ok(true)
    }
}

impl Right {
    /// Takes the right, unless another process has it. Never waits.
    pub(super) fn try_take(path: &Path) -> Result<Option<Self>> {
        let lock = || {
            let file = open_private(path)?;
            Ok(try_exclusive(&file)?.then(|| Self { locked: Locked(file) }))
        };
        lock().map_err(|error| StoreError::io(path, error))
    }

    /// Whether a process that had the right and noted something about it was killed.
    pub(super) fn is_noted(&self) -> bool {
        self.locked.0.metadata().is_ok_and(|found| found.len() > 0)
    }

    /// Notes something about this right, or that it is over. On a full disk, nothing is noted.
    pub(super) fn note(&self, is_noted: bool) {
        let _ = self.locked.0.set_len(u64::from(is_noted));
    }

    /// Whether a process has the right. Creates nothing, and does not prevent another process from taking it.
    pub(super) fn is_taken(path: &Path) -> Result<bool> {
        Ok(!is_free(path, File::try_lock_shared)?)
    }
}

/// Locks `file` exclusively, unless another process has the right.
pub(super) fn try_exclusive(file: &File) -> io::Result<bool> {
    for tries in 0..RIGHT_TRIES {
        if is_granted(file.try_lock())? {
            return Ok(true);
        }
        // A check holds a shared lock for a moment. That is not the right.
        if !is_granted(file.try_lock_shared())? {
            return Ok(false);
        }
        file.unlock()?;
        if tries < RIGHT_TRIES_AT_ONCE {
            thread::yield_now();
        } else {
            thread::sleep(Duration::from_millis(1));
        }
    }
    Ok(false)
}

/// Whether the lock that a check needs is granted.
fn is_free(path: &Path, check: fn(&File) -> std::result::Result<(), TryLockError>) -> Result<bool> {
    let broken = |error| StoreError::io(path, error);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(broken(error)),
    };
    let is_free = is_granted(check(&file)).map_err(broken)?;
    drop(Locked(file));
    Ok(is_free)
}

fn is_granted(outcome: std::result::Result<(), TryLockError>) -> io::Result<bool> {
    match outcome {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Unlocks its file when dropped. Closing the file would not be enough: a program that another thread is starting also has
/// the file open until it runs.
#[derive(Debug)]
struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_though_a_program_that_is_being_started_has_its_file_open() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("lock");
        let mark = Mark::set(&path).unwrap();
        let _inherited = mark._locked.0.try_clone().unwrap();
        drop(mark);
        assert!(!Mark::is_set(&path).unwrap());
        let right = Right::try_take(&path).unwrap().unwrap();
        let _inherited = right.locked.0.try_clone().unwrap();
        drop(right);
        assert!(!Right::is_taken(&path).unwrap());
    }
}
