//! A directory that was checked leads elsewhere by the time an agent would work in it.

use std::fs;
use std::os::unix::fs::symlink;

use crate::repository::{branches, commit, git, repository, worktrees};
use crate::world::World;

#[test]
fn no_agent_continues_in_a_directory_that_was_replaced_by_a_link() {
    let world = World::new();
    world.file("ask.md", "run touch began\nask When?\nrun touch went-on\nreply went on\n");
    world.file("w/d/own", "");
    world.file("hostile/d/secret", "");
    let spawned = world.run(&["spawn", "ask.md", "--cwd", "w/d"]);
    let id = spawned.started();
    let (w, aside) = (world.project().join("w"), world.project().join("w2"));
    fs::rename(&w, &aside).unwrap();
    symlink("hostile", &w).unwrap();
    world.answer("now");
    insta::assert_snapshot!(world.run(&["resume", &id]), @"
    --- stderr
    error: the working directory has been replaced: [PROJECT]/w/d leads to [PROJECT]/hostile/d now, because [PROJECT]/w is a link ([ID1:8])
    hint: remove the link [PROJECT]/w and restore [PROJECT]/w/d; then agent-cli resume [ID1:8]
    --- exit status: 1
    ");
    assert!(!world.project().join("hostile/d/went-on").exists());
    fs::remove_file(&w).unwrap();
    fs::rename(&aside, &w).unwrap();
    world.run(&["resume", &id]).prints("went on");
    assert!(w.join("d/went-on").exists());
}

#[test]
fn no_agent_begins_where_its_worktree_has_a_link_that_was_not_there_when_it_was_asked_for() {
    let world = repository(&[("child.md", "run touch made\nreply ok\n")]);
    let outside = world.home().join("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::create_dir_all(world.project().join("p")).unwrap();
    symlink(&outside, world.project().join("p/sub")).unwrap();
    commit(&world);
    // The folder that is checked is a plain one; HEAD has a link in its place.
    fs::remove_file(world.project().join("p/sub")).unwrap();
    fs::create_dir_all(world.project().join("p/sub")).unwrap();
    world.file("root.md", "spawn child.md --worktree --cwd p/sub\nreply {result}\n");
    insta::assert_snapshot!(world.run(&["spawn", "root.md"]), @"
    --- stderr
    error: [STATE]/worktrees/child-[ID1:8]/p/sub leads to [HOME]/outside now, because [STATE]/worktrees/child-[ID1:8]/p/sub is a link ([ID1:8])
    hint: agent-cli resume [ID2:8] continues; nothing is lost
    --- exit status: 1
    ");
    assert!(!outside.join("made").exists());
}

#[test]
fn an_agent_gets_no_worktree_of_another_repository() {
    let world = repository(&[("child.md", "reply ok\n")]);
    world.file("root.md", "spawn child.md --worktree --cwd other\nreply {result}\n");
    world.file("other/a", "");
    git(&world.project().join("other"), "init -q -b main");
    git(&world.project().join("other"), "add .");
    git(&world.project().join("other"), "-c user.name=somebody -c user.email=somebody commit -q -m files");
    insta::assert_snapshot!(world.run(&["spawn", "root.md"]), @"
    Exit code 2
    error: [PROJECT]/other is not in the git repository of [PROJECT]
    hint: leave --worktree out, or --cwd: a person starts an agent for another repository
    --- exit status: 0
    ");
    assert!(branches(&world).is_empty() && worktrees(&world).is_empty());
}

#[test]
fn an_agent_that_replaces_its_own_directory_does_not_continue_elsewhere() {
    let world = World::new();
    world.file("w/d/own", "");
    world.file("hostile/d/secret", "");
    world.file("swap.md", "run mv ../../w ../../w2 && ln -s hostile ../../w\nask When?\nrun touch pwned\nreply ok\n");
    let id = world.run(&["spawn", "swap.md", "--cwd", "w/d"]).started();
    world.answer("now");
    let refused = world.run(&["resume", &id]);
    refused.exits_with(1);
    assert!(refused.stderr.contains("the working directory has been replaced: "), "{}", refused.stderr);
    assert!(!world.project().join("hostile/d/pwned").exists());
}
