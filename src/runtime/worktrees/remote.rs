//! Pushes worktrees to a git remote and fetches them. Nothing that is there is ever replaced by force.

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use crate::core::agent::child_worktree::pushed_worktree::{Pushed, Snapshot};
use crate::core::agent::child_worktree::{Remote, Worktree};
use crate::core::text::escape::{one_line, shortened};
use crate::runtime::worktrees::git::{Git, GitError, Place};
use crate::runtime::worktrees::remote_repository::RemoteRepository;
use crate::runtime::worktrees::snapshot;
use crate::runtime::worktrees::worktree::WorktreeError;

/// How long git may be busy with a remote.
const PATIENCE: Duration = Duration::from_secs(120);

/// The remote of this name in the repository of `cwd`.
pub(crate) fn resolve(cwd: &Path, name: &str) -> Result<Remote, WorktreeError> {
    let unknown = || WorktreeError::NoRemote(name.to_owned());
    let arguments = ["remote", "get-url", "--push", "--", name];
    let url = Git::new(cwd, arguments).text().ok().filter(|url| !url.is_empty()).ok_or_else(unknown)?;
    if has_secret(&url) {
        return Err(WorktreeError::PasswordInAddress(name.to_owned()));
    }
    // A path is relative to the top of the repository.
    let is_path = !url.contains("://") && (url.starts_with(['/', '.']) || !url.contains(':'));
    let absolute = || {
        let top = Git::new(cwd, ["rev-parse", "--show-toplevel"]).text().ok()?;
        Path::new(&top).join(&url).canonicalize().ok()?.to_str().map(str::to_owned)
    };
    let url = is_path.then(absolute).flatten().unwrap_or(url);
    Ok(Remote { name: name.to_owned(), url })
}

/// Whether an address contains a password, or a token of a web server in the place of a user. Tokens are longer than names.
fn has_secret(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    let user = rest.split('/').next().and_then(|authority| Some(authority.rsplit_once('@')?.0));
    user.is_some_and(|user| user.contains(':') || (scheme.starts_with("http") && user.len() >= 20))
}

/// Pushes the branch of a worktree, and a snapshot of its files under the name `reference`. Returns how much of it is on the remote then.
/// `interrupted` completes when a person does not want to wait any longer.
pub(crate) fn push<F: Future<Output = ()> + Send>(
    worktree: &Worktree,
    remote: &Remote,
    before: Pushed,
    reference: String,
    interrupted: impl Fn() -> F,
) -> Pushed {
    let last = before.snapshot.as_ref().filter(|_| before.is_current()).map(|last| last.commit.clone());
    let made = match snapshot::make(worktree, last.as_deref(), &interrupted) {
        Ok(made) => made,
        Err(error) => return before.failed(&error.to_string()),
    };
    let new_branch =
        made.branch.filter(|branch| before.branch.as_ref() != Some(branch) || before.branch_failure.is_some());
    if last.is_some_and(|last| last == made.commit) && new_branch.is_none() {
        return before;
    }
    let send = |refs: &[String]| sent(worktree, remote, refs, interrupted());
    let files = format!("{}:{reference}", made.commit);
    let branch_name = format!("refs/heads/{}", worktree.branch);
    let of_branch = new_branch.as_ref().map(|commit| format!("{commit}:{branch_name}"));
    let unneeded = before.superseded.as_ref().map(|name| format!(":{name}"));
    let refs: Vec<String> = [Some(files.clone()), of_branch.clone(), unneeded].into_iter().flatten().collect();
    tracing::info!("pushing {} to {}", worktree.branch, remote.name);
    let mut answer = send(&refs);
    let branch_failure = of_branch.and_then(|_| answer.refusal(&branch_name));
    if refs.len() > 1 && answer.refusal(&reference).is_some() && answer.has_answered() {
        // A hook that refuses one of them may refuse all.
        answer = send(&[files]);
    }
    let after = match answer.refusal(&reference) {
        Some(why) => before.failed(&why),
        None => Pushed {
            snapshot: Some(Snapshot { commit: made.commit, reference }),
            superseded: before.snapshot.map(|last| last.reference),
            failure: None,
            ..before
        },
    };
    match (new_branch, branch_failure) {
        (Some(_), Some(why)) => Pushed { branch_failure: Some(why), ..after },
        (Some(commit), None) => Pushed { branch: Some(commit), branch_failure: None, ..after },
        (None, _) => after,
    }
}

/// Pushes the commit from which a worktree will be created, so that any host can create it; `None`: it has no remote.
pub(crate) fn push_base(worktree: &Worktree, reference: String) -> Result<Option<Pushed>, WorktreeError> {
    let Some(remote) = &worktree.remote else { return Ok(None) };
    let commit = snapshot::of_base(worktree)?;
    let answer = sent(worktree, remote, &[format!("{commit}:{reference}")], std::future::pending());
    if let Some(why) = answer.refusal(&reference) {
        return Err(WorktreeError::NotPushed { remote: remote.name.clone(), why });
    }
    Ok(Some(Pushed { snapshot: Some(Snapshot { commit, reference }), ..Pushed::default() }))
}

/// Deletes the snapshot of a worktree that nobody will create. If that fails, it remains.
pub(crate) fn delete_base(worktree: &Worktree, reference: &str) {
    if let Some(remote) = &worktree.remote {
        drop(sent(worktree, remote, &[format!(":{reference}")], std::future::pending()));
    }
}

/// The remote's answer to a push.
struct Answer(Result<Output, GitError>);

fn sent(worktree: &Worktree, remote: &Remote, refs: &[String], interrupted: impl Future<Output = ()> + Send) -> Answer {
    // Not by its name: an agent may have changed what that name means.
    let push =
        ["push", "--porcelain", "--no-verify", "--no-follow-tags", "--no-signed", "--receive-pack=git-receive-pack"];
    let arguments: Vec<_> =
        push.into_iter().chain(["--", &remote.url]).chain(refs.iter().map(String::as_str)).collect();
    let pushed =
        RemoteRepository::new(&worktree.repository).and_then(|own| own.git(&arguments).within(PATIENCE, interrupted));
    Answer(pushed)
}

impl Answer {
    /// Whether the remote has answered for each name.
    fn has_answered(&self) -> bool {
        self.0.as_ref().is_ok_and(|output| lines(output).next().is_some())
    }

    /// Why the remote does not have the new commit under this name; `None`: it does.
    fn refusal(&self, name: &str) -> Option<String> {
        let output = match &self.0 {
            Ok(output) => output,
            Err(error) => return Some(error.to_string()),
        };
        let said = String::from_utf8_lossy(&output.stderr);
        let of_name = lines(output).find(|(_, to, _)| to == name);
        let why = match of_name {
            Some((flag, ..)) if flag != "!" => return None,
            // What the hooks of the remote have said.
            Some((.., why)) => [why]
                .into_iter()
                .chain(said.lines().filter_map(|line| Some(line.strip_prefix("remote:")?.trim().to_owned()))),
            None => return Some(shortened(&one_line(said.trim()))),
        };
        Some(shortened(&one_line(&why.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; "))))
    }
}

/// The flag, the name on the remote and the summary of each line that `git push --porcelain` has printed for a name.
fn lines(output: &Output) -> impl Iterator<Item = (String, String, String)> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let of_line = |line: &str| {
        let mut parts = line.splitn(3, '\t');
        let (flag, names, summary) = (parts.next()?, parts.next()?, parts.next()?);
        Some((flag.to_owned(), names.rsplit(':').next()?.to_owned(), summary.to_owned()))
    };
    text.lines().filter_map(of_line).collect::<Vec<_>>().into_iter()
}

/// Fetches a snapshot, unless the repository has it already.
pub(crate) fn fetch(
    worktree: &Worktree,
    remote: &Remote,
    snapshot: &Snapshot,
    interrupted: impl Future<Output = ()> + Send,
) -> Result<(), GitError> {
    let in_repository = |arguments: &[&str]| Git::new(Place::Of(&worktree.repository), arguments);
    let Snapshot { commit, reference } = snapshot;
    if in_repository(&["cat-file", "-e", &format!("{commit}^{{commit}}")]).text().is_ok() {
        return Ok(());
    }
    let fetch = [
        "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--upload-pack=git-upload-pack", "--", &remote.url,
        reference,
    ];
    let own = RemoteRepository::new(&worktree.repository)?;
    let output = own.git(&fetch).within(PATIENCE, interrupted)?;
    if output.status.success() {
        return Ok(());
    }
    Err(GitError::Refused { what: "fetch".to_owned(), said: one_line(String::from_utf8_lossy(&output.stderr).trim()) })
}

#[cfg(test)]
mod tests;
