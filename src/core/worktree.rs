//! A git worktree of its own, in which an agent works: what its parent has to know of it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::id::FrameId;

/// A git worktree with a branch, made for one frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// The directory that the repository's worktrees share, its `.git`.
    pub repository: PathBuf,
    /// Its own top folder.
    pub path: PathBuf,
    /// Its branch.
    pub branch: String,
    /// The commit that the branch begins with.
    pub base: String,
}

/// What git tells of a worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Whether files in it differ from what is committed, or are not known to git.
    pub dirty: bool,
    /// Whether its branch has commits that no other branch has.
    pub ahead: bool,
}

/// Why a worktree is not removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Held {
    /// The frame that it was made for.
    pub frame: FrameId,
    /// Its top folder.
    pub path: PathBuf,
    /// Its branch.
    pub branch: String,
    /// What would be lost, or what went wrong.
    pub why: String,
}

impl Worktree {
    /// What the agent said that worked in it, and where its work is. What it said stands first, as it is.
    #[must_use]
    pub fn named_in(&self, said: &str) -> String {
        format!("{said}\n\n({})", self.whereabouts())
    }

    /// Where the work of its agent is, in words.
    #[must_use]
    pub fn whereabouts(&self) -> String {
        format!("its work is on the branch {}, in the worktree {}", self.branch, self.path.display())
    }

    /// The branch for an agent whose task has this title. `id` tells it from others of the same title.
    #[must_use]
    pub fn branch_for(title: &str, id: &str) -> String {
        let stem = title.strip_suffix(".md").unwrap_or(title);
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let name: String = stem.chars().map(plain).take(30).collect();
        let words: Vec<&str> = name.split('-').filter(|word| !word.is_empty()).collect();
        format!("agent-cli/{}", words.into_iter().chain([id]).collect::<Vec<_>>().join("-"))
    }
}

/// What an agent said, with where its work is if it has a worktree of its own: as its parent is told.
#[must_use]
pub fn told(said: String, worktree: Option<&Worktree>) -> String {
    match worktree {
        Some(worktree) => worktree.named_in(&said),
        None => said,
    }
}

impl Condition {
    /// Whether nothing is lost with it.
    #[must_use]
    pub fn is_dispensable(self) -> bool {
        self.would_lose().is_none()
    }

    /// What is lost with it, in words.
    #[must_use]
    pub fn would_lose(self) -> Option<&'static str> {
        match (self.dirty, self.ahead) {
            (true, true) => Some("it has uncommitted changes and commits that are on no other branch"),
            (true, false) => Some("it has uncommitted changes"),
            (false, true) => Some("it has commits that are on no other branch"),
            (false, false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_has_a_name_that_git_takes() {
        for (title, branch) in [
            ("review.md", "agent-cli/review-1a2b"),
            ("Fix: the ~bug^ [#12]..lock", "agent-cli/fix-the-bug-12-lock-1a2b"),
            ("", "agent-cli/1a2b"),
            ("ünïcödé", "agent-cli/n-c-d-1a2b"),
            ("-", "agent-cli/1a2b"),
        ] {
            assert_eq!(Worktree::branch_for(title, "1a2b"), branch, "{title:?}");
        }
    }

    #[test]
    fn the_reply_stands_first() {
        let worktree =
            Worktree { repository: "/r".into(), path: "/w".into(), branch: "agent-cli/a".into(), base: "c".into() };
        assert_eq!(worktree.named_in("done"), "done\n\n(its work is on the branch agent-cli/a, in the worktree /w)");
    }

    #[test]
    fn a_worktree_is_removed_only_when_nothing_is_lost() {
        for (dirty, ahead, dispensable) in
            [(false, false, true), (true, false, false), (false, true, false), (true, true, false)]
        {
            assert_eq!(Condition { dirty, ahead }.is_dispensable(), dispensable);
        }
    }
}
