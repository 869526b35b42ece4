//! What a process of this program uses.

use std::fs;
use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::Duration;

/// Waits until a process has used no CPU time for a moment.
pub(crate) fn is_idle(watch: &Child) {
    let mut before = -1.0;
    while used(watch) > before {
        before = used(watch);
        thread::sleep(Duration::from_millis(100));
    }
}

/// The seconds of CPU time that a process has used. Only Linux reports it.
pub(crate) fn used(process: &Child) -> f64 {
    let threads = fs::read_dir(format!("/proc/{}/task", process.id())).into_iter().flatten().flatten();
    let of = |path: &Path| fs::read_to_string(path).ok()?.split(' ').next()?.parse::<f64>().ok();
    threads.filter_map(|thread| of(&thread.path().join("schedstat"))).sum::<f64>() / 1e9
}

pub(crate) fn end(watch: &mut Child) {
    let pid = rustix::process::Pid::from_child(watch);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    watch.wait().expect("it is ours");
}
