//! The config file of a person. It contains commands, so nobody else may be able to write it.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::core::notifications::config::{self, Commands};

/// A config file that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigFile {
    pub path: PathBuf,
    pub commands: Commands,
    /// What is wrong with parts of it.
    pub problems: Vec<String>,
}

/// Why nothing in a config file is used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} {why}", path.display())]
pub(crate) struct BadConfig {
    pub path: PathBuf,
    pub why: String,
    /// What helps.
    pub hint: String,
}

/// In bytes. Nobody writes so many commands.
const LARGEST: u64 = 1 << 20;

/// Reads the config file at `path`, an absolute one; `None`: it does not exist.
///
/// # Errors
///
/// It cannot be read, or somebody else could write it.
pub(crate) fn read(path: &Path) -> Result<Option<ConfigFile>, BadConfig> {
    let bad = |why: String, hint: &str| BadConfig { path: path.to_owned(), why, hint: hint.to_owned() };
    let unreadable =
        |error: &io::Error| bad(format!("cannot be read: {error}"), "make it a readable file, or remove it");
    // What a link leads to is what is read.
    let real = match fs::canonicalize(path) {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(&error)),
    };
    let found = fs::metadata(&real).map_err(|error| unreadable(&error))?;
    if !found.is_file() || found.len() > LARGEST {
        return Err(bad("is not a file with settings".to_owned(), "make it a file, or remove it"));
    }
    let folder = real.parent().unwrap_or(Path::new("/"));
    let of_folder = fs::metadata(folder).map_err(|error| unreadable(&error))?;
    let own = rustix::process::geteuid().as_raw();
    for (place, metadata) in [(real.as_path(), &found), (folder, &of_folder)] {
        if let Some(why) = is_writable_by_others(metadata, own) {
            let which = if place == folder { "is in a directory that" } else { "" };
            let hint = format!("chmod go-w {0}, and let it belong to you", place.display());
            return Err(bad(format!("{which} {why}, so its commands are not run").trim_start().to_owned(), &hint));
        }
    }
    let text = fs::read_to_string(&real).map_err(|error| unreadable(&error))?;
    let parsed = config::parse(&text);
    let parsed = parsed.map_err(|why| bad(format!("is not TOML: {why}"), "docs/notifications.md has an example"))?;
    Ok(Some(ConfigFile { path: path.to_owned(), commands: parsed.commands, problems: parsed.problems }))
}

fn is_writable_by_others(found: &Metadata, own: u32) -> Option<&'static str> {
    const OTHERS: u32 = 0o022;
    const STICKY: u32 = 0o1000;
    if found.uid() != own && found.uid() != 0 {
        return Some("belongs to another user");
    }
    // In a directory like /tmp everybody can add files, and nobody replaces those of others.
    let is_shared = found.is_dir() && found.mode() & STICKY != 0;
    (found.mode() & OTHERS != 0 && !is_shared).then_some("others can write")
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn made(mode: u32) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        fs::write(&path, "[on]\ndone = 'tell'\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        (folder, path)
    }

    #[test]
    fn a_file_of_its_owner_is_read() {
        let (_folder, path) = made(0o644);
        assert_eq!(read(&path).unwrap().unwrap().commands.of.len(), 1);
        assert_eq!(read(&path.with_extension("other")).unwrap(), None);
    }

    #[test]
    fn commands_that_others_could_have_written_are_not_run() {
        for mode in [0o664, 0o646] {
            let (_folder, path) = made(mode);
            let error = read(&path).unwrap_err();
            assert!(error.why.starts_with("others can write, so"), "{error}");
        }
        let (folder, path) = made(0o600);
        fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
        let error = read(&path).unwrap_err();
        assert!(error.why.starts_with("is in a directory that others can write"), "{error}");
        // A link does not help.
        let elsewhere = tempfile::tempdir().unwrap();
        let link = elsewhere.path().join("config.toml");
        symlink(&path, &link).unwrap();
        assert_eq!(read(&link).unwrap_err().why, error.why);
        fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
        assert!(read(&link).unwrap().is_some());
    }

    #[test]
    fn a_file_may_belong_to_its_user_or_to_root() {
        let (_folder, path) = made(0o600);
        let found = fs::metadata(&path).unwrap();
        assert_eq!(is_writable_by_others(&found, found.uid()), None);
        let of_another = is_writable_by_others(&found, found.uid() + 1);
        assert_eq!(of_another, (found.uid() != 0).then_some("belongs to another user"));
    }

    #[test]
    fn what_is_not_a_file_with_settings_is_refused() {
        let (folder, path) = made(0o600);
        assert!(read(folder.path()).unwrap_err().why.contains("not a file"));
        fs::write(&path, "x").unwrap();
        assert!(read(&path).unwrap_err().why.starts_with("is not TOML: line 1: "));
        fs::write(&path, b"\xff").unwrap();
        assert!(read(&path).unwrap_err().why.starts_with("cannot be read"));
    }
}
