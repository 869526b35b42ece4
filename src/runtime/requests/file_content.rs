//! Reads a file that agents name, or write: whatever is there, it neither hangs nor fills the memory.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;

use jiff::Timestamp;
use nix::unistd::{Uid, User};
use rustix::fs::OFlags;

use crate::core::chain::origin::{FromFile, Origin};

/// The largest file that is read, in bytes.
pub(super) const LARGEST: u64 = 1 << 20;

/// How to open one: a fifo would wait for somebody who writes to it, and a link leads elsewhere.
pub(super) const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A file's text.
pub(super) struct Content {
    /// Without a byte order mark, which some editors add.
    pub(super) text: String,
    owner: u32,
    /// When anything about the file changed last. No program can set this time.
    pub(super) changed: Timestamp,
}

/// The whole file, or why it cannot be read.
pub(super) fn content(opened: &File) -> Result<Content, String> {
    let why = |error: io::Error| format!("cannot be read: {error}");
    let before = opened.metadata().map_err(why)?;
    if before.is_dir() {
        return Err("is a directory".to_owned());
    }
    if !before.is_file() {
        return Err("is not a regular file".to_owned());
    }
    if before.len() > LARGEST {
        return Err("is larger than 1 MiB".to_owned());
    }
    let mut bytes = Vec::new();
    opened.take(LARGEST + 1).read_to_end(&mut bytes).map_err(why)?;
    let after = opened.metadata().map_err(why)?;
    let state =
        |found: &fs::Metadata| (found.len(), found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec());
    if state(&before) != state(&after) || bytes.len() as u64 != after.len() {
        return Err("is being written".to_owned());
    }
    let text = String::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned())?;
    let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
    let nanoseconds = i32::try_from(after.ctime_nsec()).unwrap_or_default();
    let changed = Timestamp::new(after.ctime(), nanoseconds).unwrap_or(Timestamp::MAX);
    Ok(Content { text, owner: after.uid(), changed })
}

/// Why a file or its folder cannot be opened.
pub(super) fn why(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "does not exist".to_owned(),
        _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => "is a link".to_owned(),
        _ => format!("cannot be read: {error}"),
    }
}

impl Content {
    /// The owner of a file is the one who last saved it, or the one who first made it.
    pub(super) fn origin(&self, file: Option<FromFile>) -> Origin {
        let user = User::from_uid(Uid::from_raw(self.owner)).ok().flatten().map(|user| user.name);
        Origin { uid: self.owner, user, process: std::process::id(), file, ..Origin::default() }
    }
}
