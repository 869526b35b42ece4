//! Files of an agent that belong neither to its conversation nor to its project: tasks, plans, subagents' conversations. They
//! are kept with each checkpoint, and a discarded attempt leaves them unchanged.

use std::path::{Path, PathBuf};

/// Suffix of the directories that hold such files.
pub(crate) const BESIDE: &str = ".beside";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionFolder {
    /// Its name among the kept folders.
    pub name: &'static str,
    pub path: PathBuf,
    /// Which of its files belong to the agent.
    pub files: FileSelection,
}

/// Which files of a folder belong to the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileSelection {
    /// All files at any depth, except those in the folder of this name, which are kept in another way.
    All { but: &'static str },
    /// Files directly in the folder that have one of these names, or begin with one and a hyphen. Others may share the
    /// folder.
    Named(Vec<String>),
}

impl SessionFolder {
    pub(crate) fn has(&self, file: &Path) -> bool {
        match &self.files {
            FileSelection::All { but } => but.is_empty() || !file.starts_with(but),
            FileSelection::Named(names) => {
                let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
                let is = |name: &String| {
                    stem.strip_prefix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
                };
                file.components().count() == 1 && names.iter().any(is)
            }
        }
    }

    /// Whether only the agent has files in the folder.
    pub(crate) fn is_its_own(&self) -> bool {
        matches!(self.files, FileSelection::All { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_agent_are_meant() {
        let own =
            SessionFolder { name: "session", path: "/s".into(), files: FileSelection::All { but: "tool-results" } };
        assert!(own.has(Path::new("subagents/workflows/w/a.jsonl")) && own.has(Path::new("1.json")));
        assert!(!own.has(Path::new("tool-results/b1.txt")));
        let shared =
            SessionFolder { name: "plans", path: "/p".into(), files: FileSelection::Named(vec!["a-calm-plan".into()]) };
        assert!(shared.has(Path::new("a-calm-plan.md")) && shared.has(Path::new("a-calm-plan-agent-x.md")));
        assert!(!shared.has(Path::new("a-calm-planner.md")) && !shared.has(Path::new("x/a-calm-plan.md")));
    }
}
