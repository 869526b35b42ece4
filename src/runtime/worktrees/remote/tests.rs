use std::fs;
use std::future::pending;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::runtime::worktrees::testing::{self, commit, git};
use crate::runtime::worktrees::unpack;

mod exact;
mod hostile;
mod properties;

/// A machine with a clone of a repository, and a worktree of it with a remote.
struct Machine {
    temp: TempDir,
    bare: PathBuf,
    top: PathBuf,
    worktree: Worktree,
    remote: Remote,
}

impl Machine {
    fn new() -> Self {
        let (temp, first) = testing::repository();
        let (bare, top) = (first.with_file_name("bare.git"), first.with_file_name("clone"));
        git(&first, &format!("clone -q --bare {} {}", first.display(), bare.display()));
        git(&first, &format!("clone -q {} {}", bare.display(), top.display()));
        let remote = resolve(&top, "origin").unwrap();
        assert_eq!(remote, Remote { name: "origin".into(), url: bare.display().to_string() });
        let mut worktree = testing::agent(&temp, &top, "1");
        worktree.remote = Some(remote.clone());
        Self { temp, bare, top, worktree, remote }
    }

    fn push(&self, before: Pushed, number: u32) -> Pushed {
        push(&self.worktree, &self.remote, before, format!("refs/agent-cli/f/{number}"), pending::<()>)
    }

    /// The machine is lost. Another one has a clone at the same place.
    fn replace(&self) {
        fs::rename(&self.top, self.top.with_file_name("lost clone")).unwrap();
        fs::rename(&self.worktree.path, self.top.with_file_name("lost worktree")).unwrap();
        // A local clone would have all objects, also those that clones do not fetch.
        git(&self.bare, &format!("clone -q --no-local {} {}", self.bare.display(), self.top.display()));
    }

    /// That machine is lost, too.
    fn replace_again(&self) {
        fs::remove_dir_all(&self.top).unwrap();
        fs::remove_dir_all(&self.worktree.path).unwrap();
        git(&self.bare, &format!("clone -q --no-local {} {}", self.bare.display(), self.top.display()));
    }

    fn fetch(&self, pushed: &Pushed) -> Result<(), WorktreeError> {
        let last = pushed.snapshot.as_ref().unwrap();
        fetch(&self.worktree, &self.remote, last, pending())?;
        unpack::unpack(&self.worktree, &self.worktree.path, &last.commit, false, || Ok(()))
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.worktree.path.join(name)).ok()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.worktree.path.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn git(&self, arguments: &str) -> String {
        git(&self.worktree.path, arguments)
    }

    fn references(&self) -> Vec<String> {
        git(&self.bare, "for-each-ref --format=%(refname)").lines().map(str::to_owned).collect()
    }
}

/// What an agent may leave in its worktree.
fn leave(machine: &Machine) {
    commit(&machine.worktree.path, "committed");
    machine.write("one", "changed");
    machine.write("deep/new", "new");
    machine.write("a name\nwith a break", "odd");
    machine.write("staged", "staged");
    machine.git("add staged");
    machine.write(".gitignore", "ignored\n");
    machine.write("ignored", "ignored");
    machine.write("run", "#!/bin/sh");
    fs::set_permissions(machine.worktree.path.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("one", machine.worktree.path.join("link")).unwrap();
}

#[test]
fn another_machine_has_all_files_but_ignored_ones() {
    let machine = Machine::new();
    leave(&machine);
    let (head, status) = (machine.git("rev-parse HEAD"), machine.git("status --porcelain"));
    let pushed = machine.push(Pushed::default(), 1);
    assert_eq!(
        (pushed.failure.as_ref(), pushed.branch_failure.as_ref(), &pushed.branch),
        (None, None, &Some(head.clone()))
    );
    assert_eq!(machine.git("status --porcelain"), status, "nothing has changed here");
    assert_eq!(machine.references(), ["refs/agent-cli/f/1", "refs/heads/agent-cli/agent-1", "refs/heads/main"]);
    machine.replace();
    machine.fetch(&pushed).unwrap();
    assert_eq!(machine.read("one").unwrap(), "changed");
    assert_eq!(machine.read("deep/new").unwrap(), "new");
    assert_eq!(machine.read("a name\nwith a break").unwrap(), "odd");
    assert_eq!((machine.read("staged").unwrap(), machine.read("ignored")), ("staged".to_owned(), None));
    assert!(fs::metadata(machine.worktree.path.join("run")).unwrap().permissions().mode() & 0o100 != 0);
    assert_eq!(fs::read_link(machine.worktree.path.join("link")).unwrap(), PathBuf::from("one"));
    assert_eq!(
        (machine.git("rev-parse HEAD"), machine.git("symbolic-ref HEAD").as_str()),
        (head, "refs/heads/agent-cli/agent-1")
    );
    let unstaged = status.replace("A  staged", "?? staged");
    let sorted = |text: &str| text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(sorted(&machine.git("status --porcelain")), sorted(&unstaged));
}

#[test]
fn what_has_not_changed_is_not_pushed_again_and_old_snapshots_go() {
    let machine = Machine::new();
    machine.write("new", "1");
    let first = machine.push(Pushed::default(), 1);
    assert_eq!(machine.push(first.clone(), 2), first);
    machine.write("new", "2");
    let second = machine.push(first.clone(), 2);
    let last = |pushed: &Pushed| pushed.snapshot.clone().unwrap().reference;
    assert_eq!((last(&second), &second.superseded), ("refs/agent-cli/f/2".into(), &Some(last(&first))));
    // The records may still name the one before.
    assert!(machine.references().contains(&last(&first)));
    commit(&machine.worktree.path, "committed");
    let third = machine.push(second, 3);
    assert!(third.is_current() && third.branch == Some(machine.git("rev-parse HEAD")), "{third:?}");
    let own: Vec<_> = machine.references().into_iter().filter(|name| name.starts_with("refs/agent-cli/")).collect();
    assert_eq!(own, ["refs/agent-cli/f/2", "refs/agent-cli/f/3"]);
}

#[test]
fn a_branch_that_others_have_changed_is_never_replaced() {
    let machine = Machine::new();
    commit(&machine.worktree.path, "mine");
    let first = machine.push(Pushed::default(), 1);
    let other = machine.top.with_file_name("other");
    git(&machine.top, &format!("clone -q {} {}", machine.bare.display(), other.display()));
    git(&other, "checkout -q agent-cli/agent-1");
    commit(&other, "theirs");
    git(&other, "push -q origin agent-cli/agent-1");
    let theirs = git(&other, "rev-parse HEAD");
    commit(&machine.worktree.path, "mine2");
    let second = machine.push(first.clone(), 2);
    assert!(second.is_current(), "its commits are in the snapshot: {second:?}");
    assert_eq!((&second.branch, git(&machine.bare, "rev-parse agent-cli/agent-1")), (&first.branch, theirs.clone()));
    assert!(second.branch_failure.as_ref().unwrap().contains("fetch first"), "{second:?}");
    // It is tried each time, because somebody may have made it possible.
    assert!(machine.push(second.clone(), 3).branch_failure.is_some());
    machine.git("fetch -q origin");
    machine.git("merge -q -m merged origin/agent-cli/agent-1");
    let third = machine.push(second, 3);
    assert_eq!((&third.branch_failure, &third.branch), (&None, &Some(machine.git("rev-parse HEAD"))));
}

#[test]
fn a_remote_that_refuses_says_why() {
    let machine = Machine::new();
    let hook = |script: &str| {
        let path = machine.bare.join("hooks/pre-receive");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    machine.write("new", "1");
    hook("echo 'no big files' >&2; exit 1");
    let none = machine.push(Pushed::default(), 1);
    let refused = "[remote rejected] (pre-receive hook declined); no big files";
    assert_eq!((none.failure.as_deref(), none.branch_failure.as_deref()), (Some(refused), Some(refused)));
    assert_eq!((none.snapshot.as_ref(), machine.references()), (None, vec!["refs/heads/main".to_owned()]));
    // Branches only.
    hook("while read old new name; do case $name in refs/heads/*) exit 1;; esac; done");
    let files = machine.push(none, 1);
    assert!(files.is_current() && files.branch_failure.is_some(), "{files:?}");
    let gone = machine.bare.with_extension("gone");
    fs::rename(&machine.bare, &gone).unwrap();
    machine.write("new", "2");
    let lost = machine.push(files.clone(), 2);
    assert!(lost.failure.as_ref().unwrap().contains("does not appear to be a git repository"), "{lost:?}");
    assert_eq!(lost.snapshot, files.snapshot, "another host can continue from there");
}

#[test]
fn what_is_in_the_place_of_a_worktree_is_kept() {
    let machine = Machine::new();
    machine.write("new", "1");
    let pushed = machine.push(Pushed::default(), 1);
    machine.write("new", "2");
    machine.write("newer", "2");
    commit(&machine.worktree.path, "later");
    let later = machine.git("rev-parse HEAD");
    machine.fetch(&pushed).unwrap();
    assert_eq!((machine.read("new").unwrap(), machine.read("newer"), machine.read("later")), ("1".into(), None, None));
    let kept = machine.git("for-each-ref --format=%(objectname) refs/agent-cli/kept");
    let has = |name: &str| {
        kept.lines().any(|commit| testing::succeeds(&machine.top, &format!("cat-file -e {commit}:{name}")))
    };
    assert!(has("newer") && kept.lines().any(|commit| commit == later), "{kept}");
    // Not a worktree any more.
    fs::remove_file(machine.worktree.path.join(".git")).unwrap();
    machine.write("new", "3");
    machine.fetch(&pushed).unwrap();
    assert_eq!(machine.read("new").unwrap(), "1");
    let aside = machine.worktree.path.with_extension("kept-1");
    assert_eq!(fs::read_to_string(aside.join("new")).unwrap(), "3");
}

#[test]
fn an_agent_that_was_not_on_its_branch_is_not_put_there() {
    let machine = Machine::new();
    commit(&machine.worktree.path, "on_branch");
    let branch = machine.git("rev-parse HEAD");
    machine.git("checkout -q --detach HEAD~1");
    commit(&machine.worktree.path, "beside");
    let beside = machine.git("rev-parse HEAD");
    let pushed = machine.push(Pushed::default(), 1);
    machine.replace();
    machine.fetch(&pushed).unwrap();
    assert_eq!(machine.git("rev-parse HEAD"), beside);
    assert_eq!(machine.git("rev-parse refs/heads/agent-cli/agent-1"), branch);
    assert!(machine.read("beside").is_some() && machine.read("on_branch").is_none());
    assert!(!testing::succeeds(&machine.worktree.path, "symbolic-ref -q HEAD"));
}

#[test]
fn changes_that_git_ignores_are_pushed_too() {
    let machine = Machine::new();
    let pushed = |number: u32| {
        let pushed = machine.push(Pushed::default(), number);
        assert!(pushed.is_current(), "{pushed:?}");
        pushed.snapshot.unwrap().commit
    };
    let at = |commit: &str, name: &str| git(&machine.bare, &format!("show {commit}:{name}"));
    // In the same moment as the index, and of the same size.
    machine.write("racy", "one");
    machine.git("add racy");
    machine.git("commit -q -m racy");
    let index = PathBuf::from(machine.git("rev-parse --git-path index"));
    machine.write("racy", "two");
    let now = fs::metadata(&index).unwrap().modified().unwrap();
    fs::File::options().write(true).open(machine.worktree.path.join("racy")).unwrap().set_modified(now).unwrap();
    assert_eq!(at(&pushed(1), "racy"), "two");
    for (number, option) in [(2, "--assume-unchanged"), (3, "--skip-worktree")] {
        machine.git(&format!("update-index {option} one"));
        machine.write("one", option);
        assert_eq!(at(&pushed(number), "one"), option);
    }
}

#[test]
fn a_repository_in_a_worktree_is_not_lost_silently() {
    let machine = Machine::new();
    machine.write("nested/file", "1");
    git(&machine.worktree.path.join("nested"), "init -q");
    commit(&machine.worktree.path.join("nested"), "file2");
    let failure = machine.push(Pushed::default(), 1).failure.unwrap();
    assert_eq!(failure, "the repository nested in it is not part of the push");
}

#[test]
fn what_is_known_to_be_incomplete_is_not_kept() {
    let machine = Machine::new();
    machine.write("new", "1");
    let pushed = machine.push(Pushed::default(), 1);
    let last = pushed.snapshot.as_ref().unwrap();
    let kept = || machine.git("for-each-ref refs/agent-cli/kept").lines().count();
    for number in 0..3 {
        let begins = || if number < 2 { Err(std::io::Error::other("killed")) } else { Ok(()) };
        let unpacked = unpack::unpack(&machine.worktree, &machine.worktree.path, &last.commit, number > 0, begins);
        assert_eq!((unpacked.is_ok(), kept()), (number == 2, 1));
    }
}

#[test]
fn a_remote_has_a_name_and_an_address_that_anybody_may_see() {
    let machine = Machine::new();
    let url = |url: &str| {
        git(&machine.top, &format!("remote set-url origin {url}"));
        resolve(&machine.top, "origin").map(|remote| remote.url)
    };
    for plain in
        ["https://example.com/x.git", "ssh://me@example.com/x", "me@example.com:x/y.git", "https://me@example.com/x"]
    {
        assert_eq!(url(plain).unwrap(), plain);
    }
    assert_eq!(url("../bare.git").unwrap(), machine.bare.display().to_string());
    assert!(
        matches!(url("https://me:secret@example.com/x"), Err(WorktreeError::PasswordInAddress(name)) if name == "origin")
    );
    assert!(matches!(url("https://ghp_0123456789abcdefghij@example.com/x"), Err(WorktreeError::PasswordInAddress(_))));
    assert!(matches!(resolve(&machine.top, "upstream"), Err(WorktreeError::NoRemote(_))));
    assert!(matches!(resolve(&machine.top, "--all"), Err(WorktreeError::NoRemote(_))));
}

#[test]
fn a_remote_that_does_not_answer_is_not_waited_for() {
    let machine = Machine::new();
    let never = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("git://{}/x", never.local_addr().unwrap());
    let remote = Remote { url, ..machine.remote.clone() };
    let push = push(&machine.worktree, &remote, Pushed::default(), "refs/agent-cli/f/1".into(), || async {
        tokio::time::sleep(Duration::from_secs(1)).await;
    });
    assert!(push.failure.unwrap().ends_with("was interrupted"));
    let git = Git::new(&machine.top, ["ls-remote", &remote.url]);
    let error = git.within(Duration::from_millis(100), pending()).unwrap_err();
    assert!(matches!(error, GitError::TimedOut { .. }), "{error}");
}
