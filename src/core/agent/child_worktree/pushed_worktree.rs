//! An agent's worktree on a git remote, from which other hosts fetch it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::core::agent::child_worktree::{Remote, Worktree};
use crate::core::id::{AttemptId, FrameId};
use crate::core::text::escape::one_line;

/// How much of a worktree is on its remote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Pushed {
    /// The last state of its files that is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Snapshot>,
    /// The name of the snapshot before that one, to be deleted with the next push.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded: Option<String>,
    /// The last commit of its branch that is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Why its files as they are now are not there. `None`: they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Why its branch as it is now is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch_failure: Option<String>,
    /// The number of the state of its files that this is about. Agents that share a worktree end their attempts in any order.
    #[serde(skip_serializing_if = "is_zero")]
    pub number: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A commit with all files of a worktree that git does not ignore. Its first parent is the commit that was checked out. If that was not
/// the last commit of the agent's branch, that one is the second parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Snapshot {
    pub commit: String,
    /// Its name on the remote.
    pub reference: String,
}

/// The name of the snapshot at the end of an attempt. Each has its own name, so no push has to replace anything.
pub(crate) fn reference(owner: FrameId, attempt: AttemptId) -> String {
    format!("refs/agent-cli/{owner}/{attempt}")
}

/// The name of the snapshot with which an agent begins.
pub(crate) fn first_reference(owner: FrameId) -> String {
    format!("refs/agent-cli/{owner}/first")
}

impl Snapshot {
    /// Whether this program can have made it for the worktree of `owner`. An archive, or another user of a server, may have written
    /// anything, and git would take a commit that begins with `-` for an option.
    fn is_plain(&self, owner: FrameId) -> bool {
        let is_object =
            [40, 64].contains(&self.commit.len()) && self.commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_object && is_reference(&self.reference, owner)
    }
}

/// Whether this is a name for snapshots of the worktree of `owner`. What has one may be deleted on the remote.
fn is_reference(name: &str, owner: FrameId) -> bool {
    let own = format!("refs/agent-cli/{owner}/");
    name.strip_prefix(&own).is_some_and(is_plain_name)
}

/// Whether this program could have made this name. It has no meaning for git, or in a path.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Whether agent-cli could have made this worktree: nothing else is fetched into a directory or onto a branch. `folder`: where it keeps
/// worktrees.
pub(crate) fn is_own(worktree: &Worktree, folder: &Path) -> bool {
    // The name of a directory's parent (`..`) is no name.
    let is_in_folder = worktree.path.parent() == Some(folder) && worktree.path.file_name().is_some();
    is_in_folder && worktree.branch.strip_prefix("agent-cli/").is_some_and(is_plain_name)
}

impl Pushed {
    /// The same, without snapshots that this program cannot have made for the worktree of `owner`.
    pub(crate) fn checked(self, owner: FrameId) -> Self {
        let snapshot = self.snapshot.filter(|snapshot| snapshot.is_plain(owner));
        let superseded = self.superseded.filter(|name| is_reference(name, owner));
        Self { snapshot, superseded, ..self }
    }

    /// Whether another host can continue with all files as they are here.
    pub(crate) fn is_current(&self) -> bool {
        self.snapshot.is_some() && self.failure.is_none()
    }

    /// What is recorded from now on, if `self` was recorded and `later` happened after that or at the same time.
    pub(crate) fn then(self, later: Self) -> Self {
        if later.number < self.number {
            // Its snapshot has older files, and is no longer needed.
            let unneeded = later.snapshot.filter(|_| later.failure.is_none()).map(|snapshot| snapshot.reference);
            return Self { superseded: self.superseded.or(unneeded), ..self };
        }
        match later.failure {
            // It has begun with what was recorded then.
            Some(failure) if self.snapshot.is_some() => Self { failure: Some(failure), number: later.number, ..self },
            failure => Self { failure, ..later },
        }
    }

    /// The same, after its files have changed and could not be pushed.
    pub(crate) fn failed(self, why: &str) -> Self {
        Self { failure: Some(one_line(why)), ..self }
    }

    /// How much of it is on the remote of this name.
    pub(crate) fn words(&self, remote: &str) -> String {
        let files = match (&self.snapshot, &self.failure) {
            (Some(_), None) => format!("to {remote}"),
            (Some(_), Some(why)) => format!("to {remote}, but not as it is now: {why}"),
            (None, why) => format!("not to {remote}: {}", why.as_deref().unwrap_or_default()),
        };
        let branch = self.branch_failure.as_ref().filter(|_| self.failure.is_none());
        branch.map_or_else(|| files.clone(), |why| format!("{files}, but not its branch: {why}"))
    }

    /// What an agent must know when it continues in `worktree`. `was_fetched`: whether the worktree was fetched since its last turn.
    pub(crate) fn notices(&self, worktree: &Worktree, was_fetched: bool) -> Vec<String> {
        let Some(Remote { name, .. }) = &worktree.remote else { return Vec::new() };
        let (path, branch) = (worktree.path.display(), &worktree.branch);
        let later = if self.failure.is_some() { " Later changes were not pushed, and are missing." } else { "" };
        let fetched = was_fetched.then(|| {
            format!(
                "The worktree {path} was fetched from {name}, as it was pushed at the end of a turn: nothing is staged, and files that git \
                 ignores, stashes, other local branches and an unfinished merge or rebase are missing.{later}"
            )
        });
        let unpushed = self.failure.as_ref().filter(|_| !was_fetched);
        let unpushed = unpushed.map(|why| {
            format!("The files in the worktree {path} could not be pushed to {name} when you stopped: {why}")
        });
        let rejected = self.branch_failure.as_ref().map(|why| {
            format!(
                "Your branch {branch} could not be pushed to {name}: {why}. If somebody else has pushed to it, fetch it and merge or rebase; \
                 never force it."
            )
        });
        fetched.into_iter().chain(unpushed).chain(rejected).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Component;

    use proptest::prelude::*;

    use super::*;

    /// Text like the name of an object, a reference, a path or an option, and anything else.
    fn any_text() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            3 => prop::sample::select(vec![
                "refs/agent-cli/", "refs/heads/", "agent-cli/", "main", "HEAD", "first", "a1b2", "/", ".", "..", "-", "--output=", ":",
                "+", "*", "^", "~1", "@{u}", " ", "\n", "\0", ".lock", "é",
            ])
            .prop_map(str::to_owned),
            1 => ".{0,3}",
            1 => "[0-9a-f]{39,41}",
        ];
        prop::collection::vec(part, 0..5).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn git_sees_only_objects_and_own_references(commit in any_text(), tail in any_text(), other in any_text()) {
            let owner = FrameId::random();
            let own = format!("refs/agent-cli/{owner}/{tail}");
            for reference in [own, other] {
                let recorded = Pushed {
                    snapshot: Some(Snapshot { commit: commit.clone(), reference: reference.clone() }),
                    superseded: Some(reference),
                    ..Pushed::default()
                };
                let checked = recorded.checked(owner);
                if let Some(snapshot) = &checked.snapshot {
                    prop_assert!(matches!(snapshot.commit.len(), 40 | 64), "{snapshot:?}");
                    prop_assert!(snapshot.commit.chars().all(|c| c.is_ascii_hexdigit()), "{snapshot:?}");
                }
                let names = checked.snapshot.map(|snapshot| snapshot.reference).into_iter().chain(checked.superseded);
                for name in names {
                    prop_assert!(name.starts_with(&format!("refs/agent-cli/{owner}/")), "{name}");
                    prop_assert_eq!(name.matches('/').count(), 3, "{}", name);
                    prop_assert!(!name.ends_with('/') && !name.contains([':', '+', '*', '.', ' ', '\n', '^', '~', '@']), "{name}");
                }
            }
        }

        #[test]
        fn only_own_worktrees_and_branches_are_replaced(path in any_text(), branch in any_text()) {
            let folder = Path::new("/state/worktrees");
            for (path, branch) in [(folder.join(&path), branch.clone()), (path.into(), format!("agent-cli/{branch}"))] {
                let worktree = at(&path, &branch);
                if is_own(&worktree, folder) {
                    prop_assert_eq!(path.components().count(), folder.components().count() + 1);
                    prop_assert!(path.components().all(|part| part != Component::ParentDir));
                    prop_assert!(branch.strip_prefix("agent-cli/").is_some_and(|rest| !rest.contains(['/', ':', '.', ' '])));
                }
            }
        }

        #[test]
        fn what_this_program_makes_passes(commit in "[0-9a-f]{40}|[0-9a-f]{64}", title in ".{0,40}") {
            let (owner, attempt) = (FrameId::random(), AttemptId::random());
            let pushed = Pushed {
                snapshot: Some(Snapshot { commit, reference: reference(owner, attempt) }),
                superseded: Some(first_reference(owner)),
                ..Pushed::default()
            };
            prop_assert_eq!(&pushed.clone().checked(owner), &pushed);
            prop_assert_eq!(pushed.checked(FrameId::random()), Pushed::default());
            let folder = Path::new("/state/worktrees");
            let branch = Worktree::branch_for(&title, &owner.short().to_string());
            prop_assert!(is_own(&at(&folder.join(owner.to_string()), &branch), folder), "{}", branch);
        }
    }

    fn at(path: &Path, branch: &str) -> Worktree {
        Worktree {
            repository: "/r/.git".into(),
            path: path.into(),
            branch: branch.into(),
            base: String::new(),
            remote: None,
        }
    }

    #[test]
    fn the_newest_files_of_agents_that_share_a_worktree_are_recorded() {
        let at = |number: u64| Pushed {
            snapshot: Some(Snapshot { commit: number.to_string(), reference: format!("r{number}") }),
            number,
            ..Pushed::default()
        };
        // The second one is faster.
        let recorded = at(1).then(at(3)).then(at(2));
        assert_eq!((recorded.number, recorded.snapshot, recorded.superseded), (3, at(3).snapshot, Some("r2".into())));
        // It began with the first state, and could push nothing.
        let failed = at(2).then(Pushed { number: 3, ..at(1).failed("no network") });
        assert_eq!((failed.snapshot.clone(), failed.is_current()), (at(2).snapshot, false));
        assert_eq!(failed.clone().then(at(2)), Pushed { superseded: Some("r2".into()), ..failed.clone() });
        assert!(failed.then(at(4)).is_current());
        let never = Pushed::default().then(Pushed { number: 1, ..Pushed::default().failed("no network") });
        assert!(never.snapshot.is_none() && never.failure.is_some());
    }

    #[test]
    fn a_parent_directory_is_not_replaced() {
        let folder = Path::new("/state/worktrees");
        assert!(is_own(&at(&folder.join("a"), "agent-cli/a"), folder));
        for (path, branch) in [("..", "agent-cli/a"), ("a/b", "agent-cli/a"), ("a", "main"), ("a", "agent-cli/a:main")]
        {
            assert!(!is_own(&at(&folder.join(path), branch), folder), "{path} {branch}");
        }
    }

    #[test]
    fn an_agent_is_told_what_was_fetched_and_what_could_not_be_pushed() {
        let remote = Some(Remote { name: "origin".into(), url: "/srv/x.git".into() });
        let worktree = Worktree {
            repository: "/r/.git".into(),
            path: "/w/a".into(),
            branch: "agent-cli/a".into(),
            base: String::new(),
            remote,
        };
        let snapshot = Some(Snapshot { commit: "1".into(), reference: "refs/agent-cli/f/a".into() });
        let pushed = Pushed { snapshot, ..Pushed::default() };
        assert!(pushed.is_current() && !pushed.clone().failed("x").is_current() && !Pushed::default().is_current());
        assert_eq!(pushed.notices(&worktree, false), [""; 0]);
        let rejected = Pushed { branch_failure: Some("[rejected] (fetch first)".into()), ..pushed.clone() };
        assert_eq!(
            [&pushed, &rejected, &pushed.clone().failed("x"), &Pushed::default().failed("x")]
                .map(|it| it.words("origin")),
            [
                "to origin",
                "to origin, but not its branch: [rejected] (fetch first)",
                "to origin, but not as it is now: x",
                "not to origin: x"
            ]
        );
        let lines = [
            pushed.notices(&worktree, true),
            pushed.clone().failed("no\nnetwork").notices(&worktree, true),
            pushed.failed("no\nnetwork").notices(&worktree, false),
            rejected.notices(&worktree, false),
        ];
        insta::assert_snapshot!(lines.concat().join("\n"), @r#"
        The worktree /w/a was fetched from origin, as it was pushed at the end of a turn: nothing is staged, and files that git ignores, stashes, other local branches and an unfinished merge or rebase are missing.
        The worktree /w/a was fetched from origin, as it was pushed at the end of a turn: nothing is staged, and files that git ignores, stashes, other local branches and an unfinished merge or rebase are missing. Later changes were not pushed, and are missing.
        The files in the worktree /w/a could not be pushed to origin when you stopped: no⏎network
        Your branch agent-cli/a could not be pushed to origin: [rejected] (fetch first). If somebody else has pushed to it, fetch it and merge or rebase; never force it.
        "#);
        assert_eq!(rejected.notices(&Worktree { remote: None, ..worktree }, true), [""; 0]);
    }
}
