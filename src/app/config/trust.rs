//! Stores the project files that the user trusts, by path and content: a changed file is no longer trusted.

use std::fmt::Write as _;
use std::fs::{self, File, Metadata};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

/// The list of trusted files in the state directory. Each line has the digest of a file's content and its path.
#[derive(Clone, Debug)]
pub(crate) struct Trust {
    list: PathBuf,
}

impl Trust {
    pub(crate) fn new(list: PathBuf) -> Self {
        Self { list }
    }

    /// Whether the user trusts `content` at `path`. If the list cannot be read, nothing is trusted.
    pub(crate) fn includes(&self, path: &Path, content: &str) -> bool {
        let line = line(path, content);
        let list = fs::read_to_string(&self.list).unwrap_or_default();
        line.is_some_and(|line| list.lines().any(|known| known == line))
    }

    /// Trusts `content` at `path`, in place of its former content.
    pub(crate) fn add(&self, path: &Path, content: &str) -> io::Result<()> {
        let line = line(path, content).ok_or_else(|| io::Error::other("its path is not UTF-8, or has a line break"))?;
        self.write(path, Some(line))
    }

    /// Stops trusting the file at `path`. Returns whether it was trusted.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<bool> {
        let had = fs::read_to_string(&self.list).unwrap_or_default().lines().any(|line| is_of(line, path));
        if had {
            self.write(path, None)?;
        }
        Ok(had)
    }

    fn write(&self, path: &Path, new: Option<String>) -> io::Result<()> {
        let before = match fs::read_to_string(&self.list) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            before => before?,
        };
        let kept = before.lines().filter(|line| !is_of(line, path)).map(str::to_owned);
        let text: String = kept.chain(new).map(|line| line + "\n").collect();
        replace(&self.list, &text, 0o600)
    }
}

fn is_of(line: &str, path: &Path) -> bool {
    line.split_once("  ").is_some_and(|(_, named)| Path::new(named) == path)
}

fn line(path: &Path, content: &str) -> Option<String> {
    let path = path.to_str().filter(|path| !path.contains(['\n', '\r']))?;
    let mut line = String::new();
    for byte in Sha256::digest(content) {
        let _ = write!(line, "{byte:02x}");
    }
    Some(format!("{line}  {path}"))
}

/// Replaces a file atomically, so that readers never see it incomplete. If the path is a link, this replaces the link's
/// target. The file keeps its mode and its owner, and one that is read-only is not replaced.
pub(crate) fn replace(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let found = fs::metadata(&real).ok();
    if found.as_ref().is_some_and(|found| !found.is_file()) {
        return Err(io::Error::other("it is not a regular file"));
    }
    if found.as_ref().is_some_and(|found| found.permissions().readonly()) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is read-only"));
    }
    let folder = real.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    // The name of the temporary file says nothing to a person.
    let mut file = NamedTempFile::new_in(folder).map_err(|error| io::Error::from(error.kind()))?;
    file.as_file_mut().write_all(text.as_bytes())?;
    if let Some(found) = &found {
        keep_owner(file.as_file(), found)?;
    }
    let mode = found.map_or(mode, |found| found.permissions().mode() & 0o7777);
    file.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    file.as_file().sync_all()?;
    file.persist(&real).map(drop).map_err(|error| error.error)
}

/// Gives a new file the owner of the one that it replaces. Whoever may not do that must not take the file from its owner.
fn keep_owner(file: &File, replaced: &Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if own.uid() != replaced.uid() {
        let given = fchown(file, Some(replaced.uid()), Some(replaced.gid()));
        return given.map_err(|_| io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"));
    }
    if own.gid() != replaced.gid() {
        // Not every user may use every group.
        let _ = fchown(file, None, Some(replaced.gid()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_trusted_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let trust = Trust::new(folder.path().join("list"));
        let (one, other) = (Path::new("/a/.agent-cli.toml"), Path::new("/b/.agent-cli.toml"));
        assert!(!trust.includes(one, "x"));
        trust.add(one, "x").unwrap();
        trust.add(other, "x").unwrap();
        assert!(trust.includes(one, "x") && trust.includes(other, "x"));
        assert!(!trust.includes(one, "y"), "its content has changed");
        trust.add(one, "y").unwrap();
        assert!(trust.includes(one, "y") && !trust.includes(one, "x"));
        assert!(trust.remove(one).unwrap());
        assert!(!trust.remove(one).unwrap());
        assert!(!trust.includes(one, "y") && trust.includes(other, "x"));
        assert!(trust.add(Path::new("/a\nb"), "x").is_err());
        let mode = fs::metadata(folder.path().join("list")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_is_replaced_keeps_its_owner_and_mode_and_one_that_is_read_only_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "before").unwrap();
        let set_mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        set_mode(0o640);
        // Only root may give a file away.
        let owner = if rustix::process::geteuid().is_root() { 12_345 } else { rustix::process::geteuid().as_raw() };
        std::os::unix::fs::chown(&file, Some(owner), None).unwrap();
        replace(&file, "after", 0o600).unwrap();
        let found = fs::metadata(&file).unwrap();
        assert_eq!((found.uid(), found.permissions().mode() & 0o777), (owner, 0o640));
        set_mode(0o440);
        assert_eq!(replace(&file, "again", 0o600).unwrap_err().to_string(), "it is read-only");
        assert_eq!(fs::read_to_string(&file).unwrap(), "after");
        assert!(replace(folder.path(), "text", 0o600).is_err());
    }
}
