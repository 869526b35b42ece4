//! The outcome of a command: its exit status and its output.

use std::fmt;
use std::process::ExitStatus;

use serde_json::Value;

/// A command that has ended. Its text, in which ids and paths have names, is for snapshots.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// The exit status.
    pub(crate) status: ExitStatus,
    /// Standard output, to the byte.
    pub(crate) stdout: String,
    /// Standard error, without the times before its lines.
    pub(crate) stderr: String,
    /// Standard error, to the byte.
    pub(crate) log: String,
    named: (String, String),
}

impl Outcome {
    /// Of a process that has ended.
    pub(crate) fn new(status: ExitStatus, stdout: String, log: String, mut named: impl FnMut(&str) -> String) -> Self {
        let stderr = log.split_inclusive('\n').map(without_time).collect::<String>();
        let named = (named(&stdout), named(&stderr));
        Self { status, stdout, stderr, log, named }
    }

    /// The exit code; `None` after a signal.
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Fails the test unless the exit code is 0.
    #[track_caller]
    pub(crate) fn succeeds(&self) -> &Self {
        self.exits_with(0)
    }

    /// Fails the test unless this is the exit code.
    #[track_caller]
    pub(crate) fn exits_with(&self, code: i32) -> &Self {
        assert_eq!(self.code(), Some(code), "{self}");
        self
    }

    /// Fails the test unless the command printed exactly this, and succeeded.
    #[track_caller]
    pub(crate) fn prints(&self, line: &str) -> &Self {
        self.succeeds();
        assert_eq!(self.stdout, format!("{line}\n"), "{self}");
        self
    }

    /// The id in `SGN_PEND_STARTED (ID)`, which must be all that the command printed.
    #[track_caller]
    pub(crate) fn started(&self) -> String {
        self.succeeds();
        let line = self.stdout.strip_suffix('\n').filter(|line| !line.contains('\n'));
        let id = line.and_then(|line| line.strip_prefix("SGN_PEND_STARTED (")?.strip_suffix(')'));
        id.unwrap_or_else(|| panic!("SGN_PEND_STARTED is expected:\n{self}")).to_owned()
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}:\n{self}"))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (stdout, stderr) = &self.named;
        f.write_str(stdout)?;
        if !stderr.is_empty() {
            write!(f, "--- stderr\n{stderr}")?;
        }
        write!(f, "--- {}", self.status)
    }
}

fn without_time(line: &str) -> &str {
    let timed =
        line.split_once(' ').filter(|(time, _)| time.ends_with('Z') && time.len() == "2026-01-01T00:00:00Z".len());
    timed.map_or(line, |(_, rest)| rest)
}
