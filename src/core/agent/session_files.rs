//! What an agent has besides its conversation, in files that are not its project's: tasks, plans, the conversations of its
//! subagents. It is kept with each checkpoint, and a discarded attempt leaves it as it was.

use std::path::{Path, PathBuf};

/// How the names of directories end that hold what an agent had besides its conversation.
pub(crate) const BESIDE: &str = ".beside";

/// A folder with such files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Folder {
    /// What it is called among the kept ones.
    pub name: &'static str,
    /// Where it is.
    pub path: PathBuf,
    /// Which of its files they are.
    pub files: Files,
}

/// Which files of a folder are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Files {
    /// All, however deep, but for those in the folder of this name, if it is one, which are kept in another way.
    All {
        /// The folder.
        but: &'static str,
    },
    /// Those right in it that have one of these names, or begin with one and a hyphen. Others may share them.
    Named(Vec<String>),
}

impl Folder {
    /// Whether a file of the folder is meant.
    #[must_use]
    pub(crate) fn has(&self, file: &Path) -> bool {
        match &self.files {
            Files::All { but } => but.is_empty() || !file.starts_with(but),
            Files::Named(names) => {
                let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
                let is = |name: &String| {
                    stem.strip_prefix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
                };
                file.components().count() == 1 && names.iter().any(is)
            }
        }
    }

    /// Whether nobody but the agent has files in it.
    #[must_use]
    pub(crate) fn is_its_own(&self) -> bool {
        matches!(self.files, Files::All { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_agent_are_meant() {
        let own = Folder { name: "session", path: "/s".into(), files: Files::All { but: "tool-results" } };
        assert!(own.has(Path::new("subagents/workflows/w/a.jsonl")) && own.has(Path::new("1.json")));
        assert!(!own.has(Path::new("tool-results/b1.txt")));
        let shared = Folder { name: "plans", path: "/p".into(), files: Files::Named(vec!["a-calm-plan".into()]) };
        assert!(shared.has(Path::new("a-calm-plan.md")) && shared.has(Path::new("a-calm-plan-agent-x.md")));
        assert!(!shared.has(Path::new("a-calm-planner.md")) && !shared.has(Path::new("x/a-calm-plan.md")));
    }
}
