//! Ends a `claude` and everything that it has started when its runner dies, or when the lease of its host is about to end.
//!
//! In a shared database, another host may continue an agent when the lease of its host has ended. A separate process makes sure that
//! the agent no longer works here by then, even if its runner was killed, is suspended, or waits for the server.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt, parent_id};
use std::path::{Path, PathBuf};
use std::process::{self, Command, ExitStatus};
use std::sync::LazyLock;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};
use tokio::signal::unix::{SignalKind, signal};

use crate::claude::invocation::{FRAME, STATE_DIR};
use crate::claude::processes::orphan_processes::{self, LeftBy};
use crate::claude::processes::process_table;

/// The command of agent-cli that guards another program.
pub(crate) const NAME: &str = "guard";

/// How often the lease is looked at.
const PACE: Duration = Duration::from_millis(100);

/// Within how many milliseconds a guard notices that its agent may not run any more, and ends it.
pub(crate) const ENDS_WITHIN: u64 = 1000;

/// What to guard.
#[derive(Debug)]
pub(crate) struct Guarded {
    /// The process id of its runner.
    pub(crate) runner: u32,
    /// The file with the host's [`Permit`].
    pub(crate) until: PathBuf,
    /// Since when the host had had its lease before the agent's attempt was recorded.
    pub(crate) since: i64,
    pub(crate) command: Command,
}

/// The same command with a guard, a process that ends as its program does.
pub(crate) fn guarded(command: &Command, own_program: &Path, until: &Path, since: i64) -> Command {
    let mut guard = Command::new(own_program);
    guard.arg(NAME).arg(process::id().to_string()).arg("--until").arg(until).arg(format!("--since={since}")).arg("--");
    guard.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => guard.env(name, value),
            None => guard.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        guard.current_dir(directory);
    }
    guard
}

/// Milliseconds since the machine was started, including those in which it slept.
pub(crate) fn now() -> u64 {
    #[cfg(target_os = "linux")]
    let clock = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::Monotonic;
    let time = clock_gettime(clock);
    (time.tv_sec * 1000 + time.tv_nsec / 1_000_000).unsigned_abs()
}

/// The same command, which the system kills when this process has ended: a guard may be killed together with its runner.
fn tethered(command: Command) -> Command {
    /// This program, even if an upgrade has removed its file.
    const OWN: &str = "/proc/self/exe";
    // A test is no agent-cli.
    if cfg!(test) || !Path::new(OWN).exists() {
        return command;
    }
    let mut tethered = Command::new(OWN);
    tethered.arg0("agent-cli").arg(NAME).arg(process::id().to_string()).arg("--");
    tethered.arg(command.get_program()).args(command.get_args());
    tethered
}

/// Becomes the program, which the system kills when its guard has ended. `None`: the guard has ended already.
pub(crate) fn tether(guard: u32, mut command: Command) -> Option<io::Error> {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_parent_process_death_signal(Some(Signal::KILL)) {
        return Some(error.into());
    }
    (parent_id() == guard).then(|| command.exec())
}

/// Runs the program until it ends, or must end. `None`: it may not start, because its runner has ended or its host has no lease.
///
/// # Errors
///
/// It cannot be started.
pub(crate) fn run(guarded: Guarded) -> io::Result<Option<ExitStatus>> {
    #[cfg(target_os = "linux")]
    {
        // The system tells at once, and a look at the parent shows it later.
        rustix::process::set_parent_process_death_signal(Some(Signal::USR1))?;
        // What the agent has started stays below this process, even if it hides its mark.
        rustix::process::set_child_subreaper(Pid::from_raw(1))?;
    }
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(guard(guarded))
}

async fn guard(Guarded { runner, until, since, command }: Guarded) -> io::Result<Option<ExitStatus>> {
    let mut orphaned = signal(SignalKind::user_defined1())?;
    // These are for the program, whose group this process is in.
    let _ignored = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
    let may_run = || {
        let permit = Permit::read(&until);
        parent_id() == runner && permit.since == since && now() < permit.end
    };
    if !may_run() {
        return Ok(None);
    }
    let mut program = tokio::process::Command::from(tethered(command)).spawn()?;
    loop {
        tokio::select! {
            ended = program.wait() => {
                if !may_run() {
                    end();
                }
                return ended.map(Some);
            }
            _ = orphaned.recv() => end(),
            () = tokio::time::sleep(PACE) => if !may_run() { end() },
        }
    }
}

/// Which start of the machine this is: [`now`] begins anew with each. Empty if that is unknown.
static BOOT: LazyLock<String> =
    LazyLock::new(|| fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned());

/// Which agents of a host may run, and until when. The host writes it to a file whenever it renews its lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Permit {
    /// The end, by [`now`].
    pub(crate) end: u64,
    /// Since when the host has had its lease without a break, by another clock. Agents whose attempts were recorded before may be running
    /// on another host.
    pub(crate) since: i64,
}

impl Permit {
    /// Permits nothing if that is unknown, or was written before the machine was started again.
    pub(crate) fn read(file: &Path) -> Self {
        let text = fs::read_to_string(file).unwrap_or_default();
        let mut words = text.split(' ');
        let (end, since) =
            (words.next().and_then(|end| end.parse().ok()), words.next().and_then(|since| since.parse().ok()));
        match (end, since, words.next()) {
            (Some(end), Some(since), Some(boot)) if boot == *BOOT => Self { end, since },
            _ => Self::default(),
        }
    }

    /// The content of the file.
    pub(crate) fn text(self) -> String {
        format!("{} {} {}", self.end, self.since, *BOOT)
    }
}

/// Ends all processes of the agent but this one. Those below it are found at once, even on a machine with many processes.
fn end() {
    end_below();
    let text = |name: &str| env::var_os(name);
    let frame = text(FRAME).as_deref().and_then(OsStr::to_str).and_then(|frame| frame.parse().ok());
    if let (Some(frame), Some(state_dir)) = (frame, text(STATE_DIR)) {
        orphan_processes::end(Path::new(&state_dir), frame, LeftBy::Another { ended: None });
    }
    end_below();
}

fn end_below() {
    let own = process_table::ancestors().next();
    for pid in own.and_then(process_table::below).unwrap_or_default() {
        // It may have ended itself in the meantime, which has the same effect.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// The exit status that says how the program has ended, as shells do.
pub(crate) fn exit_code(status: ExitStatus) -> i32 {
    status.signal().map_or_else(|| status.code().unwrap_or(1), |signal| 128 + signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_keeps_its_arguments_environment_and_directory() {
        let mut command = Command::new("/usr/bin/claude");
        command.args(["-p", "--", "x y"]).env("A", "1").env_remove("B").current_dir("/srv");
        let guarded = guarded(&command, Path::new("/usr/bin/agent-cli"), Path::new("/state/lease"), 7);
        let words: Vec<_> = guarded.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        let own = process::id().to_string();
        assert_eq!(
            words,
            ["guard", own.as_str(), "--until", "/state/lease", "--since=7", "--", "/usr/bin/claude", "-p", "--", "x y"]
        );
        assert_eq!(guarded.get_envs().collect::<Vec<_>>(), command.get_envs().collect::<Vec<_>>());
        assert_eq!(guarded.get_current_dir(), Some(Path::new("/srv")));
    }

    #[test]
    fn what_was_written_before_the_machine_started_again_is_no_time() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("lease");
        let read = |text: &str| {
            fs::write(&file, text).unwrap();
            Permit::read(&file)
        };
        let permit = Permit { end: 7, since: -1 };
        let none = Permit::default();
        let found = [read(&permit.text()), read("7 -1 another"), read("7"), read("")];
        assert_eq!(found, [permit, none, none, none]);
    }

    #[test]
    fn nothing_is_started_without_its_runner_or_without_a_lease() {
        let temp = tempfile::tempdir().unwrap();
        let until = temp.path().join("lease");
        let started = |runner, permit: Option<Permit>| {
            if let Some(permit) = permit {
                fs::write(&until, permit.text()).unwrap();
            }
            let made = temp.path().join("made");
            let mut command = Command::new("touch");
            command.arg(&made);
            let ended = run(Guarded { runner, until: until.clone(), since: 7, command }).unwrap();
            ended.is_some() && made.exists()
        };
        let permit = |end, since| Some(Permit { end, since });
        assert!(!started(parent_id(), None), "there is no lease");
        assert!(!started(parent_id(), permit(now().saturating_sub(1), 7)), "it has ended");
        assert!(!started(parent_id(), permit(now() + 60_000, 8)), "it had ended in the meantime");
        assert!(!started(1, permit(now() + 60_000, 7)), "another process runs it");
        assert!(started(parent_id(), permit(now() + 60_000, 7)));
    }
}
