//! A file system of its own, which a test can fill.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Enough for a host and its agents.
const MEGABYTES: u64 = 64;

/// A disk that only root can create. It is removed when it is dropped.
pub(crate) struct SmallDisk(TempDir);

impl SmallDisk {
    /// `None`: this user may not mount file systems.
    pub(crate) fn new() -> Option<Self> {
        let folder = tempfile::Builder::new().prefix("agent-cli-test-").tempdir().expect("a temporary directory");
        let size = format!("size={MEGABYTES}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()).output();
        let mounted = mounted.expect("mount can be started");
        mounted.status.success().then_some(Self(folder))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Leaves no room for anything.
    pub(crate) fn fill(&self) {
        let mut filler = File::create(self.filler()).expect("the disk has room for a name");
        let full = loop {
            // The last bytes, too.
            if let Err(error) = filler.write_all(&[0; 4096]) {
                break error;
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::StorageFull, "{full}");
    }

    /// Makes room again.
    pub(crate) fn clear(&self) {
        fs::remove_file(self.filler()).expect("the disk was filled");
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Something may still use it; then it goes when that ends.
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).output();
    }
}
