//! Reads files of projects and repositories, in whose place an agent, or the author of a repository, may have put anything.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// More than any file of a repository has whose beginning is read.
const BEGINNING: u64 = 1 << 20;
/// The largest file that is read as a whole.
const LARGEST: u64 = 64 << 20;

/// Opens a file, which may be behind a link. Anything else is an error: reading a named pipe would never end.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).map_err(io::Error::other)?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

/// The beginning of its content.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    open(path)?.take(BEGINNING).read_to_end(&mut content)?;
    Ok(content)
}

/// Its whole content.
pub(crate) fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    open(path)?.take(LARGEST + 1).read_to_end(&mut content)?;
    if content.len() as u64 > LARGEST {
        return Err(io::Error::other("it has more than 64 MiB"));
    }
    Ok(content)
}

/// Its whole content, which must be text.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read_whole(path)?).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// Copies its content to a new file.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
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
            assert_eq!(read_text(&at(name)).unwrap(), "text");
            copy(&at(name), &at(&format!("copy of {name}"))).unwrap();
        }
        for path in [at("pipe"), at("none"), temp.path().to_owned(), "/dev/zero".into()] {
            assert!(
                read(&path).is_err() && read_whole(&path).is_err() && copy(&path, &at("copy")).is_err(),
                "{}",
                path.display()
            );
        }
    }
}
