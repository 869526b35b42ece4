//! A running `claude`, until it ends or is stopped.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;
use tokio::sync::watch;

use crate::crash::{self, Step};

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal, which was not sent by this program.
    Signal(i32),
    /// This program stopped it, because a person wanted that.
    Stopped,
    /// Nobody was there to see it.
    Unknown,
}

/// How much a person wants a process to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// Not at all.
    #[default]
    No,
    /// Soon: it may finish what it writes.
    Soon,
    /// At once.
    Now,
}

/// A started process in a process group of its own, so that a Ctrl-C at the terminal reaches it only through
/// [`Running::ended`]. Signals go to the whole group: the program may be a wrapper around `claude`.
#[derive(Debug)]
pub struct Running {
    child: Child,
    pid: Option<Pid>,
}

/// Ends a process group when it is dropped.
#[derive(Debug)]
pub struct GroupKiller(Option<Pid>);

impl Drop for GroupKiller {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

/// How long a process may take to end after a signal, before the next, harder one.
const GRACE: Duration = Duration::from_secs(5);

impl Exit {
    /// Whether the process was killed, by a signal or as shells report it (Claude Code ends with 143 on SIGTERM).
    #[must_use]
    pub fn was_killed(self) -> bool {
        matches!(self, Self::Signal(_) | Self::Unknown | Self::Code(129..))
    }
}

impl Running {
    /// Starts a process. It is not killed when this value is dropped: a `claude` whose runner ends finishes its turn.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn start(mut command: Command) -> io::Result<Self> {
        command.process_group(0);
        let child = tokio::process::Command::from(command).spawn()?;
        let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        Ok(Self { child, pid })
    }

    /// Waits until the process has ended, and ends it when `stop` says so: first as Ctrl-C does, after which it still
    /// writes its result, then harder.
    pub async fn ended(mut self, mut stop: watch::Receiver<Stop>) -> Exit {
        tokio::select! {
            status = self.child.wait() => return exit_of(status),
            () = wanted(&mut stop, Stop::Soon) => {}
        }
        for signal in [Signal::INT, Signal::TERM] {
            self.send(signal);
            tokio::select! {
                _ = self.child.wait() => return Exit::Stopped,
                () = tokio::time::sleep(GRACE) => {}
                () = wanted(&mut stop, Stop::Now) => break,
            }
        }
        self.send(Signal::KILL);
        let _ = self.child.wait().await;
        Exit::Stopped
    }

    /// Something that ends the whole process group when it is dropped, for processes that must not outlive their caller.
    #[must_use]
    pub fn kill_group_on_drop(&self) -> GroupKiller {
        GroupKiller(self.pid)
    }

    fn send(&self, signal: Signal) {
        if let Some(pid) = self.pid {
            // It may have ended by itself meanwhile, which is just as well.
            let _ = crash::around(Step::Stop, || kill_process_group(pid, signal));
        }
    }
}

/// Returns when `stop` has reached `level`, and never when nobody can raise it any more.
async fn wanted(stop: &mut watch::Receiver<Stop>, level: Stop) {
    if stop.wait_for(|now| *now >= level).await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn exit_of(status: io::Result<ExitStatus>) -> Exit {
    match status.map(|status| (status.code(), status.signal())) {
        Ok((Some(code), _)) => Exit::Code(code),
        Ok((None, Some(signal))) => Exit::Signal(signal),
        Ok((None, None)) | Err(_) => Exit::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    async fn exit(script: &str) -> Exit {
        let (_keep, stop) = watch::channel(Stop::No);
        Running::start(shell(script)).unwrap().ended(stop).await
    }

    #[tokio::test]
    async fn the_way_a_process_ends_is_seen() {
        assert_eq!(exit("exit 3").await, Exit::Code(3));
        assert_eq!(exit("kill -9 $$").await, Exit::Signal(9));
        assert!(exit("exit 143").await.was_killed());
        assert!(!exit("exit 1").await.was_killed());
    }

    #[tokio::test]
    async fn a_process_that_is_stopped_gets_an_interrupt_first() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut command = shell("trap 'echo bye; exit 0' INT; echo ready; while :; do sleep 0.05; done");
        command.stdout(Stdio::from(writer));
        let (stop, stopped) = watch::channel(Stop::No);
        let running = Running::start(command).unwrap();
        let mut lines = BufReader::new(&mut reader).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        stop.send(Stop::Soon).unwrap();
        assert_eq!(running.ended(stopped).await, Exit::Stopped);
        assert_eq!(lines.next().unwrap().unwrap(), "bye");
    }

    #[tokio::test]
    async fn a_process_that_will_not_stop_is_killed() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut command = shell("trap '' INT TERM; echo ready; while :; do sleep 0.05; done");
        command.stdout(Stdio::from(writer));
        let (stop, stopped) = watch::channel(Stop::No);
        let running = Running::start(command).unwrap();
        let mut lines = BufReader::new(&mut reader).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        stop.send(Stop::Now).unwrap();
        assert_eq!(running.ended(stopped).await, Exit::Stopped);
        assert!(lines.next().is_none());
    }
}
