//! What is certain to be on the disk after a power failure, as the program records it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use agent_cli::failpoint::identity;

use crate::world::World;

/// The certain content of the disk. SQLite keeps its own promises: its files count as they are.
pub(crate) struct Disk(PathBuf);

impl Disk {
    /// A world whose programs record what they sync.
    pub(crate) fn under(world: World) -> World {
        let notes = world.home().join("disk");
        world.with("AGENT_CLI_DISK", notes)
    }

    pub(crate) fn of(world: &World) -> Self {
        Self(world.home().join("disk"))
    }

    fn has(&self, identity: &str) -> Option<Vec<u8>> {
        fs::read(self.0.join(identity)).ok()
    }

    /// The names that a directory has on the disk, and the files they refer to; `None`: it was never synced.
    fn names(&self, folder: &str) -> Option<Vec<(String, String)>> {
        let names = String::from_utf8(self.has(folder)?).expect("names in UTF-8");
        let pair = |line: &str| line.split_once(' ').map(|(identity, name)| (name.to_owned(), identity.to_owned()));
        Some(names.lines().filter_map(pair).collect())
    }

    /// Whether the disk holds this file or directory under its name.
    pub(crate) fn has_name(&self, path: &Path) -> bool {
        let folder = identity(path.parent().expect("a folder")).expect("it is there");
        let name = path.file_name().expect("a name").to_str().expect("UTF-8");
        let named = (format!("{name}{}", if path.is_dir() { "/" } else { "" }), identity(path).expect("it is there"));
        self.names(&folder).is_some_and(|names| names.contains(&named))
    }

    /// Whether a file is on the disk completely.
    pub(crate) fn has_file(&self, path: &Path) -> bool {
        let content = self.has(&identity(path).expect("it is there"));
        content == Some(fs::read(path).expect("readable")) && self.has_name(path)
    }

    /// The power fails, and only the certain content of the disk remains: names that were not synced are the old ones, contents
    /// that were not synced are empty.
    pub(crate) fn is_all_that_is_left_of(&self, folder: &Path) {
        let lost = folder.with_extension("lost");
        fs::rename(folder, &lost).expect("it can be moved");
        self.restore_folder(&identity(&lost).expect("it is there"), folder);
        for entry in fs::read_dir(&lost).expect("readable").map(|entry| entry.expect("readable")) {
            let name = entry.file_name();
            if name.to_str().is_some_and(|name| name.starts_with("agent-cli.db")) {
                fs::rename(entry.path(), folder.join(name)).expect("it can be moved");
            }
        }
        fs::remove_dir_all(lost).expect("it can be removed");
    }

    fn restore_folder(&self, folder: &str, to: &Path) {
        fs::create_dir(to).expect("writable");
        fs::set_permissions(to, fs::Permissions::from_mode(0o700)).expect("it is ours");
        for (name, identity) in self.names(folder).unwrap_or_default() {
            let place = to.join(&name);
            if name.ends_with('/') {
                self.restore_folder(&identity, &place);
            } else {
                fs::write(&place, self.has(&identity).unwrap_or_default()).expect("writable");
                fs::set_permissions(&place, fs::Permissions::from_mode(0o600)).expect("it is ours");
            }
        }
    }
}
