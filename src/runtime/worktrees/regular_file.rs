//! Reads files of repositories and worktrees, in whose place an agent may have put anything.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// More than any file has that is read as a whole.
const LARGEST: u64 = 1 << 20;

/// Opens a file, which may be behind a link. Anything else is an error: reading a named pipe would never end.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).map_err(io::Error::other)?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

/// The beginning of its content.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    open(path)?.take(LARGEST).read_to_end(&mut content)?;
    Ok(content)
}

/// Copies its content to a new file.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    io::copy(&mut open(from)?, &mut File::create_new(to)?).map(drop)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    #[test]
    fn only_files_are_read() {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        fs::write(at("file"), "text").unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        for name in ["file", "link"] {
            assert_eq!(read(&at(name)).unwrap(), b"text");
            copy(&at(name), &at(&format!("copy of {name}"))).unwrap();
        }
        for path in [at("pipe"), at("none"), temp.path().to_owned(), "/dev/zero".into()] {
            assert!(read(&path).is_err() && copy(&path, &at("copy")).is_err(), "{}", path.display());
        }
    }
}
