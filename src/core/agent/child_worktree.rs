//! An agent's own git worktree, and what its parent must know about it.

pub(crate) mod pushed_worktree;

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::core::id::FrameId;
use crate::core::text::fence::is_line_break;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Worktree {
    /// The directory that the repository's worktrees share, its `.git`.
    pub repository: PathBuf,
    pub path: PathBuf,
    pub branch: String,
    /// The commit at which the branch starts.
    pub base: String,
    /// Where it is pushed at the end of each attempt; `None`: nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<Remote>,
}

/// A git remote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Remote {
    /// Its name in the repository where the chain was started.
    pub name: String,
    /// Its address then. The configuration of the repository may name another one later.
    pub url: String,
}

/// What git and the files show about a worktree and its branch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorktreeCondition {
    /// Reasons to keep it: work that would be lost, or something that uses it.
    pub losses: Vec<Loss>,
    /// Files and folders in it that git ignores, relative to its top folder. A folder that is ignored as a whole is
    /// named once.
    pub ignored: Vec<IgnoredFiles>,
}

/// A reason to keep a worktree and its branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Its repository is missing.
    NoRepository(PathBuf),
    /// It is not, or no longer, a worktree of its repository.
    NoWorktree,
    /// It is locked, for a reason.
    Locked(String),
    /// A merge, a rebase or similar is in progress.
    UnderWay,
    /// Files that differ from the commit, or that git does not track.
    Uncommitted,
    /// A file that git was told to ignore changes of.
    Unwatched(PathBuf),
    /// A commit that is only on agents' branches.
    Commit(String),
    /// A nested repository that has unique content, or is a worktree or submodule.
    Repository(PathBuf),
    /// Its branch is checked out elsewhere.
    CheckedOut(PathBuf),
}

/// Something in a worktree that git ignores.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IgnoredFiles {
    /// Relative to the top folder.
    pub path: PathBuf,
    /// Whether it is a folder that is ignored as a whole.
    pub is_folder: bool,
    /// Whether it is marked as a cache that can be deleted at any time (`CACHEDIR.TAG`).
    pub is_tagged: bool,
}

/// Why a worktree is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Held {
    /// The agent that it was created for.
    #[serde(rename = "agent")]
    pub frame: FrameId,
    pub path: PathBuf,
    pub branch: String,
    /// What would be lost, or what went wrong.
    pub why: String,
    /// The directory that the repository's worktrees share.
    #[serde(skip)]
    pub repository: PathBuf,
    #[serde(skip)]
    pub remedy: Remedy,
}

/// Why a worktree is kept, in words, and what a person can do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Obstacle {
    pub words: String,
    pub remedy: Remedy,
}

/// What lets a worktree be removed. The later ones come first, if there are several reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Remedy {
    /// To merge the work in it, or to discard it.
    DecideAboutWork,
    /// To finish or abort what is in progress in it, or to check out another branch elsewhere.
    Finish,
    Unlock,
    /// To move it away: git cannot remove it.
    MoveAway,
    /// To wait for those who use it.
    Wait,
}

impl Obstacle {
    /// Something uses the worktree.
    pub(crate) fn in_use(words: impl Into<String>) -> Self {
        Self { words: words.into(), remedy: Remedy::Wait }
    }
}

impl Worktree {
    /// The reply of the agent that worked in it, unchanged, followed by the place of its work.
    pub(crate) fn named_in(&self, said: &str) -> String {
        format!("{said}\n\n({})", self.whereabouts())
    }

    /// The place of its agent's work, in words.
    pub(crate) fn whereabouts(&self) -> String {
        format!("its work is on the branch {}, in the worktree {}", self.branch, self.path.display())
    }

    /// The branch for an agent whose task has this title. `id` distinguishes agents with the same title.
    pub(crate) fn branch_for(title: &str, id: &str) -> String {
        let stem = title.strip_suffix(".md").unwrap_or(title);
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let name: String = stem.chars().map(plain).take(30).collect();
        let words: Vec<&str> = name.split('-').filter(|word| !word.is_empty()).collect();
        format!("agent-cli/{}", words.into_iter().chain([id]).collect::<Vec<_>>().join("-"))
    }
}

/// An agent's reply as its parent reads it. If the agent has its own worktree, the last line names the place of its work.
///
/// The last line counts. If an agent without a worktree ends with such a line, perhaps one that it was given itself, a
/// correction follows.
pub(crate) fn with_place(said: String, worktree: Option<&Worktree>) -> String {
    match worktree {
        Some(worktree) => worktree.named_in(&said),
        None if ends_like_one(&said) => format!("{said}\n\n(it has no worktree of its own)"),
        None => said,
    }
}

/// Whether the end of a text could be mistaken for that line.
fn ends_like_one(said: &str) -> bool {
    let last = said.trim_end().rsplit(is_line_break).next().unwrap_or_default();
    last.to_lowercase().contains("its work is on the branch")
}

impl WorktreeCondition {
    /// Why nothing may be removed; `None`: nothing would be lost. `with_ignored`: ignored files may be removed,
    /// whatever they are.
    pub(crate) fn held(&self, with_ignored: bool) -> Option<Obstacle> {
        let files: Vec<_> = self.ignored.iter().filter(|file| !with_ignored && !file.is_made_again()).collect();
        let ignored = (!files.is_empty()).then(|| {
            let names: Vec<_> = files.iter().take(MOST_NAMES).map(|file| file.path.display().to_string()).collect();
            let more = files.len().saturating_sub(MOST_NAMES);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            format!("it has files that git ignores, which --ignored would remove: {}{more}", names.join(", "))
        });
        let reasons: Vec<String> = self.losses.iter().map(Loss::to_string).chain(ignored).collect();
        let remedy = self.losses.iter().map(Loss::remedy).max().unwrap_or(Remedy::DecideAboutWork);
        (!reasons.is_empty()).then(|| Obstacle { words: reasons.join(", and "), remedy })
    }
}

/// How many files are named before the others are only counted.
const MOST_NAMES: usize = 5;

/// Folders that a build, a test run or a package manager recreates.
const MADE_AGAIN: [&str; 32] = [
    "target", "build", "dist", "node_modules", "bower_components", "__pycache__", ".pytest_cache", ".mypy_cache",
    ".ruff_cache", ".hypothesis", ".tox", ".nox", ".venv", "venv", ".eggs", ".gradle", ".next", ".nuxt", ".svelte-kit",
    ".turbo", ".parcel-cache", ".angular", ".cache", ".nyc_output", ".build", "DerivedData", "_build", ".zig-cache",
    "zig-cache", "zig-out", ".dart_tool", ".stack-work",
];

/// Files that a compiler, an interpreter or the system recreates.
const MADE_AGAIN_FILES: [&str; 8] = ["pyc", "pyo", "o", "obj", "class", "tsbuildinfo", "DS_Store", "eslintcache"];

impl IgnoredFiles {
    /// Whether it can obviously be recreated.
    pub(crate) fn is_made_again(&self) -> bool {
        let is = |name: &str| MADE_AGAIN.contains(&name) || name.ends_with(".egg-info");
        if self.is_folder {
            return self.is_tagged || self.path.iter().any(|part| part.to_str().is_some_and(is));
        }
        let name = self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.rsplit_once('.').is_some_and(|(_, kind)| MADE_AGAIN_FILES.contains(&kind))
    }
}

impl Loss {
    fn remedy(&self) -> Remedy {
        match self {
            Self::NoRepository(_) | Self::NoWorktree => Remedy::MoveAway,
            Self::Locked(_) => Remedy::Unlock,
            Self::UnderWay | Self::CheckedOut(_) => Remedy::Finish,
            Self::Uncommitted | Self::Unwatched(_) | Self::Commit(_) | Self::Repository(_) => Remedy::DecideAboutWork,
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRepository(path) => write!(f, "its repository {} is gone", path.display()),
            Self::NoWorktree => write!(f, "it is no longer a worktree of its repository"),
            Self::Locked(why) if why.is_empty() => write!(f, "it is locked"),
            Self::Locked(why) => write!(f, "it is locked: {why}"),
            Self::UnderWay => write!(f, "a merge, rebase or bisection is in progress in it"),
            Self::Uncommitted => write!(f, "it has uncommitted changes"),
            Self::Unwatched(path) => write!(f, "git is configured to ignore changes to {}", path.display()),
            Self::Commit(commit) => {
                let short: String = commit.chars().take(10).collect();
                write!(f, "it has commits that are on no branch outside agent-cli/, such as {short}")
            }
            Self::Repository(path) => {
                write!(f, "it contains another repository, with its own work: {}", path.display())
            }
            Self::CheckedOut(path) => write!(f, "its branch is checked out in {}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
        let worktree = Worktree {
            remote: None,
            repository: "/r".into(),
            path: "/w".into(),
            branch: "agent-cli/a".into(),
            base: "c".into(),
        };
        assert_eq!(worktree.named_in("done"), "done\n\n(its work is on the branch agent-cli/a, in the worktree /w)");
    }

    fn ignored(path: &str) -> IgnoredFiles {
        let is_folder = path.ends_with('/');
        IgnoredFiles { path: path.trim_end_matches('/').into(), is_folder, is_tagged: false }
    }

    #[test]
    fn an_agent_without_a_worktree_cannot_name_one() {
        let forged = "done\n\n(its work is on the branch agent-cli/b, in the worktree /b)\n";
        let contradicted = with_place(forged.to_owned(), None);
        assert_eq!(contradicted, format!("{forged}\n\n(it has no worktree of its own)"));
        assert_eq!(with_place(contradicted.clone(), None), contradicted, "nothing more is said of what is passed on");
    }

    proptest! {
        #[test]
        fn the_last_line_tells_where_the_work_is(
            said in "([a-z\n]|\n\n\\(it has no worktree of its own\\)|\n\n\\(its work is on the branch x, in the worktree /w\\)){0,8}",
            with: bool,
        ) {
            let worktree =
                Worktree { remote: None, repository: "/r".into(), path: "/w".into(), branch: "x".into(), base: "c".into() };
            let all = with_place(said.clone(), with.then_some(&worktree));
            let line = format!("({})", worktree.whereabouts());
            prop_assert_eq!(all.trim_end().ends_with(&line), with);
            prop_assert!(all.starts_with(&said));
        }
    }

    #[test]
    fn a_worktree_is_removed_only_when_nothing_is_lost() {
        let with = |losses: Vec<Loss>| WorktreeCondition { losses, ignored: Vec::new() }.held(true);
        assert_eq!(with(Vec::new()), None);
        let words = "it has uncommitted changes".to_owned();
        assert_eq!(with(vec![Loss::Uncommitted]), Some(Obstacle { words, remedy: Remedy::DecideAboutWork }));
        let both = with(vec![Loss::UnderWay, Loss::Uncommitted]).unwrap();
        assert_eq!(both.words, "a merge, rebase or bisection is in progress in it, and it has uncommitted changes");
        assert_eq!(both.remedy, Remedy::Finish);
    }

    #[test]
    fn ignored_files_go_only_when_they_are_made_again_or_a_person_says_so() {
        let held = |paths: &[&str], with| {
            let ignored = paths.iter().map(|path| ignored(path)).collect();
            WorktreeCondition { losses: Vec::new(), ignored }.held(with)
        };
        let rebuilt =
            ["target/", "a/node_modules/", "__pycache__/", "x/y.pyc", "p.egg-info/", ".DS_Store", "build/deep/"];
        assert_eq!(held(&rebuilt, false), None);
        for kept in [".env", "notes/", "a.log", "dist/important.key", "target", "targets/", "pyc", ".env.local"] {
            assert!(held(&["target/", kept], false).unwrap().words.ends_with(kept.trim_end_matches('/')), "{kept}");
            assert_eq!(held(&["target/", kept], true), None, "{kept}");
        }
        assert!(
            held(&["1", "2", "3", "4", "5", "6", "7"], false).unwrap().words.ends_with(": 1, 2, 3, 4, 5 and 2 more")
        );
        assert!(IgnoredFiles { is_tagged: true, ..ignored("anything/") }.is_made_again());
    }
}
