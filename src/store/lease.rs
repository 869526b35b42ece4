//! The exclusive right to run a frame.
//!
//! It is a lock on the file that `claude` prints to. The system keeps it as long as anybody has that file open, the
//! runner or `claude`, and drops it when the last of them is gone, however it went: there is no heartbeat and no stale
//! process id. The file is never renamed or deleted as long as its frame is
//! there, or two runners could hold locks on two files of one name.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use super::files::{StateDir, open_private};
use super::{Result, StoreError};
use crate::core::id::FrameId;

/// The right to run a frame, until it and all copies of its output are closed.
#[derive(Debug)]
pub struct Lease {
    output: File,
}

/// How often to try again when the lock was only looked at by others.
const TRIES: u32 = 100;

impl Lease {
    /// Takes the lease, unless somebody has it. Never waits.
    ///
    /// # Errors
    ///
    /// The file cannot be opened or locked.
    pub fn try_take(dir: &StateDir, frame: FrameId) -> Result<Option<Self>> {
        let path = dir.output(frame);
        let broken = |error| StoreError::io(&path, error);
        dir.frame_dir(frame).map_err(broken)?;
        let output = open_private(&path).map_err(broken)?;
        for _ in 0..TRIES {
            if locked(output.try_lock()).map_err(broken)? {
                return Ok(Some(Self { output }));
            }
            // Whoever looks whether the lease is held takes a shared lock for a moment. That is not a lease.
            if !locked(output.try_lock_shared()).map_err(broken)? {
                return Ok(None);
            }
            output.unlock().map_err(broken)?;
            std::thread::yield_now();
        }
        Ok(None)
    }

    /// Whether somebody has the lease. Creates nothing.
    ///
    /// # Errors
    ///
    /// The file cannot be opened or locked.
    pub fn is_held(dir: &StateDir, frame: FrameId) -> Result<bool> {
        let path = dir.output(frame);
        let broken = |error| StoreError::io(&path, error);
        let output = match OpenOptions::new().append(true).open(&path) {
            Ok(output) => output,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(broken(error)),
        };
        Ok(!locked(output.try_lock_shared()).map_err(broken)?)
    }

    /// The frame's output, opened for appending: for `claude` to print to. The lease lasts until it is closed, too.
    ///
    /// # Errors
    ///
    /// The system has no more file descriptors.
    pub fn output(&self) -> io::Result<File> {
        self.output.try_clone()
    }

    /// How much was printed so far.
    ///
    /// # Errors
    ///
    /// The system cannot tell.
    pub fn len(&self) -> io::Result<u64> {
        Ok(self.output.metadata()?.len())
    }

    /// Where the next attempt's output begins. A line that a killed process left unfinished is ended, so that it cannot
    /// spoil the next one.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written.
    pub fn seal(&self) -> io::Result<u64> {
        let length = self.len()?;
        let mut last = [b'\n'];
        if length > 0 {
            self.output.read_exact_at(&mut last, length - 1)?;
        }
        if last != *b"\n" {
            (&self.output).write_all(b"\n")?;
        }
        self.len()
    }

    /// Whether nothing was printed so far.
    ///
    /// # Errors
    ///
    /// The system cannot tell.
    pub fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

fn locked(result: std::result::Result<(), TryLockError>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};
    use std::sync::Barrier;

    use tempfile::TempDir;

    use super::*;

    fn frame() -> (TempDir, StateDir, FrameId) {
        let temp = tempfile::tempdir().unwrap();
        let dir = StateDir::new(temp.path()).unwrap();
        (temp, dir, FrameId::random())
    }

    #[test]
    fn a_lease_is_held_until_it_is_dropped() {
        let (_temp, dir, frame) = frame();
        assert!(!Lease::is_held(&dir, frame).unwrap());
        assert!(!dir.frame_path(frame).exists());
        let lease = Lease::try_take(&dir, frame).unwrap().unwrap();
        assert!(Lease::is_held(&dir, frame).unwrap());
        assert!(Lease::try_take(&dir, frame).unwrap().is_none());
        assert!(Lease::try_take(&dir, FrameId::random()).unwrap().is_some());
        drop(lease);
        assert!(!Lease::is_held(&dir, frame).unwrap());
        assert!(Lease::try_take(&dir, frame).unwrap().is_some());
    }

    #[test]
    fn of_many_runners_one_takes_it() {
        let (_temp, dir, frame) = frame();
        let barrier = Barrier::new(8);
        let taken = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        barrier.wait();
                        Lease::try_take(&dir, frame).unwrap()
                    })
                })
                .collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(taken.len(), 1);
    }

    #[test]
    fn looking_does_not_take_it_from_anyone() {
        let (_temp, dir, frame) = frame();
        drop(Lease::try_take(&dir, frame).unwrap());
        let watcher = OpenOptions::new().append(true).open(dir.output(frame)).unwrap();
        watcher.lock_shared().unwrap();
        assert!(!Lease::is_held(&dir, frame).unwrap());
        let releases = std::thread::spawn(move || drop(watcher));
        while Lease::try_take(&dir, frame).unwrap().is_none() {}
        releases.join().unwrap();
    }

    #[test]
    fn it_lives_as_long_as_the_process_that_prints() {
        let (_temp, dir, frame) = frame();
        let lease = Lease::try_take(&dir, frame).unwrap().unwrap();
        lease.output().unwrap().write_all(b"first\n").unwrap();
        assert_eq!((lease.len().unwrap(), lease.is_empty().unwrap()), (6, false));
        let mut child = Command::new("sh")
            .args(["-c", "read line; echo second"])
            .stdin(Stdio::piped())
            .stdout(lease.output().unwrap())
            .spawn()
            .unwrap();
        drop(lease);
        assert!(Lease::is_held(&dir, frame).unwrap());
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        child.wait().unwrap();
        assert!(!Lease::is_held(&dir, frame).unwrap());
        assert_eq!(std::fs::read_to_string(dir.output(frame)).unwrap(), "first\nsecond\n");
    }
}
