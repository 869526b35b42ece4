//! Reads files that agents name or write: whatever the file is, this neither hangs nor fills the memory.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use jiff::Timestamp;
use nix::unistd::{Uid, User};
use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};

use crate::core::requests::question_form::question_file::counts_from;
use crate::core::steering::origin::{FromFile, Origin};

/// The largest file that is read, in bytes.
pub(super) const LARGEST: u64 = 1 << 20;

/// Opening a fifo would block until it is written to, and a link may lead to another place.
pub(super) const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A file's text.
pub(super) struct Content {
    /// Without a byte order mark, which some editors add.
    pub(super) text: String,
    owner: u32,
    /// Identifies the saved content. Changing only the file's permissions or name does not change this.
    pub(super) saved: String,
    /// When anything about the file last changed. No program can set this time.
    pub(super) changed: Timestamp,
}

/// The content that an agent has left in a file.
pub(super) struct Earlier {
    /// As a digest.
    pub(super) what: String,
    /// When anything about the file last changed.
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
    Ok(Content { text, owner: after.uid(), changed: changed(&after), saved: saved(&after) })
}

/// When anything about a file last changed.
fn changed(found: &fs::Metadata) -> Timestamp {
    let nanoseconds = i32::try_from(found.ctime_nsec()).unwrap_or_default();
    Timestamp::new(found.ctime(), nanoseconds).unwrap_or(Timestamp::MAX)
}

/// Identifies the saved content of a file. Changing only its permissions or name does not change this.
fn saved(found: &fs::Metadata) -> String {
    format!("{} {}.{}", found.ino(), found.mtime(), found.mtime_nsec())
}

/// What was left in a file that cannot be read: making it readable does not change it.
pub(super) fn earlier_unread(path: &Path) -> Option<Earlier> {
    let found = fs::symlink_metadata(path).ok()?;
    Some(Earlier { what: saved(&found), changed: changed(&found) })
}

/// Until when a file may still be being written; `None`: it has not changed for a while, or does not exist.
pub(super) fn quiet_from(path: &Path, now: Timestamp) -> Option<Timestamp> {
    let changed = changed(&fs::symlink_metadata(path).ok()?);
    counts_from(changed, now).filter(|_| changed <= now)
}

/// Identifies an answer, to compare it with another.
pub(super) fn digest(answer: &str, closed: bool) -> String {
    let mut digest = Sha256::new();
    digest.update([u8::from(closed)]);
    digest.update(answer);
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
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
    /// The owner of a file is the user who last saved it, or who first created it.
    pub(super) fn origin(&self, file: Option<FromFile>) -> Origin {
        let user = User::from_uid(Uid::from_raw(self.owner)).ok().flatten().map(|user| user.name);
        Origin { uid: self.owner, user, process: std::process::id(), file, ..Origin::default() }
    }
}
