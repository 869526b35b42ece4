//! Programs that tests make and run.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a program that can be run at once.
///
/// Another process writes it: a process that another test starts meanwhile would inherit the open file for a moment, and the system
/// runs no file that somebody has open for writing.
pub(crate) fn write_executable(path: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().expect("a file is in a directory")).expect("the directory can be made");
    let mut shell = Command::new("/bin/sh")
        .args(["-c", "cat > \"$1\" && chmod 755 \"$1\"", "sh"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("sh can be started");
    shell.stdin.take().expect("it is piped").write_all(text.as_ref()).expect("cat reads it");
    assert!(shell.wait().expect("it ends").success(), "{} can be written", path.display());
}

/// Copies a program, for the same reason by another process.
pub(crate) fn copy_executable(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().expect("a file is in a directory")).expect("the directory can be made");
    assert!(Command::new("cp").args([from, to]).status().expect("cp can be started").success());
}
