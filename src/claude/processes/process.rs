//! A running `claude`, until it ends or is stopped.

use std::fs::File;
use std::io::{self, PipeReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{self, Sender};
use std::thread;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdout};

use crate::claude::processes::children::Own;
use crate::failpoint::{self, Step};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessExit {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it; agent-cli did not send it.
    Signal(i32),
    /// agent-cli stopped it because a person asked for that.
    Stopped,
    /// agent-cli killed it because a person asked for that.
    Killed,
    /// agent-cli stopped or killed it because the system wants agent-cli itself to end.
    ShutDown,
    /// agent-cli stopped or killed it because the budget of its chain is spent.
    OverBudget,
    /// agent-cli ended it because its agent's turn had ended and something was still running in the background.
    Ended,
    /// It was not observed.
    Unknown,
}

/// A started process in a separate process group, so that a Ctrl-C at the terminal does not reach it. Signals go to the whole
/// group: the program may be a wrapper around `claude`.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    pid: Option<Pid>,
    input: Option<HeldInput>,
    _own: Option<Own>,
}

/// The standard input of a process, which contains a file and ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct HeldInput {
    _end: Sender<()>,
}

impl HeldInput {
    /// Writes the file into a pipe. Returns the other end.
    pub(crate) fn from_file(mut file: File) -> io::Result<(PipeReader, Self)> {
        let (reader, mut writer) = io::pipe()?;
        let (end, ended) = mpsc::channel();
        thread::spawn(move || {
            // A process that ends does not read the rest.
            let _ = io::copy(&mut file, &mut writer);
            let _ = ended.recv();
        });
        Ok((reader, Self { _end: end }))
    }
}

/// Ends a process group when it is dropped.
#[derive(Debug)]
pub(crate) struct GroupKiller(Option<Pid>);

impl Drop for GroupKiller {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

/// Whether a process with this id exists. It may be a different one by now, so this is only for information.
pub(crate) fn lives(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // A process of another user cannot be sent a signal, but exists.
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

impl ProcessExit {
    /// Whether the process was killed, by a signal or as shells report it (Claude Code ends with 143 on SIGTERM).
    pub(crate) fn was_killed(self) -> bool {
        matches!(
            self,
            Self::Signal(_)
                | Self::Killed
                | Self::ShutDown
                | Self::OverBudget
                | Self::Ended
                | Self::Unknown
                | Self::Code(129..)
        )
    }

    /// Whether agent-cli ended it.
    pub(crate) fn is_stopped(self) -> bool {
        matches!(self, Self::Stopped | Self::Killed | Self::ShutDown | Self::OverBudget)
    }
}

impl Running {
    /// Starts a process. It is not killed when this value is dropped: a `claude` whose runner ends finishes its turn.
    pub(crate) fn start(mut command: Command) -> io::Result<Self> {
        command.process_group(0);
        let child = tokio::process::Command::from(command).spawn()?;
        let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        let own = child.id().map(Own::new);
        Ok(Self { child, pid, input: None, _own: own })
    }

    pub(crate) fn with_input(self, input: Option<HeldInput>) -> Self {
        Self { input, ..self }
    }

    pub(crate) fn take_input(&mut self) -> Option<HeldInput> {
        self.input.take()
    }

    /// Waits until the process has ended. May be called again after it was cancelled.
    pub(crate) async fn ended(&mut self) -> ProcessExit {
        exit_of(self.child.wait().await)
    }

    /// Its output and its error output, if they are piped and were not taken before.
    pub(crate) fn output(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdout.take(), self.child.stderr.take())
    }

    /// Ends the whole process group when it is dropped, for processes that must not outlive their caller.
    #[must_use]
    pub(crate) fn kill_group_on_drop(&self) -> GroupKiller {
        GroupKiller(self.pid)
    }

    /// Sends a signal to its whole process group.
    pub(crate) fn send(&self, signal: Signal) {
        if let Some(pid) = self.pid {
            // It may have ended itself in the meantime, which has the same effect.
            let _ = failpoint::around(Step::Stop, || kill_process_group(pid, signal));
        }
    }
}

fn exit_of(status: io::Result<ExitStatus>) -> ProcessExit {
    match status.map(|status| (status.code(), status.signal())) {
        Ok((Some(code), _)) => ProcessExit::Code(code),
        Ok((None, Some(signal))) => ProcessExit::Signal(signal),
        Ok((None, None)) | Err(_) => ProcessExit::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read, Seek, Write};

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    async fn exit(script: &str) -> ProcessExit {
        Running::start(shell(script)).unwrap().ended().await
    }

    #[test]
    fn a_held_input_ends_when_it_is_dropped() {
        let text = "0123456789abcde\n".repeat(10_000);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.rewind().unwrap();
        let (reader, held) = HeldInput::from_file(file).unwrap();
        let mut read = vec![0; text.len()];
        let mut reader = BufReader::new(reader);
        reader.read_exact(&mut read).unwrap();
        assert_eq!(read, text.as_bytes());
        drop(held);
        assert_eq!(reader.read(&mut read).unwrap(), 0);
    }

    #[tokio::test]
    async fn the_way_a_process_ends_is_seen() {
        assert_eq!(exit("exit 3").await, ProcessExit::Code(3));
        assert_eq!(exit("kill -9 $$").await, ProcessExit::Signal(9));
        assert!(exit("exit 143").await.was_killed());
        assert!(!exit("exit 1").await.was_killed());
    }
}
