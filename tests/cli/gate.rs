//! Gates: events that tests wait for and trigger.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Below the minute that the program itself gives to a command that an agent waits for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(50);

/// A fifo at which the step `hold` waits. Dropping the gate releases every process that waits at it.
pub(crate) struct Gate {
    path: PathBuf,
    fifo: File,
}

impl Gate {
    /// A closed gate.
    pub(crate) fn new(path: PathBuf) -> Self {
        let made = Command::new("mkfifo").arg(&path).status().expect("mkfifo is a program");
        assert!(made.success(), "a fifo can be made");
        // Opened for both, a fifo does not wait for another end, and a line that was written stays in it.
        let fifo = OpenOptions::new().read(true).write(true).open(&path).expect("the fifo exists");
        Self { path, fifo }
    }

    /// Waits until `count` agents have reached the gate, now or earlier.
    pub(crate) fn reached_by(&self, count: usize) {
        let held = format!("{}.held", self.path.display());
        let arrived = || fs::read_to_string(&held).unwrap_or_default().lines().count();
        wait_until("an agent comes to the gate", || arrived() >= count);
    }

    /// Lets one agent through, now or when it arrives.
    pub(crate) fn open_for_one(&self) {
        (&self.fifo).write_all(b"go\n").expect("the fifo is open");
    }
}

/// Waits for an expected event, and fails the test if it does not happen.
pub(crate) fn wait_until(what: &str, happened: impl FnMut() -> bool) {
    wait_within(PATIENCE, what, happened);
}

/// Waits so long for an event that must come.
pub(crate) fn wait_within(patience: Duration, what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + patience;
    while !happened() {
        assert!(Instant::now() < deadline, "this did not happen: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
