//! Checks whether the state directory can be used: one function for each check.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use crate::core::housekeeping::doctor_finding::Finding;
use crate::core::text::shell::shell_path;
use crate::store::error::StoreError;
use crate::store::files::durable::{TEMPORARY, create_private};
use crate::store::files::ownership::trusted;
use crate::store::files::state_dir::StateDir;
use crate::store::handle::Store;
use crate::store::housekeeping::database_facts::Condition;

/// The findings about the state directory at `dir`. Creates nothing permanent. `named`: a person chose it.
pub(crate) fn findings(dir: &Path, named: bool) -> Vec<Finding> {
    let (place, is_usable) = place(dir, named);
    if !is_usable {
        return vec![place];
    }
    let existing = existing(dir);
    let space = rustix::fs::statvfs(&existing).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)).ok();
    let mut found = vec![place];
    found.extend(space.map(free_space));
    found.extend(file_system(&existing));
    if existing == dir {
        found.extend(fs::metadata(dir).ok().map(|known| privacy(dir, known.permissions().mode())));
        found.push(locks(try_locks(dir)));
    }
    found
}

/// The store, if it exists, and the findings about it.
pub(crate) fn open(dir: &Path) -> (Option<Store>, Finding) {
    if StateDir::new(dir).is_ok_and(|dir| !Store::exists(&dir)) {
        return (None, Finding::ok(DATABASE, "not created yet; the first chain creates it"));
    }
    match Store::open(dir).and_then(|store| store.housekeeping().condition().map(|condition| (store, condition))) {
        Ok((_, Condition::Damaged(damage))) => (None, damaged(dir, &damage)),
        Ok((store, condition)) => match store.housekeeping().other_schema() {
            Ok(other) if other.is_empty() => (Some(store), Finding::ok(DATABASE, condition.in_words())),
            Ok(other) => (Some(store), made_by_another_build(&other)),
            Err(error) => (None, unusable(&error)),
        },
        Err(error) => (None, unusable(&error)),
    }
}

const PLACE: &str = "state-directory";
const DATABASE: &str = "database";
const ELSEWHERE: &str = "set AGENT_CLI_STATE_DIR to another directory";

/// In bytes. Every checkpoint is copied, and a long conversation takes megabytes.
pub(crate) const LITTLE_SPACE: u64 = 200 << 20;

/// Network file systems of Linux, where locks may not exclude another machine, or do nothing.
#[cfg(target_os = "linux")]
const NETWORK: [(u32, &str); 8] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x0102_1997, "9P"),
    (0x5346_414f, "AFS"),
    (0x00c3_6400, "Ceph"),
    (0x6573_5546, "FUSE"),
];

/// The directory, or the nearest one above it that exists.
fn existing(dir: &Path) -> PathBuf {
    dir.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("/")).to_owned()
}

/// Checks where the state directory is and what is there. Also returns whether it can be used.
fn place(dir: &Path, named: bool) -> (Finding, bool) {
    let shown = dir.display();
    let source = if named { "named by AGENT_CLI_STATE_DIR" } else { "the platform's" };
    let existing = existing(dir);
    if !existing.is_dir() {
        let message = format!("{shown} ({source}) cannot be created: {} is not a directory", existing.display());
        return (Finding::problem(PLACE, message, ELSEWHERE), false);
    }
    if rustix::fs::access(&existing, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let message = format!("{shown} ({source}) cannot be used: {} cannot be written", existing.display());
        return (Finding::problem(PLACE, message, format!("make it writable for this user, or {ELSEWHERE}")), false);
    }
    if let Err(StoreError::Exposed { exposed, .. }) = trusted(dir) {
        let message = format!("{shown} ({source}) is not used: {}", exposed.in_words());
        return (Finding::problem(PLACE, message, exposed.remedy()), false);
    }
    let state = if existing == dir { "" } else { ", which does not exist yet" };
    (Finding::ok(PLACE, format!("{shown} ({source}){state}")), true)
}

/// Whether other users can read the directory, which contains everything that agents said.
fn privacy(dir: &Path, mode: u32) -> Finding {
    match mode & 0o777 {
        mode if mode & 0o077 == 0 => Finding::ok("privacy", "only its owner can read the state directory"),
        mode => Finding::warning(
            "privacy",
            format!("other users can read the state directory (mode {mode:03o}), which contains conversations"),
            format!("chmod 700 {}", shell_path(dir)),
        ),
    }
}

fn free_space(bytes: u64) -> Finding {
    let mebibytes = bytes >> 20;
    if bytes < LITTLE_SPACE {
        let message = format!("the disk of the state directory has {mebibytes} MB left");
        return Finding::warning("space", message, "free some space: a chain stops when its state cannot be written");
    }
    Finding::ok("space", "the disk of the state directory has enough space")
}

#[cfg(target_os = "linux")]
fn file_system(existing: &Path) -> Option<Finding> {
    let found = rustix::fs::statfs(existing).ok()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the number has 32 bits everywhere")]
    let kind = found.f_type as u32;
    Some(kind_of_file_system(kind))
}

#[cfg(target_os = "linux")]
fn kind_of_file_system(kind: u32) -> Finding {
    match NETWORK.iter().find(|(number, _)| *number == kind) {
        Some((_, name)) => Finding::warning(
            "file-system",
            format!(
                "the state directory is on {name}, where file locks may fail: two commands could run one agent twice"
            ),
            "set AGENT_CLI_STATE_DIR to a directory on a local disk",
        ),
        None => Finding::ok("file-system", "the state directory is on a local file system"),
    }
}

#[cfg(not(target_os = "linux"))]
fn file_system(_: &Path) -> Option<Finding> {
    None
}

/// Whether a second lock on a locked file is refused.
fn try_locks(dir: &Path) -> io::Result<bool> {
    let path = dir.join(format!("probe-{}{TEMPORARY}", uuid::Uuid::new_v4()));
    let first = create_private(&path)?;
    let second = File::open(&path);
    let removed = fs::remove_file(&path);
    let second = second?;
    removed?;
    first.lock()?;
    match second.try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn locks(held: io::Result<bool>) -> Finding {
    let hint = "set AGENT_CLI_STATE_DIR to a directory on a local disk";
    match held {
        Ok(true) => Finding::ok("locks", "file locks work in the state directory"),
        Ok(false) => Finding::problem("locks", "file locks do not work in the state directory", hint),
        Err(error) => {
            Finding::problem("locks", format!("files in the state directory cannot be locked: {error}"), hint)
        }
    }
}

impl Condition {
    fn in_words(&self) -> &'static str {
        match self {
            Self::Opens => "it can be opened; agent-cli fsck checks all of it",
            Self::Intact | Self::Damaged(_) => "it can be opened and is intact",
        }
    }
}

fn made_by_another_build(other: &[String]) -> Finding {
    let message =
        format!("another build of agent-cli has made the database: {} are not what they should be", other.join(", "));
    Finding::problem(DATABASE, message, "agent-cli fsck says more, and fsck --repair makes indexes that are missing")
}

fn damaged(dir: &Path, damage: &str) -> Finding {
    let message = format!("the database in {} is damaged: {}", dir.display(), damage.replace('\n', " "));
    Finding::problem(DATABASE, message, format!("move it away and restore a backup, or {ELSEWHERE}"))
}

fn unusable(error: &StoreError) -> Finding {
    use std::error::Error as _;
    let cause = error.source().map_or_else(String::new, |cause| format!(": {cause}"));
    let hint = match error {
        StoreError::Newer { .. } => "upgrade agent-cli",
        StoreError::Busy(_) => "run the command again",
        StoreError::Full(_) => "free some space",
        StoreError::Server { .. } => "check the server with the same address: psql ADDRESS",
        StoreError::ObjectStorage { place, .. } if place.starts_with("s3://") => {
            "check AWS_ENDPOINT_URL, AWS_REGION and the key, which must be able to read, write and delete objects"
        }
        StoreError::ObjectStorage { .. } => "check that the directory is there and can be written",
        _ => ELSEWHERE,
    };
    Finding::problem(DATABASE, format!("{error}{cause}"), hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::housekeeping::doctor_finding::{Status, worst};

    #[test]
    fn a_directory_that_is_not_there_is_not_made() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("a/b");
        let found = findings(&dir, true);
        assert_eq!(
            found[0].message,
            format!("{} (named by AGENT_CLI_STATE_DIR), which does not exist yet", dir.display())
        );
        assert!(!temp.path().join("a").exists());
        assert!(open(&dir).0.is_none() && !temp.path().join("a").exists());
    }

    #[test]
    fn a_check_leaves_nothing_behind() {
        let temp = tempfile::tempdir().unwrap();
        assert_ne!(worst(&findings(temp.path(), false)), Status::Problem);
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
        assert!(try_locks(temp.path()).unwrap());
    }

    #[test]
    fn what_cannot_be_written_is_a_problem() {
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join("file"), "").unwrap();
        let found = findings(&temp.path().join("file/below"), false);
        assert_eq!((found.len(), found[0].status), (1, Status::Problem));
        fs::set_permissions(temp.path(), PermissionsExt::from_mode(0o500)).unwrap();
        // The superuser may write everywhere.
        if File::create(temp.path().join("probe")).is_err() {
            assert_eq!(findings(&temp.path().join("below"), false)[0].status, Status::Problem);
        }
        fs::set_permissions(temp.path(), PermissionsExt::from_mode(0o700)).unwrap();
    }

    #[test]
    fn what_is_doubtful_is_a_warning_and_what_fails_a_problem() {
        assert_eq!(
            [0o700, 0o750, 0o701].map(|mode| privacy(Path::new("/s"), mode).status),
            [Status::Ok, Status::Warning, Status::Warning]
        );
        assert_eq!([LITTLE_SPACE, LITTLE_SPACE - 1].map(|left| free_space(left).status), [Status::Ok, Status::Warning]);
        let held = [Ok(true), Ok(false), Err(io::Error::from(io::ErrorKind::Unsupported))];
        assert_eq!(held.map(|held| locks(held).status), [Status::Ok, Status::Problem, Status::Problem]);
    }

    #[test]
    fn the_hint_helps_against_what_is_wrong_with_the_database() {
        let full = StoreError::io(Path::new("/s"), io::ErrorKind::StorageFull.into());
        let over_quota = StoreError::io(Path::new("/s"), io::ErrorKind::QuotaExceeded.into());
        let newer = StoreError::Newer { path: "/s".into(), found: 9, known: 8 };
        for (error, hint) in [
            (full, "free some space"),
            (over_quota, "free some space"),
            (newer, "upgrade agent-cli"),
            (StoreError::Busy("/s".into()), "run the command again"),
            (StoreError::io(Path::new("/s"), io::ErrorKind::ReadOnlyFilesystem.into()), ELSEWHERE),
        ] {
            assert_eq!(unusable(&error).hint.as_deref(), Some(hint), "{error}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn network_file_systems_are_known() {
        assert_eq!(kind_of_file_system(0xef53).status, Status::Ok);
        let found = kind_of_file_system(0x6969);
        assert!(found.status == Status::Warning && found.message.contains("NFS"), "{found:?}");
    }

    #[test]
    fn a_database_is_opened_and_read() {
        let (_temp, store) = crate::store::testing::in_file();
        store.root();
        let dir = store.dir().path().to_owned();
        drop(store);
        let (store, finding) = open(&dir);
        assert!(store.is_some() && finding.status == Status::Ok, "{finding:?}");
        fs::write(dir.join("agent-cli.db"), "no database").unwrap();
        let (store, finding) = open(&dir);
        assert!(store.is_none() && finding.status == Status::Problem, "{finding:?}");
        assert_eq!(damaged(&dir, "page 2\nis lost").status, Status::Problem);
    }
}
