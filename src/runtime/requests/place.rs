//! Determines where a call that needs an approval acts, according to the current file system.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::core::chain::frame::Frame;
use crate::core::id::FrameId;
use crate::core::requests::approval::call_place::{CallPlace, Moved};
use crate::core::requests::request::RequestKind;
use crate::store::{Question, Store, StoreError};

/// The system does not follow more links than this.
const MOST_LINKS: usize = 40;

/// Where a call with this input acts, if its agent's shell is in `directory`.
pub(crate) fn place(input: &Value, directory: &Path) -> CallPlace {
    CallPlace::new(input, directory, &dirs::home_dir().unwrap_or_default(), real)
}

/// Where a call acts whose place was not recorded: in the last directory of its agent's shell.
pub(crate) fn of_frame(store: &Store, frame: FrameId, input: &Value) -> Result<Option<CallPlace>, StoreError> {
    Ok(store.frame(frame)?.map(|frame| place(input, last_directory(&frame))))
}

/// The directory of an agent's shell when its last attempt ended.
pub(crate) fn last_directory(frame: &Frame) -> &Path {
    frame.situation.shell.as_deref().unwrap_or(&frame.cwd)
}

/// Adds the place of its call to a question.
pub(crate) fn with_place(store: &Store, question: Question) -> Result<Question, StoreError> {
    let kind = match question.kind {
        RequestKind::Permission { tool, input, reason, place: None } => {
            let place = of_frame(store, question.frame, &input)?;
            RequestKind::Permission { tool, input, reason, place }
        }
        other => other,
    };
    Ok(Question { kind, ..question })
}

/// The path that leads elsewhere now than when a person was asked about a call with this input.
pub(crate) fn moved(input: &Value, asked: &CallPlace) -> Option<Moved> {
    asked.moved(&place(input, Path::new(&asked.directory.path)))
}

/// Where an absolute path leads, whether or not it exists: a write through a link creates the file that the link names.
pub(crate) fn real(path: &Path) -> PathBuf {
    followed(path, MOST_LINKS)
}

fn followed(path: &Path, links: usize) -> PathBuf {
    if let Ok(real) = fs::canonicalize(path) {
        return real;
    }
    let Some(parent) = path.parent() else { return path.to_owned() };
    let mut real = followed(parent, links);
    let Some(name) = path.file_name() else {
        real.pop();
        return real;
    };
    let inside = real.join(name);
    match fs::read_link(&inside) {
        Ok(target) if links > 0 => followed(&real.join(target), links - 1),
        _ => inside,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_is_followed_even_where_nothing_is_there_yet() {
        let temp = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(temp.path()).unwrap();
        let at = |name: &str| base.join(name);
        fs::create_dir(at("out")).unwrap();
        symlink("out", at("link")).unwrap();
        symlink(at("out/made"), at("dangling")).unwrap();
        symlink("dangling", at("twice")).unwrap();
        symlink("round", at("round")).unwrap();
        for (path, expected) in [
            ("out", "out"),
            ("link/a/b", "out/a/b"),
            ("dangling", "out/made"),
            ("twice/x", "out/made/x"),
            ("none/../link/x", "out/x"),
            ("none/..", ""),
            ("round", "round"),
            ("round/x", "round/x"),
        ] {
            assert_eq!(real(&at(path)), if expected.is_empty() { base.clone() } else { at(expected) }, "{path}");
        }
        assert_eq!(real(Path::new("/")), Path::new("/"));
    }
}
