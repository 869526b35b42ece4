//! Directories that have different paths on another machine.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde_json::Value;

use crate::core::agent::child_worktree::Worktree;
use crate::core::agent::launch::Launch;
use crate::core::agent::situation::Situation;
use crate::core::chain::frame::Task;
use crate::core::requests::question_form::Form;
use crate::core::requests::request::RequestKind;

/// One directory's old and new path. As text: `OLD=NEW`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    old: PathBuf,
    new: PathBuf,
}

/// Why a text is not a move.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("give two absolute paths, as in /home/ann/work=/home/bob/work")]
pub(crate) struct BadMove;

/// All moves. If several match a path, the longest applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Relocation(Vec<Move>);

impl FromStr for Move {
    type Err = BadMove;

    /// The new path begins after the first `=` that is followed by a `/`.
    fn from_str(text: &str) -> Result<Self, BadMove> {
        let at = text.find("=/").ok_or(BadMove)?;
        let (old, new) = (&text[..at], &text[at + 1..]);
        let plain = |path: &str| path.starts_with('/') && !path.split('/').any(|part| part == "..");
        if !plain(old) || !plain(new) || old.trim_end_matches('/').is_empty() {
            return Err(BadMove);
        }
        Ok(Self { old: old.into(), new: new.into() })
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.old.display(), self.new.display())
    }
}

impl Relocation {
    pub(crate) fn new(mut moves: Vec<Move>) -> Self {
        moves.sort_by_key(|one| std::cmp::Reverse(one.old.components().count()));
        Self(moves)
    }

    /// The new location of a path.
    pub(crate) fn path(&self, path: &Path) -> PathBuf {
        let moved = self.0.iter().find_map(|one| Some((one, path.strip_prefix(&one.old).ok()?)));
        moved.map_or_else(|| path.to_owned(), |(one, rest)| one.new.components().chain(rest.components()).collect())
    }

    /// Where a path was before, given its new location.
    pub(crate) fn before(&self, path: &Path) -> PathBuf {
        let moved = self.0.iter().find_map(|one| Some((one, path.strip_prefix(&one.new).ok()?)));
        moved.map_or_else(|| path.to_owned(), |(one, rest)| one.old.components().chain(rest.components()).collect())
    }

    /// A task whose instructions have moved.
    pub(crate) fn task(&self, task: Task) -> Task {
        match task {
            Task::File(path) => Task::File(self.path(&path)),
            other => other,
        }
    }

    /// A request, one of whose files has moved.
    pub(crate) fn request_kind(&self, kind: RequestKind) -> RequestKind {
        match kind {
            RequestKind::Wait(wait) => RequestKind::Wait(wait.with_paths(&|path| self.path(path))),
            // The file and the folder were chosen by the person who exported the chain, not by one here.
            RequestKind::Ask(form) => RequestKind::Ask(Form { file: None, posted: None, ..form }),
            // Links of another machine say nothing about those of this one.
            RequestKind::Permission { tool, input, reason, place: _ } => {
                RequestKind::Permission { tool, input, reason, place: None }
            }
            other => other,
        }
    }

    /// Launch options whose paths have moved, including values of arguments that are paths.
    pub(crate) fn launch(&self, launch: Launch) -> Launch {
        let value = |value: &str| {
            let path = Some(value).filter(|value| value.starts_with('/')).map(|path| self.path(Path::new(path)));
            path.map_or_else(|| value.to_owned(), |path| path.to_string_lossy().into_owned())
        };
        Launch {
            claude: self.path(&launch.claude),
            config_dir: launch.config_dir.map(|dir| self.path(&dir)),
            args: launch.args.with_values(value),
            worktree: launch.worktree.map(|worktree| Worktree {
                repository: self.path(&worktree.repository),
                path: self.path(&worktree.path),
                ..worktree
            }),
            ..launch
        }
    }

    /// What surrounds an agent, at its new location.
    pub(crate) fn situation(&self, situation: Situation) -> Situation {
        let [shell, worktree] = [situation.shell, situation.worktree].map(|path| path.map(|path| self.path(&path)));
        Situation { shell, worktree, ..situation }
    }

    /// A line of a transcript whose session now works elsewhere. The messages are not changed.
    pub(crate) fn transcript_line(&self, line: &str) -> String {
        const KEY: &str = "\"cwd\":";
        let mut moved = String::with_capacity(line.len());
        let mut rest = line;
        while let Some(at) = rest.find(KEY) {
            let (before, after) = rest.split_at(at + KEY.len());
            moved.push_str(before);
            rest = after;
            // In a text, the quotes would be escaped.
            if !before.trim_end_matches(KEY).ends_with(['{', ',']) {
                continue;
            }
            let mut values = serde_json::Deserializer::from_str(after).into_iter::<Value>();
            if let Some(Ok(Value::String(path))) = values.next() {
                moved.push_str(&Value::from(self.path(Path::new(&path)).to_string_lossy()).to_string());
                rest = &after[values.byte_offset()..];
            }
        }
        moved + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::agent::claude_args::ClaudeArgs;
    use crate::core::waits::conditions::External;

    fn relocation(all: &[&str]) -> Relocation {
        Relocation::new(all.iter().map(|one| one.parse().unwrap()).collect())
    }

    #[test]
    fn the_longest_directory_that_fits_counts() {
        let relocation = relocation(&["/home/ann=/home/bob", "/home/ann/work/=/srv/work"]);
        let path = |path: &str| relocation.path(Path::new(path)).display().to_string();
        assert_eq!(path("/home/ann/x"), "/home/bob/x");
        assert_eq!(path("/home/ann/work/x y"), "/srv/work/x y");
        assert_eq!(path("/home/ann/work"), "/srv/work");
        assert_eq!(path("/home/anna"), "/home/anna");
        assert_eq!(path("relative"), "relative");
    }

    #[test]
    fn a_move_is_two_absolute_paths() {
        for bad in ["", "/a", "a=/b", "/a=b", "=/b", "/=/b", "/a/..=/b", "/a=/b/../c"] {
            assert_eq!(bad.parse::<Move>(), Err(BadMove), "{bad}");
        }
        assert_eq!(relocation(&["/a=b=/c"]).path(Path::new("/a=b/x")), Path::new("/c/x"));
    }

    #[test]
    fn only_paths_are_moved() {
        let relocation = relocation(&["/old=/new"]);
        assert_eq!(relocation.task(Task::File("/old/ins.md".into())), Task::File("/new/ins.md".into()));
        assert_eq!(relocation.task(Task::Prompt("/old".into())), Task::Prompt("/old".into()));
        let words = ["--add-dir=/old/x", "--settings=/old/s.json", "--x=old", "--debug"];
        let args = ClaudeArgs::from_recorded(&words);
        let worktree = |at: &str| Worktree {
            remote: None,
            repository: format!("{at}/repository").into(),
            path: at.into(),
            branch: "/old".into(),
            base: String::new(),
        };
        let launch = relocation.launch(Launch {
            args,
            claude: "/old/bin/claude".into(),
            config_dir: Some("/old/.claude".into()),
            worktree: Some(worktree("/old")),
            ..Launch::default()
        });
        assert_eq!(launch.args.words(), ["--add-dir=/new/x", "--settings=/new/s.json", "--x=old", "--debug"]);
        assert_eq!(launch.config_dir, Some("/new/.claude".into()));
        assert_eq!(launch.claude, Path::new("/new/bin/claude"));
        assert_eq!(launch.worktree, Some(worktree("/new")));
        let file = |path: &str| RequestKind::Wait(External::File(path.into()));
        assert_eq!(relocation.request_kind(file("/old/x")), file("/new/x"));
    }

    #[test]
    fn a_transcript_says_where_its_session_works_and_keeps_its_words() {
        let relocation = relocation(&["/old \"x\"=/new"]);
        let line =
            r#"{"cwd":"/old \"x\"/p","text":"\"cwd\":\"/old \\\"x\\\"\"","n":{"a":1,"cwd":"/old \"x\""},"cwd":5}"#;
        let moved = r#"{"cwd":"/new/p","text":"\"cwd\":\"/old \\\"x\\\"\"","n":{"a":1,"cwd":"/new"},"cwd":5}"#;
        assert_eq!(relocation.transcript_line(line), moved);
        assert_eq!(relocation.transcript_line("torn {\"cwd\":\"/ol"), "torn {\"cwd\":\"/ol");
    }
}
