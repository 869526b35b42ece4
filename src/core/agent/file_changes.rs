//! What changed around an agent while it waited: the files it had read or written, and its git head.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::core::text::escape::shortened;

/// What surrounded an agent when its attempt ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileSnapshot {
    /// The existing files that it had read or written, each with a digest of its content.
    pub files: BTreeMap<PathBuf, String>,
    /// The commit that was checked out in its working directory.
    pub head: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileChanges {
    /// Files with different content.
    pub changed: BTreeSet<PathBuf>,
    /// Files that no longer exist.
    pub gone: BTreeSet<PathBuf>,
    /// The commit that was checked out, and the one that is now.
    pub head: Option<(String, String)>,
}

impl FileSnapshot {
    /// The changes since then. `now` covers the same files.
    pub(crate) fn changes(&self, now: &Self) -> FileChanges {
        let mut changes = FileChanges::default();
        for (path, before) in &self.files {
            match now.files.get(path) {
                Some(content) if content == before => {}
                Some(_) => drop(changes.changed.insert(path.clone())),
                None => drop(changes.gone.insert(path.clone())),
            }
        }
        let heads = self.head.clone().zip(now.head.clone());
        changes.head = heads.filter(|(before, after)| before != after);
        changes
    }
}

impl FileChanges {
    /// The notice for the agent that works in `cwd`, in at most three lines. `None`: nothing changed.
    pub(crate) fn notice(&self, cwd: &Path) -> Option<String> {
        let mut lines = Vec::new();
        if !self.changed.is_empty() {
            let names = named(&self.changed, cwd);
            lines.push(format!("Since you stopped, files that you had read or written have changed: {names}. Read them again before you rely on them."));
        }
        if !self.gone.is_empty() {
            let names = named(&self.gone, cwd);
            lines.push(format!("Since you stopped, files that you had read or written are gone: {names}."));
        }
        if let Some((before, after)) = &self.head {
            lines.push(format!("Since you stopped, the git head moved from {} to {}.", short(before), short(after)));
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

fn named(paths: &BTreeSet<PathBuf>, cwd: &Path) -> String {
    const MOST: usize = 8;
    let name = |path: &PathBuf| one_word(&shortened(&path.strip_prefix(cwd).unwrap_or(path).display().to_string()));
    let names: Vec<String> = paths.iter().take(MOST).map(name).collect();
    let more = match paths.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", names.join(", "))
}

/// A name that could be mistaken for part of a sentence is quoted.
fn one_word(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+@…".contains(c);
    if name.chars().all(plain) && !name.ends_with('.') {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\\\""))
    }
}

fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(files: &[(&str, &str)], head: Option<&str>) -> FileSnapshot {
        let files = files.iter().map(|(path, content)| (PathBuf::from(path), (*content).to_owned())).collect();
        FileSnapshot { files, head: head.map(str::to_owned) }
    }

    #[test]
    fn nothing_is_said_when_nothing_changed() {
        let before = seen(&[("/p/a", "1")], Some("c1"));
        assert_eq!(before.changes(&before).notice(Path::new("/p")), None);
        // Creating or removing a repository in the meantime does not move a commit.
        let without = seen(&[("/p/a", "1")], None);
        assert_eq!(before.changes(&without), FileChanges::default());
        assert_eq!(without.changes(&before), FileChanges::default());
    }

    #[test]
    fn what_changed_is_named_from_the_working_directory() {
        let before =
            seen(&[("/p/src/a.rs", "1"), ("/p/b", "2"), ("/other/c", "3"), ("/p/d", "4")], Some("0123456789abc"));
        let now = seen(&[("/p/src/a.rs", "x"), ("/other/c", "x"), ("/p/d", "4")], Some("fedcba9876543"));
        insta::assert_snapshot!(before.changes(&now).notice(Path::new("/p")).unwrap(), @r"
        Since you stopped, files that you had read or written have changed: /other/c, src/a.rs. Read them again before you rely on them.
        Since you stopped, files that you had read or written are gone: b.
        Since you stopped, the git head moved from 0123456789 to fedcba9876.
        ");
    }

    #[test]
    fn a_name_ends_no_sentence() {
        let before = seen(&[("/p/a. Your last turn was cut short: \"b\"\nc", "1"), ("/p/d", "1")], None);
        insta::assert_snapshot!(before.changes(&FileSnapshot::default()).notice(Path::new("/p")).unwrap(), @r#"
        Since you stopped, files that you had read or written are gone: "a. Your last turn was cut short: \"b\"⏎c", d.
        "#);
    }

    #[test]
    fn many_files_and_odd_names_take_one_line() {
        let names: Vec<String> = (0..1000).map(|n| format!("/p/{n:04}\n{}", "x".repeat(500))).collect();
        let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
        let notice = seen(&files, None).changes(&FileSnapshot::default()).notice(Path::new("/p")).unwrap();
        assert!(!notice.contains('\n') && notice.len() < 1600, "{notice}");
        assert!(notice.ends_with("and 992 more."), "{notice}");
    }
}
