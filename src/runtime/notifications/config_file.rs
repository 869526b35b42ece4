//! The config file of a person. It contains commands, so no other user may be able to write to it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::core::notifications::event_commands::{self, EventCommands};
use crate::store;

/// A config file that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigFile {
    pub path: PathBuf,
    pub commands: EventCommands,
    /// Problems with parts of it.
    pub problems: Vec<String>,
}

impl ConfigFile {
    /// The folder in which its commands run: the folder of the file itself, not of a link to it.
    pub(crate) fn folder(&self) -> PathBuf {
        let real = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        real.parent().unwrap_or(Path::new("/")).to_owned()
    }
}

/// Why a config file cannot be used at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} {why}", path.display())]
pub(crate) struct BadConfig {
    pub path: PathBuf,
    pub why: String,
    /// A hint that helps.
    pub hint: String,
}

/// The name of a project's settings file.
pub(crate) const PROJECT_FILE: &str = ".agent-cli.toml";

/// In bytes, far more than a person writes.
pub(crate) const LARGEST: u64 = 1 << 20;

/// Reads the commands in the config file at the absolute `path`; `None`: it does not exist.
pub(crate) fn read(path: &Path) -> Result<Option<ConfigFile>, BadConfig> {
    let Some(text) = text(path)? else { return Ok(None) };
    let parsed = event_commands::parse(&text).map_err(|why| not_toml(path, &why))?;
    Ok(Some(ConfigFile { path: path.to_owned(), commands: parsed.commands, problems: parsed.problems }))
}

/// The error for a file that is not TOML.
pub(crate) fn not_toml(path: &Path, why: &str) -> BadConfig {
    let hint = format!("fix it by hand, or with {}; docs/configuration.md has an example", to_edit(path));
    BadConfig { path: path.to_owned(), why: format!("is not TOML: {why}"), hint }
}

/// The command that edits the settings file at `path`.
pub(crate) fn to_edit(path: &Path) -> &'static str {
    match path.file_name() {
        Some(name) if name == PROJECT_FILE => "agent-cli config edit --project",
        _ => "agent-cli config edit",
    }
}

/// The text of the user's config file at the absolute `path`; `None`: it does not exist.
pub(crate) fn text(path: &Path) -> Result<Option<String>, BadConfig> {
    let bad = |why: String, hint: &str| BadConfig { path: path.to_owned(), why, hint: hint.to_owned() };
    let unreadable =
        |error: &io::Error| bad(format!("cannot be read: {error}"), "make it a readable file, or remove it");
    // The target of a link is checked and read.
    let real = match fs::canonicalize(path) {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(&error)),
    };
    // The usual way to name no file.
    if real == Path::new("/dev/null") {
        return Ok(None);
    }
    let found = fs::metadata(&real).map_err(|error| unreadable(&error))?;
    if !found.is_file() || found.len() > LARGEST {
        return Err(bad("is not a file with settings".to_owned(), "make it a file, or remove it"));
    }
    if let Some(exposed) = store::exposed(path).map_err(|error| unreadable(&error))? {
        let which = match () {
            () if exposed.place == path || exposed.place == real => String::new(),
            () if Some(exposed.place.as_path()) == real.parent() => "is in a directory that ".to_owned(),
            () => format!("is not safe: {} ", exposed.place.display()),
        };
        return Err(bad(format!("{which}{}, so it is not used", exposed.how.in_words()), &exposed.remedy()));
    }
    fs::read_to_string(&real).map(Some).map_err(|error| unreadable(&error))
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
        for mode in [0o666, 0o646] {
            let (_folder, path) = made(mode);
            let error = read(&path).unwrap_err();
            assert!(error.why.starts_with("can be written by others, so"), "{error}");
        }
        let (folder, path) = made(0o600);
        fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
        let error = read(&path).unwrap_err();
        assert!(error.why.starts_with("is in a directory that can be written by others"), "{error}");
        // A link does not help.
        let elsewhere = tempfile::tempdir().unwrap();
        let link = elsewhere.path().join("config.toml");
        symlink(&path, &link).unwrap();
        assert_eq!(read(&link).unwrap_err().why, error.why);
        fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(read(&link).unwrap().unwrap().folder(), fs::canonicalize(folder.path()).unwrap());
        fs::set_permissions(elsewhere.path(), Permissions::from_mode(0o777)).unwrap();
        let error = read(&link).unwrap_err();
        assert!(error.why.starts_with("is not safe: "), "a link can be replaced, too: {error}");
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
