//! The processes below a runner: those that it starts, and the orphans of its agents' tools.
//!
//! On Linux a runner is a subreaper: a process below it whose parent ends becomes its child instead of a child of the system's first
//! process, so that one that has cleared its environment is still known to come from an agent.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// Processes that this one has started and waits for itself.
static OWN: Mutex<Option<HashSet<u32>>> = Mutex::new(None);

fn with_own<T>(change: impl FnOnce(&mut HashSet<u32>) -> T) -> T {
    change(OWN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

/// As long as this value exists, its owner waits for the process.
#[derive(Debug)]
pub(crate) struct Own(u32);

impl Own {
    pub(crate) fn new(process: u32) -> Self {
        with_own(|own| own.insert(process));
        Self(process)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        with_own(|own| own.remove(&self.0));
    }
}

pub(crate) use system::{keep_orphans_below, kept_since};

#[cfg(target_os = "linux")]
mod system {
    use std::sync::{Once, OnceLock};
    use std::thread;
    use std::time::Duration;

    use jiff::Timestamp;
    use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
    use nix::unistd::Pid;

    use super::with_own;

    /// How long the owner of an ended process may take to reap it.
    const PATIENCE: Duration = Duration::from_secs(1);
    /// How often children are looked for while there are none.
    const LOOK: Duration = Duration::from_secs(5);

    static KEPT: OnceLock<Timestamp> = OnceLock::new();

    /// Since when all descendants of what this process has started remain below it.
    pub(crate) fn kept_since() -> Option<Timestamp> {
        KEPT.get().copied()
    }

    /// From now on, keeps orphans of what this process starts below it, and reaps them when they have ended.
    pub(crate) fn keep_orphans_below() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let is_kept = rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1)).is_ok();
            if is_kept {
                KEPT.get_or_init(Timestamp::now);
                thread::spawn(|| {
                    loop {
                        reap_next();
                    }
                });
            }
        });
    }

    /// Waits until a child has ended, and reaps it unless its owner waits for it.
    fn reap_next() {
        let ended = |id, flags| waitid(id, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | flags).ok()?.pid();
        let Some(process) = ended(Id::All, WaitPidFlag::empty()) else { return thread::sleep(LOOK) };
        thread::sleep(PATIENCE);
        let is_left = ended(Id::Pid(process), WaitPidFlag::WNOHANG).is_some();
        if is_left && !is_own(process) {
            let _: Result<WaitStatus, _> = waitpid(process, Some(WaitPidFlag::WNOHANG));
        }
    }

    fn is_own(process: Pid) -> bool {
        u32::try_from(process.as_raw()).is_ok_and(|process| with_own(|own| own.contains(&process)))
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    /// Other systems have no subreapers.
    pub(crate) fn keep_orphans_below() {}

    pub(crate) fn kept_since() -> Option<jiff::Timestamp> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::claude::processes::process_table;

    #[test]
    fn an_orphan_stays_below_its_runner_and_is_taken_away_when_it_ends() {
        keep_orphans_below();
        // The shell in between ends, and its child lives until this test has seen it.
        let (held, hold) = std::io::pipe().unwrap();
        let mut shell = Command::new("sh");
        let output = shell.args(["-c", "exec 3<&0; cat <&3 >/dev/null 2>&1 & echo $!"]).stdin(held).output().unwrap();
        drop(shell);
        let orphan: i32 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
        let orphan = rustix::process::Pid::from_raw(orphan).unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!(process_table::parent(orphan).map(|pid| pid.as_raw_nonzero().get()), Some(own));
        drop(hold);
        while process_table::parent(orphan).is_some() {
            std::thread::yield_now();
        }
    }
}
