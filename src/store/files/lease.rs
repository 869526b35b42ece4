//! The exclusive right to run a frame.
//!
//! The lease is a lock on the file that `claude` prints to. The system keeps the lock as long as the runner or `claude` has
//! that file open, and releases it when the last of them has ended, for whatever reason. So there is no heartbeat and no
//! stale process id. The file is never renamed or deleted while its frame exists; otherwise two runners could lock two
//! files of the same name. The file has a second name outside the frame's directory, because an agent may remove that
//! directory.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::core::id::FrameId;
use crate::failpoint::{self, Step};
use crate::store::error::{Result, StoreError};
use crate::store::files::file_lock::{Right, try_exclusive};
use crate::store::files::state_dir::StateDir;

/// The right to run a frame, until its file and all copies of it are closed.
#[derive(Debug)]
pub struct Lease {
    output: File,
    /// Whether another process has the file open to print to it, and so also keeps the lease.
    is_shared: AtomicBool,
}

impl Drop for Lease {
    /// Releases the lease immediately if no other process has it. A process that another thread is starting also has the
    /// file open until it executes its program.
    fn drop(&mut self) {
        if !*self.is_shared.get_mut() {
            // The system releases it when the file is closed.
            let _ = self.output.unlock();
        }
    }
}

impl Lease {
    /// Takes the lease, unless another process has it. Never waits.
    ///
    /// # Errors
    ///
    /// The file cannot be opened or locked.
    pub fn try_take(dir: &StateDir, frame: FrameId) -> Result<Option<Self>> {
        let path = dir.output(frame);
        failpoint::around(Step::Lease, || Self::taken(dir, frame, &path))
    }

    fn taken(dir: &StateDir, frame: FrameId, path: &Path) -> Result<Option<Self>> {
        let broken = |error| StoreError::io(path, error);
        dir.frame_dir(frame).and_then(|_| failpoint::room(Step::Lease)).map_err(broken)?;
        let output = dir.open_output(frame).map_err(broken)?;
        let is_taken = try_exclusive(&output).map_err(broken)?;
        Ok(is_taken.then(|| Self { output, is_shared: AtomicBool::new(false) }))
    }

    /// Whether a process has the lease. Creates nothing, and does not prevent another process from taking the lease: the
    /// check holds a shared lock for a moment, which is not mistaken for a lease.
    pub(crate) fn is_held(dir: &StateDir, frame: FrameId) -> Result<bool> {
        Right::is_taken(&dir.printed(frame))
    }

    /// The frame's output, opened for appending, for `claude` to print to. The lease also lasts until this is closed.
    pub(crate) fn output(&self) -> io::Result<File> {
        self.is_shared.store(true, Ordering::Relaxed);
        self.output.try_clone()
    }

    /// The length of the output so far.
    pub(crate) fn len(&self) -> io::Result<u64> {
        Ok(self.output.metadata()?.len())
    }

    /// The output from byte `from` on, even if the file no longer has a name. If the file is shorter, it was emptied, and
    /// all of its content is new.
    pub(crate) fn printed(&self, from: u64) -> io::Result<impl Read> {
        let at = if self.len()? < from { 0 } else { from };
        Ok(PrintedReader { output: &self.output, at })
    }

    /// Where the next attempt's output begins. Terminates a line that a killed process left unfinished, so that it cannot
    /// damage the next one.
    pub(crate) fn seal(&self) -> io::Result<u64> {
        let length = self.len()?;
        let mut last = [b'\n'];
        if length > 0 {
            self.output.read_exact_at(&mut last, length - 1)?;
        }
        if last != *b"\n" {
            failpoint::around(Step::Seal, || {
                failpoint::room(Step::Seal).and_then(|()| (&self.output).write_all(b"\n"))
            })?;
        }
        self.len()
    }
}

impl StateDir {
    /// Opens `claude`'s output for a frame at byte `from`, without the lease. [`Lease::printed`] describes what is read
    /// from a shorter file.
    pub(crate) fn open_printed(&self, frame: FrameId, from: u64) -> io::Result<File> {
        let mut file = File::open(self.printed(frame))?;
        let at = if file.metadata()?.len() < from { 0 } else { from };
        file.seek(SeekFrom::Start(at))?;
        Ok(file)
    }
}

/// Reads without moving the file's shared position.
struct PrintedReader<'a> {
    output: &'a File,
    at: u64,
}

impl Read for PrintedReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.output.read_at(into, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};
    use std::sync::Barrier;
    use std::thread;
    use std::time::Duration;

    use tempfile::TempDir;

    use super::*;

    fn frame() -> (TempDir, StateDir, FrameId) {
        let temp = tempfile::tempdir().unwrap();
        let dir = StateDir::new(temp.path()).unwrap();
        (temp, dir, FrameId::random())
    }

    /// Waits until the lease is free. A process that another test is starting has the file open, too, until it executes its
    /// program.
    fn is_given_back(dir: &StateDir, frame: FrameId) {
        let begun = std::time::Instant::now();
        while Lease::is_held(dir, frame).unwrap() {
            assert!(begun.elapsed() < Duration::from_secs(30), "the lease is still held");
            thread::sleep(Duration::from_millis(1));
        }
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
    fn what_has_the_file_open_by_accident_does_not_keep_it() {
        let (_temp, dir, frame) = frame();
        let lease = Lease::try_take(&dir, frame).unwrap().unwrap();
        let inherited = lease.output.try_clone().unwrap();
        drop(lease);
        assert!(!Lease::is_held(&dir, frame).unwrap());
        drop(inherited);
    }

    #[test]
    fn the_next_output_begins_on_a_line_of_its_own() {
        let (_temp, dir, frame) = frame();
        let lease = Lease::try_take(&dir, frame).unwrap().unwrap();
        assert_eq!(lease.seal().unwrap(), 0);
        lease.output().unwrap().write_all(b"{\"torn\":").unwrap();
        assert_eq!([lease.seal().unwrap(), lease.seal().unwrap()], [9, 9]);
        assert_eq!(std::fs::read(dir.output(frame)).unwrap(), b"{\"torn\":\n");
    }

    #[test]
    fn that_it_cannot_be_known_is_not_that_it_is_free() {
        let (_temp, dir, frame) = frame();
        std::fs::create_dir_all(dir.frames()).unwrap();
        std::fs::write(dir.frame_path(frame), "not a directory").unwrap();
        assert!(Lease::is_held(&dir, frame).is_err());
    }

    #[test]
    fn what_was_printed_is_read_from_where_an_attempt_began_or_from_the_start_of_a_file_that_was_emptied() {
        let (_temp, dir, frame) = frame();
        let lease = Lease::try_take(&dir, frame).unwrap().unwrap();
        lease.output().unwrap().write_all(b"first\nsecond\n").unwrap();
        let printed = |from| {
            let mut text = String::new();
            dir.open_printed(frame, from).unwrap().read_to_string(&mut text).map(|_| text).unwrap()
        };
        assert_eq!(
            [printed(0), printed(6), printed(13), printed(14)],
            ["first\nsecond\n", "second\n", "", "first\nsecond\n"]
        );
    }

    #[test]
    fn it_is_held_and_read_though_its_directory_is_removed_or_emptied() {
        let (_temp, dir, frame) = frame();
        let lease = Lease::try_take(&dir, frame).unwrap().unwrap();
        let printed = |lease: &Lease, from| {
            let mut text = String::new();
            lease.printed(from).unwrap().read_to_string(&mut text).map(|_| text).unwrap()
        };
        lease.output().unwrap().write_all(b"first\n").unwrap();
        std::fs::remove_dir_all(dir.frame_path(frame)).unwrap();
        assert!(Lease::is_held(&dir, frame).unwrap());
        assert!(Lease::try_take(&dir, frame).unwrap().is_none());
        lease.output().unwrap().write_all(b"second\n").unwrap();
        assert_eq!((printed(&lease, 0), printed(&lease, 6)), ("first\nsecond\n".into(), "second\n".into()));
        drop(lease);
        is_given_back(&dir, frame);
        std::fs::remove_dir_all(dir.frame_path(frame)).unwrap();
        let lease = Lease::try_take(&dir, frame).unwrap().unwrap();
        assert_eq!(std::fs::read_to_string(dir.output(frame)).unwrap(), "first\nsecond\n");
        std::fs::write(dir.output(frame), "").unwrap();
        lease.output().unwrap().write_all(b"third\n").unwrap();
        assert_eq!(printed(&lease, 13), "third\n");
        // Another file with the same name.
        std::fs::remove_file(dir.output(frame)).unwrap();
        std::fs::write(dir.output(frame), "forged\n").unwrap();
        assert!(Lease::try_take(&dir, frame).unwrap().is_none());
        assert_eq!(std::fs::read_to_string(dir.output(frame)).unwrap(), "third\n");
        assert_eq!(std::fs::read_dir(dir.frame_path(frame)).unwrap().count(), 1);
    }

    #[test]
    fn a_file_of_an_older_version_gets_a_second_name() {
        let (_temp, dir, frame) = frame();
        dir.frame_dir(frame).unwrap();
        std::fs::write(dir.output(frame), "first\n").unwrap();
        let older = File::options().append(true).open(dir.output(frame)).unwrap();
        older.lock().unwrap();
        assert!(Lease::is_held(&dir, frame).unwrap());
        assert!(Lease::try_take(&dir, frame).unwrap().is_none());
        drop(older);
        is_given_back(&dir, frame);
        assert_eq!(Lease::try_take(&dir, frame).unwrap().unwrap().len().unwrap(), 6);
    }

    #[test]
    fn of_many_runners_one_takes_it() {
        let (_temp, dir, frame) = frame();
        let barrier = Barrier::new(8);
        let taken = thread::scope(|scope| {
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
    fn looking_does_not_keep_anyone_from_taking_it() {
        let (_temp, dir, frame) = frame();
        drop(Lease::try_take(&dir, frame).unwrap());
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        let watcher = File::open(dir.output(frame)).unwrap();
                        if watcher.try_lock_shared().is_ok() {
                            // Simulates a checking process that the system suspends for longer than all immediate tries
                            // take.
                            thread::sleep(Duration::from_millis(5));
                            watcher.unlock().unwrap();
                            thread::sleep(Duration::from_millis(20));
                        }
                    }
                });
            }
            let taken = (0..20).filter(|_| Lease::try_take(&dir, frame).unwrap().is_some()).count();
            over.store(true, Ordering::Relaxed);
            assert_eq!(taken, 20);
        });
    }

    #[test]
    fn it_lives_as_long_as_the_process_that_prints() {
        let (_temp, dir, frame) = frame();
        let lease = Lease::try_take(&dir, frame).unwrap().unwrap();
        lease.output().unwrap().write_all(b"first\n").unwrap();
        assert_eq!(lease.len().unwrap(), 6);
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
        is_given_back(&dir, frame);
        assert_eq!(std::fs::read_to_string(dir.output(frame)).unwrap(), "first\nsecond\n");
    }
}
