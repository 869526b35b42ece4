//! Stores the project files that the user trusts, by path and content: a changed file is no longer trusted.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt;
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
/// target.
pub(crate) fn replace(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mode = fs::metadata(&real).map_or(mode, |found| found.permissions().mode() & 0o7777);
    let folder = real.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    file.as_file().sync_all()?;
    file.persist(&real).map(drop).map_err(|error| error.error)
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
}
