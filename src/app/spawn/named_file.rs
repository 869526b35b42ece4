//! Reads files that the asker names, and whose content another agent or a person will see.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::app::App;
use crate::app::error::Refusal;
use crate::core::text::escape::one_line;

/// How to read a named file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<'a> {
    /// The directory in which the file must be. `None`: any directory.
    pub(crate) below: Option<&'a Path>,
    /// The size limit in bytes. One more byte of a larger file is read.
    pub(crate) most: u64,
    /// The use that is refused for a file in another directory.
    pub(crate) use_: &'static str,
    /// The alternative that the refusal suggests.
    pub(crate) instead: &'static str,
    /// The hint for a path that cannot be read.
    pub(crate) hint: Option<&'static str>,
}

/// Formats a path for messages.
pub(crate) fn shown(named: &Path) -> String {
    one_line(&named.display().to_string())
}

/// The content of a regular file.
pub(crate) fn read(app: &App<'_>, named: &Path, reading: Reading<'_>) -> Result<Vec<u8>, Refusal> {
    let shown = shown(named);
    let refused = |message: String| match reading.hint {
        Some(hint) => Refusal::new(message).hint(hint),
        None => Refusal::new(message),
    };
    let unreadable = |error: io::Error| refused(format!("cannot read {shown}: {error}"));
    let named = app.path(named);
    let real = named.canonicalize().map_err(unreadable)?;
    let outside = || {
        let message = format!("{shown} is outside your directory, so it cannot be {}", reading.use_);
        Refusal::new(message).hint(reading.instead)
    };
    let below = reading.below.map(Path::canonicalize).transpose().map_err(unreadable)?;
    if below.as_ref().is_some_and(|below| !real.starts_with(below)) {
        return Err(outside());
    }
    // Opening a pipe would wait for a writer.
    if !fs::metadata(&real).map_err(unreadable)?.is_file() {
        return Err(refused(format!("{shown} is not a regular file")));
    }
    let file = File::open(&real).map_err(unreadable)?;
    // An agent may have replaced the file with a link in the meantime.
    if below.is_some() && !is_still(&file, &real).map_err(unreadable)? {
        return Err(outside());
    }
    let mut content = Vec::new();
    file.take(reading.most + 1).read_to_end(&mut content).map_err(unreadable)?;
    Ok(content)
}

/// Whether the open file still has this path, which contains no link.
fn is_still(file: &File, path: &Path) -> io::Result<bool> {
    let (open, named) = (file.metadata()?, fs::symlink_metadata(path)?);
    Ok(path.canonicalize()? == path && (open.dev(), open.ino()) == (named.dev(), named.ino()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_that_was_replaced_by_a_link_is_another_one() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().canonicalize().unwrap();
        let (inside, outside) = (folder.join("in/a"), folder.join("secret"));
        fs::create_dir(folder.join("in")).unwrap();
        fs::write(&inside, "a").unwrap();
        fs::write(&outside, "secret").unwrap();
        let is_still_open = |file: &Path| is_still(&File::open(file).unwrap(), &inside).unwrap();
        assert!(is_still_open(&inside));
        assert!(!is_still_open(&outside));
        fs::remove_file(&inside).unwrap();
        symlink(&outside, &inside).unwrap();
        assert!(!is_still_open(&outside), "the link leads there");
        fs::remove_file(&inside).unwrap();
        fs::rename(folder.join("in"), folder.join("was")).unwrap();
        symlink(&folder, folder.join("in")).unwrap();
        fs::write(&inside, "secret").unwrap();
        assert!(!is_still_open(&inside), "its folder is a link");
    }
}
