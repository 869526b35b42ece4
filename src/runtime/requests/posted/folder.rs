//! A folder of question files. Nothing outside it is read or written, because links are not followed.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags};

use crate::runtime::requests::file_content::{self, Content, FLAGS};

/// Why a folder cannot be used.
pub(super) fn said(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotADirectory => LINK.to_owned(),
        _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => LINK.to_owned(),
        _ => file_content::why(error),
    }
}

/// A folder, opened once: no operation in it can be redirected.
pub(super) struct Folder(OwnedFd);

impl Folder {
    pub(super) fn open(dir: &Path, name: &str) -> io::Result<Self> {
        Ok(Self(rustix::fs::openat(Self::open_without_links(dir)?, name, FOLDER, Mode::empty())?))
    }

    pub(super) fn made(dir: &Path, name: &str) -> io::Result<Self> {
        match rustix::fs::mkdirat(Self::open_without_links(dir)?, name, Mode::from(0o777)) {
            Err(error) if error != rustix::io::Errno::EXIST => Err(error.into()),
            _ => Self::open(dir, name),
        }
    }

    fn open_without_links(dir: &Path) -> io::Result<OwnedFd> {
        // It was a folder without links on the way when a person named it.
        if fs::canonicalize(dir)? != dir {
            return Err(io::Error::from(ErrorKind::NotADirectory));
        }
        Ok(rustix::fs::open(dir, FOLDER, Mode::empty())?)
    }

    /// A file's text, `None` if there is no file, or why it cannot be read.
    pub(super) fn read(&self, name: &str) -> Result<Option<Content>, String> {
        match rustix::fs::openat(&self.0, name, FLAGS, Mode::empty()) {
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(file_content::why(&error.into())),
            Ok(opened) => file_content::content(&File::from(opened)).map(Some),
        }
    }

    /// Writes a file under another name first, so that it is never read incomplete.
    pub(super) fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let new = format!(".{name}.{}", std::process::id());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = match rustix::fs::openat(&self.0, &new, flags, Mode::from(0o666)) {
            // A process with that id died while it was writing.
            Err(rustix::io::Errno::EXIST) => {
                rustix::fs::unlinkat(&self.0, &new, AtFlags::empty())?;
                rustix::fs::openat(&self.0, &new, flags, Mode::from(0o666))?
            }
            made => made?,
        };
        let mut made = File::from(made);
        made.write_all(text.as_bytes())?;
        made.sync_all()?;
        rustix::fs::renameat(&self.0, &new, &self.0, name)?;
        Ok(rustix::fs::fsync(&self.0)?)
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.0, name, AtFlags::empty()) {
            Err(error) if error != rustix::io::Errno::NOENT => Err(error.into()),
            _ => Ok(()),
        }
    }
}

const LINK: &str = "is not in a folder, or there is a link on the way";
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_written_whole_and_replaces_what_a_dead_process_left() {
        let temp = tempfile::tempdir().unwrap();
        let dir = fs::canonicalize(temp.path()).unwrap();
        let folder = Folder::made(&dir, "answered").unwrap();
        fs::write(dir.join("answered").join(format!(".q1.json.{}", std::process::id())), "half of an answer").unwrap();
        folder.write("q1.json", "whole").unwrap();
        assert_eq!(folder.read("q1.json").unwrap().unwrap().text, "whole");
        assert_eq!(fs::read_dir(dir.join("answered")).unwrap().count(), 1);
        folder.remove("q1.json").unwrap();
        assert_eq!(folder.read("q1.json").unwrap().map(|found| found.text), None);
        folder.remove("q1.json").unwrap();
        fs::create_dir(dir.join("answered/q2.json")).unwrap();
        assert!(folder.remove("q2.json").is_err(), "it is there still");
    }

    #[test]
    fn what_leads_elsewhere_is_said_to_be_a_link() {
        for error in [rustix::io::Errno::LOOP, rustix::io::Errno::NOTDIR] {
            assert_eq!(said(&error.into()), LINK, "{error}");
        }
        assert_ne!(said(&rustix::io::Errno::ACCESS.into()), LINK);
    }
}
