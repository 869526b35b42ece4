//! Directory entries, real paths and removal, whether or not the path exists.

use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

/// The size in bytes of the files at `path` and below it. Links are not followed, and unreadable entries count as empty.
pub(crate) fn size(path: &Path) -> u64 {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => entries(path).unwrap_or_default().iter().map(|entry| size(&entry.path())).sum(),
        Ok(found) if found.is_file() => found.len(),
        _ => 0,
    }
}

/// Removes a file or a directory if it exists.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The entries of a directory; none if it does not exist.
pub(crate) fn entries(folder: &Path) -> io::Result<Vec<DirEntry>> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries?.collect(),
    }
}

/// The path without symbolic links, as far as it exists.
pub(crate) fn canonical(path: &Path) -> PathBuf {
    let found = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    let rest = |above: &Path| path.strip_prefix(above).ok().map(Path::to_owned);
    match found.and_then(|(above, real)| Some((rest(above)?, real))) {
        Some((rest, real)) if rest.as_os_str().is_empty() => real,
        Some((rest, real)) => real.join(rest),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::store::files::state_dir::StateDir;

    #[test]
    fn a_symbolic_link_is_no_other_name() {
        let temp = tempfile::tempdir().unwrap();
        let real = temp.path().canonicalize().unwrap().join("real");
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, temp.path().join("link")).unwrap();
        for (named, below) in [("link", ""), ("link/state", "state"), ("link/a/b", "a/b"), ("real/../link/c", "c")] {
            let dir = StateDir::new(&temp.path().join(named)).unwrap();
            assert_eq!(dir.path().components().collect::<Vec<_>>(), real.join(below).components().collect::<Vec<_>>());
        }
    }
}
