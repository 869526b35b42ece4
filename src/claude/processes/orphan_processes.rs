//! Processes that an agent's tools started and that outlived the agent.
//!
//! Claude Code runs a Bash tool in a separate session, so neither the end of `claude` nor a signal to its process group reaches
//! it. Every process that a tool starts inherits the frame's mark in its environment, unless the mark is cleared on purpose.

use std::collections::HashSet;
use std::path::Path;
use std::process;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use rustix::process::{Pid, Signal};

use crate::claude::invocation::{ATTEMPT, FRAME, NO_ATTEMPT, STATE_DIR};
use crate::claude::processes::children;
use crate::claude::processes::process_table::{self, Environment};
use crate::core::id::FrameId;

/// How often to look for processes while there are still some: one may start another before it is killed.
const PASSES: usize = 100;
/// How many consecutive looks must find nothing: the system may skip a child if another one ends in that moment.
const QUIET: usize = 2;

/// Who ran the last attempt of a frame whose processes are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeftBy {
    /// No process: it had none.
    Nobody,
    /// This process.
    This,
    /// Another one, until this time; `None`: its exit status is unknown.
    Another { ended: Option<Timestamp> },
}

impl LeftBy {
    /// The runner of an attempt that the process `runner` ran from `began` to `ended`. Another process may have had this
    /// process's number. If it ran on another host, its number and the clock of that host say nothing here.
    pub(crate) fn new(is_elsewhere: bool, runner: u32, began: Timestamp, ended: Option<Timestamp>) -> Self {
        if is_elsewhere {
            return Self::Another { ended: None };
        }
        let is_since = children::kept_since().is_some_and(|since| began >= since);
        if runner == process::id() && is_since { Self::This } else { Self::Another { ended } }
    }
}

/// Ends every process that still has the marks of `frame` in this state directory, and returns how many there were.
///
/// The frame must not be running. This process and its ancestors are spared: they may have the mark if a person calls agent-cli
/// from a shell that an agent left behind.
///
/// Processes that this one started are below it. The whole machine is only searched for processes that another runner may have
/// left behind, and then once for all frames.
pub(crate) fn end(state_dir: &Path, frame: FrameId, left_by: LeftBy) -> usize {
    let mark = FrameMark { frame: format!("{FRAME}={frame}"), state_dir, of: Marked::Agent };
    match left_by {
        LeftBy::Nobody => 0,
        LeftBy::This if children::kept_since().is_some() => end_among(&mark, || {
            let own = process_table::ancestors().next();
            own.and_then(process_table::below).unwrap_or_else(process_table::all)
        }),
        LeftBy::Another { ended: Some(ended) } if !LastScan::has(frame, ended) => 0,
        LeftBy::This | LeftBy::Another { .. } => end_among(&mark, process_table::all),
    }
}

/// Ends the commands that an agent waits for and that a killed process was running. Returns how many processes there were.
pub(crate) fn end_commands(state_dir: &Path, frame: FrameId) -> usize {
    let mark = FrameMark { frame: format!("{FRAME}={frame}"), state_dir, of: Marked::Commands };
    end_among(&mark, process_table::all)
}

fn end_among(mark: &FrameMark<'_>, among: impl Fn() -> Vec<Pid>) -> usize {
    let spared: HashSet<Pid> = process_table::ancestors().collect();
    let (mut ended, mut quiet) = (HashSet::new(), 0);
    for _ in 0..PASSES {
        let before = ended.len();
        let marked = among().into_iter().filter(|pid| mark.is_on(*pid));
        for pid in marked.filter(|pid| !spared.contains(pid)) {
            system::kill(pid, mark);
            ended.insert(pid);
        }
        quiet = if ended.len() == before { quiet + 1 } else { 0 };
        if quiet == QUIET {
            break;
        }
    }
    ended.len()
}

/// The frames that had processes when this process last searched the whole machine.
struct LastScan {
    at: Timestamp,
    frames: HashSet<String>,
}

static SEEN: Mutex<Option<LastScan>> = Mutex::new(None);

impl LastScan {
    /// Whether a frame may have processes, if it has not run since `ended`: a frame without processes gets none.
    fn has(frame: FrameId, ended: Timestamp) -> bool {
        let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = match &mut *seen {
            Some(seen) if seen.at > ended && seen.at <= Timestamp::now() => seen,
            outdated => outdated.insert(Self::now()),
        };
        seen.frames.contains(&frame.to_string())
    }

    fn now() -> Self {
        let at = Timestamp::now();
        Self {
            at,
            frames: process_table::all().into_iter().filter_map(|pid| Environment::read(pid).value(FRAME)).collect(),
        }
    }
}

/// Distinguishes a frame's processes from others.
struct FrameMark<'a> {
    frame: String,
    /// A copy of a state directory contains frames with the same ids.
    state_dir: &'a Path,
    of: Marked,
}

/// What started a process that has a frame's mark.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Marked {
    Agent,
    /// A process of this program, which runs the commands that the agent waits for, and normally ends them.
    Commands,
}

impl FrameMark<'_> {
    fn is_on(&self, pid: Pid) -> bool {
        let environment = Environment::read(pid);
        let is_of_command = || environment.has(&format!("{ATTEMPT}={NO_ATTEMPT}"));
        let is_here = || {
            environment
                .value(STATE_DIR)
                .is_some_and(|dir| process_table::is_same_directory(Path::new(&dir), self.state_dir))
        };
        environment.has(&self.frame) && is_here() && is_of_command() == (self.of == Marked::Commands)
    }
}

#[cfg(target_os = "linux")]
mod system {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

    use super::{FrameMark, Pid, Signal};

    /// The handle prevents the process id from being reused between the check and the signal.
    pub(crate) fn kill(pid: Pid, mark: &FrameMark<'_>) {
        if let Ok(handle) = pidfd_open(pid, PidfdFlags::empty())
            && mark.is_on(pid)
        {
            let _ = pidfd_send_signal(handle, Signal::KILL);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use rustix::process::kill_process;

    use super::{FrameMark, Pid, Signal};

    pub(crate) fn kill(pid: Pid, mark: &FrameMark<'_>) {
        if mark.is_on(pid) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::claude::processes::process_table::READ;

    const UNSEEN: LeftBy = LeftBy::Another { ended: None };

    /// Whose environments are read while the processes of a frame are ended.
    fn read(state_dir: &Path, frame: FrameId, left_by: LeftBy) -> (usize, Vec<Pid>) {
        READ.with_borrow_mut(Vec::clear);
        let ended = end(state_dir, frame, left_by);
        (ended, READ.with_borrow_mut(std::mem::take))
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn processes_that_do_not_come_from_this_one_are_not_looked_at() {
        children::keep_orphans_below();
        let (here, frame) = (Path::new("/state"), FrameId::random());
        let mut orphan = marked(here, frame);
        let above: Vec<Pid> = process_table::ancestors().skip(1).collect();
        let (ended, looked_at) = read(here, frame, LeftBy::This);
        assert_eq!((ended, orphan.wait().unwrap().signal()), (1, Some(9)));
        assert!(looked_at.contains(&Pid::from_child(&orphan)) && above.iter().all(|pid| !looked_at.contains(pid)));
        assert_eq!(read(here, frame, LeftBy::Nobody), (0, Vec::new()));
    }

    #[test]
    fn for_what_other_runners_left_behind_the_machine_is_looked_at_once() {
        let (here, frame) = (Path::new("/state"), FrameId::random());
        let long_ago = LeftBy::Another { ended: Some(Timestamp::UNIX_EPOCH) };
        let mut orphan = marked(here, frame);
        // Its start time is unknown.
        assert_eq!(end(here, frame, LeftBy::Another { ended: Some(Timestamp::now()) }), 1);
        assert_eq!(orphan.wait().unwrap().signal(), Some(9));
        assert_eq!(read(here, FrameId::random(), long_ago), (0, Vec::new()));
    }

    /// A process that runs until it is ended.
    fn marked(state_dir: &Path, frame: FrameId) -> Child {
        let mut command = Command::new("cat");
        let mark = format!("{FRAME}={frame}");
        command.env(FRAME, frame.to_string()).env(STATE_DIR, state_dir);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        // For an instant after its start, a process has no environment.
        while !Environment::read(Pid::from_child(&child)).has(&mark) {
            std::thread::yield_now();
        }
        child
    }

    #[test]
    fn only_processes_of_the_frame_are_ended() {
        let [ours, other] = [FrameId::random(), FrameId::random()];
        let [here, elsewhere] = ["/state", "/copy"].map(Path::new);
        let mut orphan = marked(here, ours);
        let strangers = [marked(here, other), marked(elsewhere, ours)];
        assert_eq!(end(here, ours, UNSEEN), 1);
        assert_eq!(orphan.wait().unwrap().signal(), Some(9));
        for mut stranger in strangers {
            drop(stranger.stdin.take());
            assert_eq!(stranger.wait().unwrap().code(), Some(0));
        }
        assert_eq!(end(here, ours, UNSEEN), 0);
    }

    #[test]
    fn a_state_directory_may_have_several_names() {
        let temp = tempfile::tempdir().unwrap();
        let [here, link, copy] = ["here", "link", "copy"].map(|name| temp.path().join(name));
        [&here, &copy].into_iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
        std::os::unix::fs::symlink(&here, &link).unwrap();
        for (one, other) in [(&here, &link), (&link, &here)] {
            let frame = FrameId::random();
            let (mut orphan, mut stranger) = (marked(one, frame), marked(&copy, frame));
            assert_eq!(end(other, frame, UNSEEN), 1);
            assert_eq!(orphan.wait().unwrap().signal(), Some(9));
            drop(stranger.stdin.take());
            assert_eq!(stranger.wait().unwrap().code(), Some(0));
        }
    }

    #[test]
    fn what_another_host_has_recorded_says_nothing_here() {
        let now = Timestamp::now();
        let left_by = |is_elsewhere| LeftBy::new(is_elsewhere, process::id(), Timestamp::MAX, Some(now));
        assert_eq!(left_by(true), UNSEEN);
        assert_ne!(left_by(false), UNSEEN);
    }

    #[test]
    fn this_process_and_its_parents_are_spared() {
        assert!(process_table::ancestors().count() > 1);
    }
}
