//! The processes of this machine: their parents and their environments, as far as the system shows them.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::{fs, process};

use nix::unistd;
use rustix::process::Pid;

/// This process and its ancestors, the nearest first.
pub(crate) fn ancestors() -> impl Iterator<Item = Pid> {
    let own = i32::try_from(process::id()).ok().and_then(Pid::from_raw);
    own.into_iter().flat_map(ancestors_of)
}

/// A process and its ancestors, the nearest first.
pub(crate) fn ancestors_of(pid: Pid) -> impl Iterator<Item = Pid> {
    std::iter::successors(Some(pid), |pid| parent(*pid))
}

/// The process that has started or adopted another one.
pub(crate) fn parent(pid: Pid) -> Option<Pid> {
    system::parent(pid)
}

/// The leaders of this process's session and group. They may be alive even if a process in between has ended.
pub(crate) fn leaders() -> impl Iterator<Item = Pid> {
    [unistd::getsid(None), unistd::getpgid(None)].into_iter().flatten().filter_map(visible)
}

/// The same of another process.
pub(crate) fn leaders_of(pid: Pid) -> impl Iterator<Item = Pid> {
    let pid = Some(unistd::Pid::from_raw(pid.as_raw_nonzero().get()));
    [unistd::getsid(pid), unistd::getpgid(pid)].into_iter().flatten().filter_map(visible)
}

/// In a container the leader may be a process outside it, which the system calls 0.
fn visible(leader: unistd::Pid) -> Option<Pid> {
    Pid::from_raw(leader.as_raw())
}

/// Whether two paths lead to the same directory: a process may know it by another name, such as a symbolic link.
pub(crate) fn is_same_directory(one: &Path, other: &Path) -> bool {
    same_file(one, other).unwrap_or(one == other)
}

/// Whether two paths lead to the same file, which exists.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    same_file(one, other).unwrap_or_default()
}

fn same_file(one: &Path, other: &Path) -> Option<bool> {
    let file = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    Some(file(one)? == file(other)?)
}

pub(crate) use system::{all, arguments, below, holds_lock, program};

/// The environment that a process was started with. Empty if the system does not show it, as for another user's process.
pub(crate) use system::Environment;

impl Environment {
    pub(crate) fn read(pid: Pid) -> Self {
        #[cfg(test)]
        READ.with_borrow_mut(|read| read.push(pid));
        system::environment(pid)
    }
}

#[cfg(test)]
thread_local! {
    /// Whose environments a test has had read.
    pub(crate) static READ: std::cell::RefCell<Vec<Pid>> = const { std::cell::RefCell::new(Vec::new()) };
}

#[cfg(target_os = "linux")]
mod system {
    use std::ffi::OsStr;
    use std::fs::{self, File};
    use std::io::{self, Read};
    use std::path::{Path, PathBuf};

    use super::Pid;

    /// Most of these files are shorter.
    const PAGE: usize = 4096;

    pub(crate) fn all() -> Vec<Pid> {
        let names = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.file_name());
        names.filter_map(|name| name.to_str()?.parse().ok()).filter_map(Pid::from_raw).collect()
    }

    /// All processes below one, without reading any other; `None`: the system does not show them.
    pub(crate) fn below(top: Pid) -> Option<Vec<Pid>> {
        let mut found = children(top)?;
        let mut at = 0;
        while let Some(pid) = found.get(at).copied() {
            // A process that has ended has no children any more.
            found.extend(children(pid).unwrap_or_default());
            at += 1;
        }
        Some(found)
    }

    /// The system lists them by the thread that has started or adopted them.
    fn children(pid: Pid) -> Option<Vec<Pid>> {
        let threads = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())).ok()?;
        let mut found = Vec::new();
        let mut is_shown = false;
        for thread in threads.flatten() {
            let Ok(listed) = fs::read_to_string(thread.path().join("children")) else { continue };
            is_shown = true;
            found.extend(listed.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)));
        }
        is_shown.then_some(found)
    }

    pub(crate) fn parent(pid: Pid) -> Option<Pid> {
        let stat = String::from_utf8(read(pid, "stat").ok()?).ok()?;
        // The name before the last parenthesis may contain anything.
        let fields = stat.rsplit_once(')')?.1;
        Pid::from_raw(fields.split_whitespace().nth(1)?.parse().ok()?)
    }

    /// The arguments that it was started with, and the file that it executes.
    pub(crate) fn arguments(pid: Pid) -> Vec<String> {
        let words = read(pid, "cmdline").unwrap_or_default();
        let words = words.strip_suffix(b"\0").unwrap_or(&words);
        words.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }

    pub(crate) fn program(pid: Pid) -> PathBuf {
        format!("/proc/{}/exe", pid.as_raw_nonzero()).into()
    }

    /// Whether it has such a file open that is locked as the program locks files, as far as the system shows that.
    pub(crate) fn holds_lock(pid: Pid, is_meant: impl Fn(&Path) -> bool) -> bool {
        let mut files = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())).into_iter().flatten().flatten();
        let is_locked = |name: &OsStr| {
            let shown = name.to_str().and_then(|name| read(pid, &format!("fdinfo/{name}")).ok());
            shown.is_some_and(|shown| String::from_utf8_lossy(&shown).lines().any(|line| line.contains("FLOCK")))
        };
        files.any(|file| fs::read_link(file.path()).is_ok_and(|path| is_meant(&path)) && is_locked(&file.file_name()))
    }

    pub(crate) fn environment(pid: Pid) -> Environment {
        Environment(read(pid, "environ").unwrap_or_default())
    }

    /// The system reports no length for these files, so `fs::read` would start with a few bytes and read many times. Without
    /// `take`, it would be asked for the length of each.
    fn read(pid: Pid, name: &str) -> io::Result<Vec<u8>> {
        let mut content = Vec::with_capacity(PAGE);
        File::open(format!("/proc/{}/{name}", pid.as_raw_nonzero()))?.take(u64::MAX).read_to_end(&mut content)?;
        Ok(content)
    }

    pub(crate) struct Environment(Vec<u8>);

    impl Environment {
        pub(crate) fn has(&self, mark: &str) -> bool {
            self.0.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        }

        pub(crate) fn value(&self, name: &str) -> Option<String> {
            let mut variables = self.0.split(|byte| *byte == 0);
            let value = variables.find_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
            String::from_utf8(value.to_owned()).ok()
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use super::Pid;

    pub(crate) fn all() -> Vec<Pid> {
        ask(&["-axo", "pid="]).lines().filter_map(|line| Pid::from_raw(line.trim().parse().ok()?)).collect()
    }

    pub(crate) fn below(_: Pid) -> Option<Vec<Pid>> {
        None
    }

    pub(crate) fn parent(pid: Pid) -> Option<Pid> {
        Pid::from_raw(ask(&["-o", "ppid=", "-p", &pid.as_raw_nonzero().to_string()]).trim().parse().ok()?)
    }

    pub(crate) fn arguments(pid: Pid) -> Vec<String> {
        let words = ask(&["-wwo", "command=", "-p", &pid.as_raw_nonzero().to_string()]);
        words.split_whitespace().map(str::to_owned).collect()
    }

    pub(crate) fn program(pid: Pid) -> PathBuf {
        ask(&["-wwo", "comm=", "-p", &pid.as_raw_nonzero().to_string()]).trim().into()
    }

    /// `ps` does not show locks.
    pub(crate) fn holds_lock(_: Pid, _: impl Fn(&Path) -> bool) -> bool {
        false
    }

    pub(crate) fn environment(pid: Pid) -> Environment {
        Environment(ask(&["-Ewwo", "command=", "-p", &pid.as_raw_nonzero().to_string()]))
    }

    /// `ps` separates variables with spaces, which a path may also contain.
    pub(crate) struct Environment(String);

    impl Environment {
        pub(crate) fn has(&self, mark: &str) -> bool {
            self.0.contains(mark)
        }

        pub(crate) fn value(&self, name: &str) -> Option<String> {
            let (_, rest) = self.0.split_once(&format!(" {name}="))?;
            let is_name = |word: &str| {
                let name = word.split_once('=').map(|(name, _)| name);
                name.is_some_and(|name| name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()))
            };
            let mut words = rest.split(' ');
            let first = words.next()?.trim_end().to_owned();
            let more = words.take_while(|word| !is_name(word));
            Some(more.fold(first, |value, word| format!("{value} {}", word.trim_end())))
        }
    }

    fn ask(arguments: &[&str]) -> String {
        let output = Command::new("ps").args(arguments).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn only_a_file_that_is_locked_counts() {
        let temp = tempfile::tempdir().unwrap();
        let [locked, open] = ["locked", "open"].map(|name| fs::File::create(temp.path().join(name)).unwrap());
        let holds = |name: &str| holds_lock(rustix::process::getpid(), |path| path.ends_with(name));
        locked.lock_shared().unwrap();
        assert_eq!([holds("locked"), holds("open")], [true, false]);
        drop((locked, open));
        assert!(!holds("locked"));
    }

    #[test]
    fn a_leader_outside_of_the_container_is_none() {
        assert_eq!(visible(unistd::Pid::from_raw(0)), None);
        assert_eq!(visible(unistd::Pid::this()).map(Pid::as_raw_pid), Some(unistd::Pid::this().as_raw()));
    }
}
