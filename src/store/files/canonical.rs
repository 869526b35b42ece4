//! One name for a directory that has several.

use std::path::{Path, PathBuf};

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
