//! Reads the first words of an agent's instructions.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use crate::core::chain::frame::Task;
use crate::core::id::FrameId;
use crate::core::text::escape;
use crate::store::{Store, StoreError};

/// The number of bytes to read from a file.
const MOST: u64 = 2_000;

/// The first line with text, shortened and escaped. Empty if it is unknown, or if the task's title already contains it.
pub(crate) fn of_agent(store: &Store, id: FrameId) -> Result<String, StoreError> {
    Ok(match store.frame(id)?.map(|frame| frame.task) {
        Some(Task::File(path)) => in_file(&path),
        _ => String::new(),
    })
}

/// Reads the words from a file. An agent may have put anything at this path, so nothing is opened that could block.
fn in_file(path: &Path) -> String {
    let mut text = Vec::new();
    if !fs::metadata(path).is_ok_and(|found| found.is_file())
        || File::open(path).and_then(|file| file.take(MOST).read_to_end(&mut text)).is_err()
    {
        return String::new();
    }
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines().map(|line| line.trim_start_matches(['#', '-', '*', ' ']).trim());
    lines.find(|line| !line.is_empty()).map(escape::shortened).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_says_something_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("task.md");
        fs::write(&file, "\n# Check\u{1b} the door\nThen leave.\n").unwrap();
        assert_eq!(in_file(&file), "Check\\u{1b} the door");
        assert_eq!(in_file(folder.path()), "");
        assert_eq!(in_file(&folder.path().join("other")), "");
    }
}
