//! A wrong clock for one process and those that it starts.

use std::fs;
use std::path::PathBuf;

/// The variables with which the clock of a process is off by this much: `+3d`, `-100`.
pub(crate) fn off_by(time: &str) -> [(&'static str, String); 3] {
    let folders = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let libraries = folders.map(|folder| folder.path().join("faketime/libfaketime.so.1"));
    let library: Option<PathBuf> = libraries.into_iter().find(|library| library.is_file());
    let library = library.expect("libfaketime is missing: install it (Debian: apt install faketime)");
    let clocks = ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned());
    [("LD_PRELOAD", library.display().to_string()), ("FAKETIME", time.to_owned()), clocks]
}
