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
    /// Whether it can have been made by this program. An archive, or another user of a server, may have written anything, and git
    /// would take a commit that begins with `-` for an option.
    fn is_plain(&self) -> bool {
        let is_object =
            [40, 64].contains(&self.commit.len()) && self.commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_object && is_reference(&self.reference)
    }
}

/// Whether this is a name for snapshots. What has one may be deleted on the remote.
fn is_reference(name: &str) -> bool {
    let name = name.strip_prefix("refs/agent-cli/").unwrap_or_default();
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-/".contains(&byte))
}

/// Whether agent-cli could have made this worktree: nothing else is fetched into a directory or onto a branch. `folder`: where it keeps
/// worktrees.
pub(crate) fn is_own(worktree: &Worktree, folder: &Path) -> bool {
    worktree.path.parent() == Some(folder) && worktree.branch.starts_with("agent-cli/")
}

impl Pushed {
    /// The same, without snapshots that this program cannot have made.
    pub(crate) fn checked(self) -> Self {
        let (snapshot, superseded) = (self.snapshot.filter(Snapshot::is_plain), self.superseded);
        Self { snapshot, superseded: superseded.filter(|name| is_reference(name)), ..self }
    }

    /// Whether another host can continue with all files as they are here.
    pub(crate) fn is_current(&self) -> bool {
        self.snapshot.is_some() && self.failure.is_none()
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
                 ignores are missing.{later}"
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
    use super::*;

    #[test]
    fn nothing_that_git_could_misunderstand_is_fetched() {
        let plain = Snapshot { commit: "a1".repeat(20), reference: reference(FrameId::random(), AttemptId::random()) };
        let kept = |snapshot: &Snapshot| {
            Pushed { snapshot: Some(snapshot.clone()), ..Pushed::default() }.checked().snapshot.is_some()
        };
        assert!(kept(&plain));
        for commit in ["", "--output=/home/me/.profile", "HEAD", &"g1".repeat(20), &format!("-{}", "a".repeat(39))] {
            assert!(!kept(&Snapshot { commit: commit.to_owned(), ..plain.clone() }), "{commit}");
        }
        for reference in
            ["", "refs/heads/main", "refs/agent-cli/", "--upload-pack=x", "refs/agent-cli/a:refs/heads/main"]
        {
            assert!(!kept(&Snapshot { reference: reference.to_owned(), ..plain.clone() }), "{reference}");
            let deletes = Pushed { superseded: Some(reference.to_owned()), ..Pushed::default() };
            assert_eq!(deletes.checked().superseded, None, "{reference}");
        }
        let worktree = |path: &str, branch: &str| Worktree {
            repository: "/r/.git".into(),
            path: path.into(),
            branch: branch.into(),
            base: String::new(),
            remote: None,
        };
        let is_own = |path, branch| is_own(&worktree(path, branch), Path::new("/state/worktrees"));
        assert!(is_own("/state/worktrees/a", "agent-cli/a"));
        assert!(!is_own("/home/me", "agent-cli/a") && !is_own("/state/worktrees/a/b", "agent-cli/a"));
        assert!(!is_own("/state/worktrees/a", "main"));
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
        The worktree /w/a was fetched from origin, as it was pushed at the end of a turn: nothing is staged, and files that git ignores are missing.
        The worktree /w/a was fetched from origin, as it was pushed at the end of a turn: nothing is staged, and files that git ignores are missing. Later changes were not pushed, and are missing.
        The files in the worktree /w/a could not be pushed to origin when you stopped: no⏎network
        Your branch agent-cli/a could not be pushed to origin: [rejected] (fetch first). If somebody else has pushed to it, fetch it and merge or rebase; never force it.
        "#);
        assert_eq!(rejected.notices(&Worktree { remote: None, ..worktree }, true), [""; 0]);
    }
}
