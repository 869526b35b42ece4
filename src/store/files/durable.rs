//! Writes private files so that readers never see them incomplete, and so that they survive a power failure if they must.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::failpoint::{self, Moment, Step};

/// The permissions of the state directory and its subdirectories.
pub(crate) const PRIVATE_DIR: u32 = 0o700;
/// The permissions of every file in the state directory.
pub(crate) const PRIVATE: u32 = 0o600;
/// The suffix of files that are about to be renamed or removed. They remain if the process is killed.
pub(crate) const TEMPORARY: &str = ".tmp";

/// What a file must survive, and who writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// The end of its process. It can be written again, and several processes may write it at once.
    Process,
    /// A power failure. There is only one writer, which holds a lease or a lock. Files of a killed writer are overwritten.
    PowerFailure,
}

/// A file that is written under another name in the same folder. If it is dropped before it is renamed, it is deleted.
pub(crate) struct Replacement {
    step: Step,
    durability: Durability,
    to: PathBuf,
    file: NamedTempFile,
}

impl Replacement {
    /// An empty file, for the failpoints of `step`.
    pub(crate) fn new(step: Step, to: &Path, durability: Durability) -> io::Result<Self> {
        let folder = folder(to);
        // An agent may have removed its frame's directory.
        make_private(folder)?;
        let name = beside(to);
        let file = match durability {
            Durability::Process => tempfile::Builder::new().prefix(&name).suffix(TEMPORARY).tempfile_in(folder)?,
            Durability::PowerFailure => {
                remove_partial(to)?;
                tempfile::Builder::new().prefix(&name).suffix(TEMPORARY).rand_bytes(0).tempfile_in(folder)?
            }
        };
        restrict(file.as_file())?;
        failpoint::room(step)?;
        Ok(Self { step, durability, to: to.to_owned(), file })
    }

    pub(crate) fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Its path until it is renamed.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Renames it. The content reaches the disk before the name: after a power failure the name refers to the complete new
    /// file or the complete old one.
    pub(crate) fn put(self) -> io::Result<()> {
        let survives = self.durability == Durability::PowerFailure;
        if survives {
            sync(self.file.as_file(), self.file.path())?;
        }
        failpoint::at(self.step, Moment::Within);
        self.file.persist(&self.to).map_err(|error| error.error)?;
        if survives { sync_dir(folder(&self.to)) } else { Ok(()) }
    }
}

/// Writes a file as a separate `step`. Readers see the complete new file, or the previous one.
pub(crate) fn replace(
    step: Step,
    to: &Path,
    durability: Durability,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    failpoint::around(step, || {
        let mut replacement = Replacement::new(step, to, durability)?;
        fill(replacement.file())?;
        replacement.put()
    })
}

/// Removes a [`Durability::PowerFailure`] replacement of `to` whose process was killed.
pub(crate) fn remove_partial(to: &Path) -> io::Result<()> {
    match fs::remove_file(folder(to).join(beside(to) + TEMPORARY)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The beginning of the name of a file that will be renamed to `to`.
fn beside(to: &Path) -> String {
    format!(".{}", to.file_name().unwrap_or_default().to_string_lossy())
}

/// The folder of a file; for a bare name, the current one.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates a directory with the right permissions, and its parents. An existing one is not changed. When this returns, new
/// directories survive a power failure.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = path.ancestors().take_while(|folder| !folder.is_dir()).collect();
    for folder in missing.into_iter().rev() {
        match DirBuilder::new().mode(PRIVATE_DIR).create(folder) {
            // Another process created it first.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
            made => made?,
        }
        fs::set_permissions(folder, Permissions::from_mode(PRIVATE_DIR))?;
        sync_dir(self::folder(folder))?;
    }
    Ok(())
}

/// Opens a file for reading and appending, and creates it with the right permissions if it does not exist.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).append(true).create(true).mode(PRIVATE).open(path)?;
    restrict(&file)?;
    Ok(file)
}

/// Creates a file with the right permissions.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(path)?;
    restrict(&file)?;
    Ok(file)
}

/// The umask may have taken permissions away, even from the owner.
fn restrict(file: &File) -> io::Result<()> {
    if file.metadata()?.permissions().mode() & 0o777 != PRIVATE {
        file.set_permissions(Permissions::from_mode(PRIVATE))?;
    }
    Ok(())
}

/// Waits until the names in a directory are on the disk.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    sync(&File::open(path)?, path)
}

/// Waits until the file or directory at `path` is on the disk.
pub(crate) fn sync(file: &File, path: &Path) -> io::Result<()> {
    file.sync_all()?;
    failpoint::synced(path);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const BOTH: [Durability; 2] = [Durability::Process, Durability::PowerFailure];

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_by_all_of_another_private_one() {
        let temp = tempfile::tempdir().unwrap();
        for durability in BOTH {
            let to = temp.path().join("new/file.json");
            for text in ["first", "second"] {
                replace(Step::Settings, &to, durability, |file| {
                    if text == "second" {
                        assert_eq!(fs::read_to_string(&to).unwrap(), "first");
                    }
                    file.write_all(text.as_bytes())
                })
                .unwrap();
                assert_eq!(fs::read_to_string(&to).unwrap(), text);
            }
            assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o777, PRIVATE);
            assert_eq!(names(to.parent().unwrap()), ["file.json"]);
            fs::remove_dir_all(to.parent().unwrap()).unwrap();
        }
    }

    #[test]
    fn a_file_that_others_could_read_is_private_once_it_is_opened() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("file");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        let opened = open_private(&file).unwrap();
        assert_eq!(opened.metadata().unwrap().permissions().mode() & 0o777, PRIVATE);
    }

    #[test]
    fn a_file_in_the_place_of_a_directory_stays_as_it_is() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("file");
        fs::write(&file, "theirs").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        assert!(make_private(&file).is_err() && make_private(&file.join("below")).is_err());
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o644);
    }

    #[test]
    fn it_is_said_if_what_a_killed_process_left_cannot_be_removed() {
        let temp = tempfile::tempdir().unwrap();
        let to = temp.path().join("file");
        remove_partial(&to).unwrap();
        let partial = temp.path().join(beside(&to) + TEMPORARY);
        fs::write(&partial, "half").unwrap();
        remove_partial(&to).unwrap();
        assert!(!partial.exists());
        fs::create_dir(&partial).unwrap();
        assert!(remove_partial(&to).is_err());
    }

    #[test]
    fn what_cannot_be_written_leaves_the_file_as_it_was() {
        let temp = tempfile::tempdir().unwrap();
        let to = temp.path().join("file");
        fs::write(&to, "old").unwrap();
        for durability in BOTH {
            let full = |file: &mut File| {
                file.write_all(b"half")?;
                Err(io::ErrorKind::StorageFull.into())
            };
            let error = replace(Step::Settings, &to, durability, full).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
            assert_eq!((names(temp.path()), fs::read_to_string(&to).unwrap()), (vec!["file".into()], "old".into()));
        }
    }

    #[test]
    fn what_a_killed_process_left_half_written_is_overwritten_or_removed() {
        let temp = tempfile::tempdir().unwrap();
        let (to, partial) = (temp.path().join("file"), temp.path().join(".file.tmp"));
        fs::write(&partial, "half of it").unwrap();
        replace(Step::Settings, &to, Durability::PowerFailure, |file| file.write_all(b"all")).unwrap();
        assert_eq!((names(temp.path()), fs::read_to_string(&to).unwrap()), (vec!["file".into()], "all".into()));
        fs::write(&partial, "half of it").unwrap();
        remove_partial(&to).unwrap();
        remove_partial(&to).unwrap();
        assert_eq!(names(temp.path()), ["file"]);
    }

    #[test]
    fn two_processes_write_files_that_do_not_outlive_them_at_once() {
        let temp = tempfile::tempdir().unwrap();
        let to = temp.path().join("file");
        replace(Step::Settings, &to, Durability::Process, |one| {
            replace(Step::Settings, &to, Durability::Process, |other| other.write_all(b"other")).unwrap();
            one.write_all(b"one")
        })
        .unwrap();
        assert_eq!((names(temp.path()), fs::read_to_string(&to).unwrap()), (vec!["file".into()], "one".into()));
    }
}
