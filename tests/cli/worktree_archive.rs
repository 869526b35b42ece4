//! A chain whose agents work in git worktrees moves to another machine.

use std::fs;

use crate::repository::{git, repository, worktrees};
use crate::world::World;

#[test]
fn a_worktree_goes_with_its_branch() {
    let there =
        repository(&[("root.md", "run echo begun > work\nask When?\nrun cat work\nreply {result} {results}\n")]);
    let id = there.command(["spawn", "root.md", "--worktree"]).run().started();
    let worktree = worktrees(&there).remove(0);
    git(&worktree, "add .");
    git(&worktree, "-c user.name=somebody -c user.email=somebody commit -q -m begun");
    let branch = git(&worktree, "branch --show-current");
    let archive = there.run(&["export", &id]).succeeds().stdout.clone();

    let here = World::new();
    // The other machine has other folders.
    fs::rename(there.state().join("worktrees"), there.state().join("elsewhere")).expect("the same file system");
    let import = |arguments: &[&str]| {
        here.command([&["import", "-", "--trust"], arguments].concat()).reads(archive.as_str()).run()
    };
    let refused = import(&[]);
    refused.exits_with(1);
    let there_it_was = there.state().display().to_string();
    insta::assert_snapshot!(here.named(&refused.stderr.replace(&there_it_was, "[THERE]")), @"
    error: [ID1:8] worked in [THERE]/worktrees/root-[ID1:8], which does not exist here
    hint: in a clone of its repository, git worktree add DIR agent-cli/root-[ID1:8]; then import with --cwd [THERE]/worktrees/root-[ID1:8]=DIR
    ");
    assert_eq!(here.run(&["ls", "-ap", "--json"]).stdout, "[]\n");

    let clone = here.project().join("clone");
    let copied = here.project().join("copied");
    git(&here.project(), &format!("clone -q {} clone", there.project().display()));
    git(&clone, &format!("worktree add -q {} {branch}", copied.display()));
    let moved = |old: &std::path::Path, new: &std::path::Path| format!("--cwd={}={}", old.display(), new.display());
    import(&[&moved(&worktree, &copied), &moved(&there.project(), &clone)]).prints(&id);
    here.answer("now");
    let outcome = here.run(&["resume", &id]);
    outcome.succeeds();
    insta::assert_snapshot!(outcome, @"
    begun now
    --- stderr
    its work is on the branch agent-cli/root-[ID1:8], in the worktree [PROJECT]/copied
    --- exit status: 0
    ");
    here.run(&["fsck"]).succeeds();
}
